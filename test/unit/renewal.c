/* Tests when held locks renew: at ticks that they share, and after a failed renewal. */
#include "core/renewal.h"

#include "base/nanos.h"
#include "unit.h"
#include "wire/script.h"

#include <stdlib.h>
#include <sys/queue.h>

#define START UINT64_C(1000000000000)
#define ROOM 65536 /* commands that a client may have under way */

static const uint64_t ttls[] = {MS(1), MS(30), MS(240), MS(1000), MS(10000), MS(3600000)};

static uint64_t grain_of(uint64_t ttl) {
    return ttl / 24 < MS(10) ? ttl / 24 : MS(10);
}

/* Returns the ticks of a client that holds this many locks. */
static struct ticks ticks_of(unsigned locks, uint64_t seed) {
    struct ticks ticks;
    ticks_init(&ticks, ROOM, &seed);
    ticks.locks = locks - 1;
    ticks_add(&ticks);
    return ticks;
}

static void test_an_interval_is_a_third_of_the_ttl_or_a_grain_less(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t interval = renewal_interval(ttls[i]);
        assert_int_in_range(interval, ttls[i] / 3 - grain_of(ttls[i]) + 1, ttls[i] / 3);
        assert_int_equal(interval % grain_of(ttls[i]), 0);
    }
    assert_int_equal(renewal_interval(1), 1);
}

static void test_phases_are_spread_over_an_interval(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t interval = renewal_interval(ttls[i]);
        unsigned quarters = 0;
        for (uint64_t seed = 0; seed < 100; seed++) {
            uint64_t drawn = seed;
            uint64_t phase = renewal_draw_phase(START, ttls[i], &drawn);
            uint64_t first = START + interval / TICKS_LEAST + grain_of(ttls[i]) + 1;
            assert_int_in_range(phase, first, first + interval - 1);
            quarters |= 1u << (phase - first) * 4 / interval;
        }
        assert_int_equal(quarters, 0xf);
    }
}

/* ---- one lock ---- */

static const unsigned sizes[] = {1, 50, 1000, 3000, 10000, 1000000};

static void test_a_renewal_is_never_late(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls) * COUNT_OF(sizes); i++) {
        uint64_t ttl = ttls[i % COUNT_OF(ttls)], interval = renewal_interval(ttl);
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct ticks ticks = ticks_of(sizes[i / COUNT_OF(ttls)], seed);
            uint64_t drawn = seed, start = START;
            uint64_t phase = renewal_draw_phase(start, ttl, &drawn);
            for (unsigned step = 0; step < 50; step++) {
                uint64_t at = renewal_next(&phase, ttl, start, &ticks);
                assert_int_in_range(at, start + 1, start + interval);
                assert_int_equal(at % grain_of(ttl), 0);
                /* The renewal is punctual, or late, or brought forward. */
                start = step % 3 == 0   ? at
                        : step % 3 == 1 ? at + interval / 7 * step
                                        : start + (at - start) * 3 / 4;
                struct ticks others = ticks_of(sizes[step % COUNT_OF(sizes)], seed);
                ticks.count = step % 4 == 0 ? others.count : ticks.count;
            }
        }
    }
}

static void test_a_lock_renews_once_in_an_interval(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls) * COUNT_OF(sizes); i++) {
        uint64_t ttl = ttls[i % COUNT_OF(ttls)], interval = renewal_interval(ttl);
        uint64_t late = grain_of(ttl) / 10;
        struct ticks ticks = ticks_of(sizes[i / COUNT_OF(ttls)], i);
        for (uint64_t seed = 0; seed < 50; seed++) {
            uint64_t drawn = seed;
            uint64_t phase = renewal_draw_phase(START, ttl, &drawn);
            uint64_t at = renewal_next(&phase, ttl, START, &ticks);
            for (unsigned step = 0; step < 10; step++) {
                uint64_t next = renewal_next(&phase, ttl, at + late, &ticks);
                assert_int_equal(next, at + interval);
                at = next;
            }
        }
    }
}

static void test_a_late_lock_returns_to_its_tick(void **state) {
    (void)state;
    uint64_t ttl = MS(10000), interval = renewal_interval(ttl);
    struct ticks ticks = ticks_of(1000, 1);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t drawn = seed;
        uint64_t phase = renewal_draw_phase(START, ttl, &drawn);
        uint64_t first = renewal_next(&phase, ttl, START, &ticks);
        uint64_t next = renewal_next(&phase, ttl, START + MS(5000), &ticks);
        assert_int_equal((next - first) % interval, 0);
    }
}

/* ---- many locks, with a clock of their own ---- */

/* All instants are multiples of 10 ms, and each is one turn of the loop. */
#define TURN MS(10)
#define TURNS 1024 /* more than an interval of these locks */

struct fleet_lock {
    TAILQ_ENTRY(fleet_lock) link;
    uint64_t phase, at, ttl;
};

TAILQ_HEAD(due, fleet_lock);

struct fleet {
    struct ticks ticks;
    struct fleet_lock *locks;
    struct due due[TURNS]; /* the locks by the turn in which they renew */
    unsigned count;
    uint64_t now, seed;
    uint64_t renewals, calls; /* of one master, since fleet_reset */
};

static void fleet_init(struct fleet *fleet, unsigned most, uint64_t seed) {
    *fleet = (struct fleet){.now = START, .seed = seed};
    ticks_init(&fleet->ticks, ROOM, &fleet->seed);
    fleet->locks = calloc(most, sizeof(*fleet->locks));
    assert_non_null(fleet->locks);
    for (size_t i = 0; i < TURNS; i++) {
        TAILQ_INIT(&fleet->due[i]);
    }
}

static struct due *due_at(struct fleet *fleet, uint64_t instant) {
    return &fleet->due[instant / TURN % TURNS];
}

static void plan(struct fleet *fleet, struct fleet_lock *lock, uint64_t start) {
    lock->at = renewal_next(&lock->phase, lock->ttl, start, &fleet->ticks);
    assert_int_equal(lock->at % TURN, 0);
    assert_true(lock->at < start + TURNS * TURN);
    TAILQ_INSERT_TAIL(due_at(fleet, lock->at), lock, link);
}

static void fleet_reset(struct fleet *fleet) {
    fleet->renewals = fleet->calls = 0;
}

static void fleet_acquire(struct fleet *fleet, uint64_t ttl) {
    struct fleet_lock *lock = &fleet->locks[fleet->count++];
    ticks_add(&fleet->ticks);
    lock->ttl = ttl;
    lock->phase = renewal_draw_phase(fleet->now, ttl, &fleet->seed);
    plan(fleet, lock, fleet->now);
}

static void fleet_release(struct fleet *fleet) {
    struct fleet_lock *lock = &fleet->locks[--fleet->count];
    TAILQ_REMOVE(due_at(fleet, lock->at), lock, link);
    ticks_remove(&fleet->ticks);
}

/* Renews the locks that are due in this turn of the loop. */
static void fleet_turn(struct fleet *fleet, uint64_t turn) {
    struct due *due = due_at(fleet, turn);
    struct fleet_lock *lock;
    uint64_t count = 0;
    for (; (lock = TAILQ_FIRST(due)) != NULL; count++) {
        assert_int_equal(lock->at, turn);
        TAILQ_REMOVE(due, lock, link);
        plan(fleet, lock, turn);
    }
    fleet->renewals += count;
    fleet->calls += (count + SCRIPT_MAX_KEYS - 1) / SCRIPT_MAX_KEYS;
}

static void fleet_pass(struct fleet *fleet, uint64_t nanos) {
    uint64_t end = fleet->now + nanos;
    uint64_t turn = fleet->now - fleet->now % TURN + TURN;
    for (; turn <= end; turn += TURN) {
        fleet_turn(fleet, turn);
    }
    fleet->now = end;
}

/* Number of calls per second, in whole seconds of one TTL of 10 s. */
static double fleet_calls_per_s(struct fleet *fleet) {
    fleet_reset(fleet);
    fleet_pass(fleet, MS(9990));
    return (double)fleet->calls / 9.99;
}

static void fleet_finish(struct fleet *fleet) {
    free(fleet->locks);
}

static void test_many_locks_share_few_calls(void **state) {
    (void)state;
    static const uint64_t pauses[] = {0, MS(1), MS(7), MS(40)}; /* between acquisitions */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fleet fleet;
        fleet_init(&fleet, 1000, seed);
        while (fleet.count < 1000) {
            fleet_acquire(&fleet, MS(10000));
            fleet_pass(&fleet, pauses[seed % COUNT_OF(pauses)]);
        }
        fleet_pass(&fleet, MS(10000));
        assert_true(fleet_calls_per_s(&fleet) <= 15);
        assert_int_equal(fleet.renewals, 3000); /* no more than without ticks */
        fleet_finish(&fleet);
    }
}

static void test_calls_stay_full_as_locks_come_and_go(void **state) {
    (void)state;
    struct fleet fleet;
    fleet_init(&fleet, 12000, 1);
    for (unsigned size = 1000; size <= 12000; size += 1000) {
        while (fleet.count < size) {
            fleet_acquire(&fleet, MS(10000));
            fleet_pass(&fleet, MS(1) / 2);
        }
        fleet_pass(&fleet, MS(10000));
        fleet_calls_per_s(&fleet);
        assert_true(fleet.renewals >= 24 * fleet.calls);
        assert_int_equal(fleet.renewals, 3 * size);
    }
    while (fleet.count > 1000) {
        fleet_release(&fleet);
    }
    fleet_pass(&fleet, MS(10000));
    assert_true(fleet_calls_per_s(&fleet) <= 15);
    fleet_finish(&fleet);
}

/* Locks move to other ticks as their number grows, and a move takes no renewal of its own. */
static void test_growing_costs_few_renewals(void **state) {
    (void)state;
    struct fleet fleet;
    fleet_init(&fleet, 12000, 1);
    while (fleet.count < 12000) {
        fleet_acquire(&fleet, MS(10000));
    }
    fleet_pass(&fleet, MS(3330));
    fleet_calls_per_s(&fleet);
    assert_int_in_range(fleet.renewals, 3 * 12000, 3 * 12000 * 103 / 100);
    fleet_finish(&fleet);
}

/* The top-ups of the locks of a tick leave room for other commands. */
static void test_ticks_are_as_small_as_the_room(void **state) {
    (void)state;
    static const uint32_t rooms[] = {16, 64, 128, ROOM, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(rooms); i++) {
        struct ticks ticks;
        uint64_t seed = i;
        ticks_init(&ticks, rooms[i], &seed);
        for (uint32_t locks = 1; locks <= 5000; locks++) {
            ticks_add(&ticks);
            uint64_t each = locks / ticks.count;
            assert_true(each <= rooms[i] / 4 && each < SCRIPT_MAX_KEYS);
        }
        for (uint32_t locks = 5000; locks > 0; locks--) {
            ticks_remove(&ticks);
        }
        assert_int_equal(ticks.count, TICKS_LEAST);
    }
}

/* Ticks of different lengths, none later than the locks' own third of the TTL. */
static void test_locks_with_different_ttls_share_calls(void **state) {
    (void)state;
    struct fleet fleet;
    fleet_init(&fleet, 3000, 1);
    while (fleet.count < 3000) {
        fleet_acquire(&fleet, MS(10000) + fleet.count % 3 * MS(5000));
    }
    fleet_pass(&fleet, MS(20000));
    fleet_calls_per_s(&fleet);
    assert_true(fleet.renewals >= 12 * fleet.calls);
    fleet_finish(&fleet);
}

/* The ticks of each client have their own offset: their first renewals are spread. */
static void test_clients_do_not_renew_in_step(void **state) {
    (void)state;
    enum { CLIENTS = 2000, PARTS = 10 };
    unsigned parts[PARTS] = {0};
    uint64_t interval = renewal_interval(MS(10000));
    for (uint64_t seed = 1; seed <= CLIENTS; seed++) {
        struct fleet fleet;
        fleet_init(&fleet, 1, seed);
        fleet_acquire(&fleet, MS(10000));
        parts[(fleet.locks[0].at - START - 1) * PARTS / interval]++;
        fleet_finish(&fleet);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        assert_int_in_range(parts[i], CLIENTS / PARTS * 3 / 4, CLIENTS / PARTS * 5 / 4);
    }
}

/* ---- failed renewals ---- */

static void test_a_failed_renewal_is_tried_again_after_nearly_half(void **state) {
    (void)state;
    uint64_t interval = renewal_interval(MS(10000));
    struct ticks ticks = ticks_of(1000, 1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t drawn = seed;
        uint64_t at = renewal_retry(START, MS(8000), MS(10000), &drawn, &ticks);
        assert_int_in_range(at - START, MS(3000) - interval / TICKS_LEAST - MS(10), MS(4000));
        assert_int_equal(at % MS(10), 0);
    }
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t seed = 1;
        assert_true(renewal_retry(START, 0, ttls[i], &seed, &ticks) - START >= ttls[i] / 20);
    }
}

static void test_retries_share_calls(void **state) {
    (void)state;
    enum { LOCKS = 1000 };
    struct ticks ticks = ticks_of(LOCKS, 1);
    uint64_t seed = 1, instants[LOCKS];
    unsigned turns = 0;
    for (unsigned i = 0; i < LOCKS; i++) {
        instants[i] = renewal_retry(START, MS(6000), MS(10000), &seed, &ticks);
        unsigned known = 0;
        while (instants[known] != instants[i]) {
            known++;
        }
        turns += known == i;
    }
    assert_int_in_range(turns, 2, 12); /* the draws span 750 ms: 76 grains */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_interval_is_a_third_of_the_ttl_or_a_grain_less),
        cmocka_unit_test(test_phases_are_spread_over_an_interval),
        cmocka_unit_test(test_a_renewal_is_never_late),
        cmocka_unit_test(test_a_lock_renews_once_in_an_interval),
        cmocka_unit_test(test_a_late_lock_returns_to_its_tick),
        cmocka_unit_test(test_many_locks_share_few_calls),
        cmocka_unit_test(test_calls_stay_full_as_locks_come_and_go),
        cmocka_unit_test(test_growing_costs_few_renewals),
        cmocka_unit_test(test_ticks_are_as_small_as_the_room),
        cmocka_unit_test(test_locks_with_different_ttls_share_calls),
        cmocka_unit_test(test_clients_do_not_renew_in_step),
        cmocka_unit_test(test_a_failed_renewal_is_tried_again_after_nearly_half),
        cmocka_unit_test(test_retries_share_calls),
    };
    return cmocka_run_group_tests_name("renewal", tests, NULL, NULL);
}
