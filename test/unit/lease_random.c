/*
 * Tests leases under random, legal events. After each event the rig checks the rules that always
 * hold; this file checks the final outcome. The seeds are fixed: a failure names its own.
 */
#include "base/nanos.h"
#include "core/backoff.h"
#include "rig.h"
#include "unit.h"

#define SEEDS 10000
#define EVENTS 300

struct dice {
    uint64_t seed;
};

static uint64_t below(struct dice *dice, uint64_t bound) {
    return backoff_random(&dice->seed) % bound;
}

static bool one_in(struct dice *dice, uint64_t n) {
    return below(dice, n) == 0;
}

static struct lease_terms random_terms(struct dice *dice) {
    static const uint64_t ttls[] = {MS(3), MS(100), MS(1000), MS(10000), MS(30000)};
    static const uint64_t waits[] = {1, MS(1), MS(30), MS(700), NANOS_NEVER};
    static const uint32_t retries[] = {0, 1, 3, UINT32_MAX};
    struct lease_terms terms = rig_terms();
    terms.ttl = ttls[below(dice, COUNT_OF(ttls))];
    terms.wait = waits[below(dice, COUNT_OF(waits))];
    terms.retries = retries[below(dice, COUNT_OF(retries))];
    terms.watchdog = one_in(dice, 2);
    terms.fenced = one_in(dice, 2);
    terms.max_hold = terms.watchdog && one_in(dice, 3) ? below(dice, 4 * terms.ttl) : NANOS_NEVER;
    terms.min_validity = one_in(dice, 3) ? below(dice, terms.ttl / 8) : 0;
    terms.permits = one_in(dice, 4) ? 1 + (uint32_t)below(dice, 5) : 0;
    terms.queues = terms.permits == 0 && one_in(dice, 3);
    terms.reservation = terms.queues ? nanos_min(terms.ttl, MS(1000)) : 0;
    terms.trusts_pushes = terms.queues && one_in(dice, 2);
    terms.watches = terms.watchdog && one_in(dice, 2);
    return terms;
}

/*
 * Draws lists of twelve nodes; the next list, if there is one, shares some nodes with the first, or
 * none.
 */
static struct quorum_lists random_lists(struct dice *dice) {
    uint32_t nodes = 1 + (uint32_t)below(dice, 6);
    uint32_t next = 1 + (uint32_t)below(dice, 6);
    struct quorum_lists lists = {.now = (1u << nodes) - 1};
    if (one_in(dice, 3)) {
        lists.next = ((1u << next) - 1) << below(dice, 7);
    }
    return lists;
}

/* Lets time pass: usually little, sometimes to the timer or past it, occasionally very much. */
static void pass_time(struct dice *dice, struct rig *rig) {
    uint64_t ttl = rig->lease.ttl;
    uint64_t wake_at = rig->lease.wake_at;
    switch (below(dice, 8)) {
    case 0:
        rig_pass(rig, one_in(dice, 8) ? below(dice, ttl) : below(dice, MS(60)));
        break;
    case 1:
        rig->now = wake_at != NANOS_NEVER ? nanos_max(rig->now, wake_at - 1) : rig->now;
        break;
    case 2:
    case 3:
        rig->now = wake_at != NANOS_NEVER ? nanos_max(rig->now, wake_at) : rig->now;
        break;
    case 4:
        if (one_in(dice, 20)) {
            rig_pass(rig, 10 * ttl);
        }
        break;
    default:
        rig_pass(rig, below(dice, MS(2)));
        break;
    }
}

/* Casts a vote, mostly a grant: a lease that is never held reaches few of its states. */
static void cast_a_vote(struct dice *dice, struct rig *rig) {
    static const redlock_vote votes[] = {
        REDLOCK_VOTE_DENIED, REDLOCK_VOTE_WRONG_TYPE,  REDLOCK_VOTE_NO_EXPIRY, REDLOCK_VOTE_MISSING,
        REDLOCK_VOTE_ERROR,  REDLOCK_VOTE_UNREACHABLE, REDLOCK_VOTE_BROKEN,    REDLOCK_VOTE_MISSING,
    };
    uint32_t node = (uint32_t)below(dice, 12);
    while (!(rig->round.members >> node & 1)) {
        node = (node + 1) % 12;
    }
    rig->counter = 1 + below(dice, 3);
    if (rig->round.permits != NULL && one_in(dice, 2)) {
        permits_record(&rig->permits, node, (uint32_t)below(dice, rig->permits.count));
    }
    if (rig->round.kind == ROUND_QUEUE && one_in(dice, 2)) {
        round_mark_queued(&rig->round, node, (uint32_t)below(dice, 3));
        rig_vote(rig, node, REDLOCK_VOTE_DENIED);
        return;
    }
    rig_vote(rig, node,
             one_in(dice, 5) ? votes[below(dice, COUNT_OF(votes))] : REDLOCK_VOTE_GRANTED);
}

/* Pushes a grant, usually for a whole reservation. */
static void push(struct dice *dice, struct rig *rig) {
    uint64_t reservation = rig->lease.terms->reservation;
    rig->counter = 1 + below(dice, 3);
    rig_push(rig, (uint32_t)below(dice, 12), rig->now + (one_in(dice, 8) ? 0 : reservation));
}

static void call(struct dice *dice, struct rig *rig) {
    switch (below(dice, 12)) {
    case 0:
        rig_cancel(rig);
        break;
    case 1:
        rig_release(rig);
        break;
    case 2:
        if (one_in(dice, 4)) {
            rig_close(rig);
        }
        break;
    case 3:
    case 4:
        rig_move(rig, random_lists(dice));
        break;
    default:
        rig_extend(rig, rig->lease.ttl / 2 + below(dice, rig->lease.ttl) + MS(3));
        break;
    }
}

/* Tops up nodes that lacked room; keeps the last top-up, if any, from a few nodes. */
static void use_room(struct dice *dice, struct rig *rig) {
    uint32_t nodes = (uint32_t)below(dice, 1u << 12);
    if (rig->update.top_up != 0) {
        rig_without_room(rig, rig->update.top_up & nodes);
    } else if (one_in(dice, 8)) {
        rig_has_room(rig, nodes);
    }
}

static void happen(struct dice *dice, struct rig *rig) {
    rig->without_memory = one_in(dice, 30);
    pass_time(dice, rig);
    if (rig->is_unsent) { /* before any other event: until then `round` is an earlier one */
        rig_out_of_memory(rig);
    } else if (one_in(dice, rig->lease.state == LEASE_LOST ? 4 : 15)) {
        call(dice, rig);
    } else if (one_in(dice, 4)) {
        rig_wake(rig);
    } else if (one_in(dice, 20)) {
        rig_key_changed_at(rig, (uint32_t)below(dice, 5));
    } else if (rig->round.kind == ROUND_QUEUE && one_in(dice, 2)) {
        push(dice, rig);
    } else {
        cast_a_vote(dice, rig);
    }
    use_room(dice, rig);
}

/* Ends the lease: a release without answers ends one deadline later. */
static void bring_to_its_end(struct rig *rig) {
    rig->without_memory = false;
    if (rig->is_unsent) {
        rig_out_of_memory(rig);
    }
    if (rig_cancel(rig) != REDLOCK_OK && rig_release(rig) == REDLOCK_OK) {
        assert_state(rig, LEASE_RELEASING);
    }
    if (rig->lease.state == LEASE_RELEASING) {
        rig_wake_on_time(rig);
    }
    assert_state(rig, LEASE_OVER);
    assert_int_equal(rig->acquired, 1);
    assert_int_equal(rig->extended, rig->extensions);
}

static int print_seed(void **state) {
    const uint64_t *seed = *state;
    if (*seed <= SEEDS) {
        print_error("it was the life of seed %u\n", (unsigned)*seed);
    }
    return 0;
}

static void test_random_lives(void **state) {
    static uint64_t seed;
    *state = &seed;
    unsigned seen[LEASE_OVER + 1] = {0};
    unsigned losses = 0, extended = 0, released = 0;
    for (seed = 1; seed <= SEEDS; seed++) {
        struct dice dice = {seed};
        struct lease_terms terms = random_terms(&dice);
        struct rig rig;
        rig_start_at(&rig, &terms, random_lists(&dice), seed);
        for (unsigned i = 0; i < EVENTS && rig.lease.state != LEASE_OVER; i++) {
            seen[rig.lease.state]++;
            happen(&dice, &rig);
        }
        bring_to_its_end(&rig);
        losses += rig.losses;
        extended += rig.extended;
        released += rig.released;
    }
    for (int each = LEASE_ACQUIRING; each < LEASE_OVER; each++) { /* no start was delayed */
        assert_true(seen[each] > SEEDS / 20); /* the dice reach every state, often */
    }
    assert_true(losses > SEEDS / 20 && extended > SEEDS / 20 && released > SEEDS / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random_lives, print_seed),
    };
    return cmocka_run_group_tests_name("lease_random", tests, NULL, NULL);
}
