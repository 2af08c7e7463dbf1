#include "rig.h"

#include "base/nanos.h"
#include "core/renewal.h"
#include "core/validity.h"
#include "unit.h"

#include <string.h>

/*
 * Number of other locks in the ticks of a lease: so that the copies of a lease, which use its
 * ticks, may all end.
 */
#define OTHER_LOCKS 100

struct lease_terms rig_terms(void) {
    static uint64_t seed; /* of leases without a rig */
    static struct ticks ticks = {.locks = OTHER_LOCKS, .count = TICKS_LEAST, .most = 56};
    static const struct patience patience = {.least = MS(50), .most = MS(50)};
    return (struct lease_terms){.seed = &seed,
                                .ticks = &ticks,
                                .drift = 0.01,
                                .ttl = MS(10000),
                                .patience = &patience,
                                .connect_patience = MS(50),
                                .retry_delay = MS(200),
                                .retry_delay_max = MS(2000),
                                .wait = NANOS_NEVER,
                                .max_hold = NANOS_NEVER};
}

/* ---- what always holds ---- */

#define TO(state) (1u << LEASE_##state)

/* Allowed changes of state, as in core/lease.h; an event may also leave the state unchanged. */
static const unsigned arrows[] = {
    [LEASE_STARTING] = TO(ACQUIRING) | TO(QUEUED) | TO(OVER),
    [LEASE_ACQUIRING] =
        TO(HELD) | TO(RAISING) | TO(QUEUED) | TO(BACKOFF) | TO(DIAGNOSING) | TO(OVER),
    [LEASE_QUEUED] =
        TO(ACQUIRING) | TO(HELD) | TO(RAISING) | TO(BACKOFF) | TO(DIAGNOSING) | TO(OVER),
    [LEASE_RAISING] = TO(HELD) | TO(BACKOFF) | TO(DIAGNOSING) | TO(OVER),
    [LEASE_BACKOFF] = TO(ACQUIRING) | TO(OVER),
    [LEASE_DIAGNOSING] = TO(OVER),
    [LEASE_HELD] = TO(RENEWING) | TO(LOST) | TO(RELEASING),
    [LEASE_RENEWING] = TO(HELD) | TO(LOST) | TO(RELEASING),
    [LEASE_LOST] = TO(RELEASING),
    [LEASE_RELEASING] = TO(OVER),
    [LEASE_OVER] = 0,
};

static bool is_held(enum lease_state state) {
    return state == LEASE_HELD || state == LEASE_RENEWING;
}

static bool is_acquiring(enum lease_state state) {
    return state == LEASE_STARTING || state == LEASE_ACQUIRING || state == LEASE_RAISING ||
           state == LEASE_BACKOFF || state == LEASE_DIAGNOSING || state == LEASE_QUEUED;
}

static void check_timer(const struct lease *lease) {
    bool waits = lease->state != LEASE_LOST && lease->state != LEASE_OVER;
    assert_int_equal(lease->wake_at != NANOS_NEVER, waits);
    if (is_held(lease->state)) {
        assert_true(lease->wake_at <=
                    lease->holding.lost_at); /* the timer is never later than the loss */
        assert_true(lease->holding.lost_at <= lease->holding.validity_end);
    }
}

static void check_validity(const struct rig *rig) {
    uint64_t validity = lease_validity(&rig->lease, rig->now);
    if (is_held(rig->lease.state)) {
        assert_true(validity <= nanos_sub(rig->best_end, rig->now));
    } else {
        assert_int_equal(validity, 0);
    }
}

static void count_notifications(struct rig *rig) {
    unsigned notifications = rig->update.notifications;
    rig->acquired += (notifications & LEASE_ACQUIRED) != 0;
    rig->extended += (notifications & LEASE_EXTENDED) != 0;
    rig->losses += (notifications & LEASE_LOSS) != 0;
    rig->released += (notifications & LEASE_RELEASED) != 0;
    assert_int_equal(rig->acquired, is_acquiring(rig->lease.state) ? 0 : 1);
    assert_int_equal(rig->extended + rig->lease.extending, rig->extensions);
    assert_true(rig->losses <= 1);
    assert_true(rig->released <= 1);
    if (rig->lease.state == LEASE_LOST) {
        assert_int_equal(rig->losses, 1);
    }
}

/*
 * Checks that nodes are topped up only while the lock is held, once a round, and only where the key
 * is missing or was not requested, unless they join or have waited for room.
 */
static void check_top_up(struct rig *rig, const struct round *before) {
    uint32_t nodes = rig->update.top_up;
    uint32_t left_free = round_voters(before, REDLOCK_VOTE_UNTRUSTED) & before->left_free;
    uint32_t lacking = round_voters(before, REDLOCK_VOTE_MISSING) | left_free | ~before->members;
    if (nodes == 0) {
        return;
    }
    assert_true(is_held(rig->lease.state));
    assert_int_equal(nodes & ~(rig->unasked != 0 ? rig->unasked : lacking), 0);
    assert_int_equal(nodes & ~(rig->lists.now | rig->lists.next), 0);
    assert_int_equal(nodes & rig->topped_up & ~rig->unasked, 0);
    assert_int_equal(rig->lease.may_hold & nodes, nodes);
    bool has_quorum = round_was_kept(before) || round_was_granted_late(before);
    uint64_t until = rig->unasked == 0 && has_quorum ? before->start + before->ttl
                                                     : rig->lease.holding.validity_end;
    assert_true(nanos_add(rig->now, rig->update.top_up_ttl) <= until);
    rig->topped_up |= nodes;
}

static bool is_state_of(enum round_kind kind, enum lease_state state) {
    switch (kind) {
    case ROUND_ACQUIRE:
    case ROUND_QUEUE:
        return state == LEASE_ACQUIRING;
    case ROUND_RAISE:
        return state == LEASE_RAISING;
    case ROUND_RENEW:
        return state == LEASE_RENEWING;
    case ROUND_RELEASE:
        return state == LEASE_RELEASING;
    default:
        return state == LEASE_DIAGNOSING;
    }
}

/* Carries out an update once, right after the event, as lib/lock/lock.c does. */
static void carry_out(struct rig *rig, enum lease_state before) {
    const struct lease_update *update = &rig->update;
    enum lease_state after = rig->lease.state;
    assert_true(before == after || (arrows[before] & 1u << after) != 0);
    assert_true(update->undo == 0 || before == LEASE_ACQUIRING || before == LEASE_RAISING ||
                before == LEASE_DIAGNOSING || before == LEASE_QUEUED);
    count_notifications(rig);
    check_timer(&rig->lease);
    check_validity(rig);
    check_top_up(rig, &rig->round);
    assert_true(!update->top_up_later ||
                (update->top_up == 0 && update->notifications == LEASE_ACQUIRED));
    if (!update->send) {
        return;
    }
    assert_true(is_state_of(update->round, after));
    rig->is_unsent = rig->without_memory;
    rig->topped_up = 0;
    if (!rig->without_memory) {
        round_begin(&rig->round, rig->answers, update->round, rig->lists, rig->now, update->ttl,
                    update->awaited);
        rig->round.usable_until = update->usable_until;
        lease_sent(&rig->lease, &rig->round, rig->now);
        bool is_try = update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE;
        if (is_try && rig->lease.terms->permits > 0) {
            permits_begin(&rig->permits, rig->lease.terms->permits);
            rig->round.permits = &rig->permits;
        }
    }
}

/* ---- events ---- */

void rig_start_at(struct rig *rig, const struct lease_terms *terms, struct quorum_lists lists,
                  uint64_t seed) {
    memset(rig, 0, sizeof(*rig));
    rig->now = T0;
    rig->lists = lists;
    memset(&rig->lease, 0xa5, sizeof(rig->lease));
    memset(&rig->update, 0xa5, sizeof(rig->update));
    rig->terms = *terms;
    rig->terms.seed = &rig->seed;
    rig->seed = seed;
    rig->terms.ticks = &rig->ticks;
    rig->ticks = (struct ticks){
        .offset = seed * MS(7), .locks = OTHER_LOCKS, .count = TICKS_LEAST, .most = 56};
    lease_start(&rig->lease, &rig->terms, lists.now | lists.next, 0, rig->now);
    lease_begin(&rig->lease, rig->now, &rig->update);
    carry_out(rig, LEASE_ACQUIRING);
}

void rig_start(struct rig *rig, const struct lease_terms *terms, uint64_t seed) {
    rig_start_at(rig, terms, (struct quorum_lists){0x1f, 0}, seed);
}

void rig_move(struct rig *rig, struct quorum_lists lists) {
    enum lease_state before = rig->lease.state;
    rig->unasked = (lists.now | lists.next) & ~(rig->lists.now | rig->lists.next);
    rig->lists = lists;
    lease_move(&rig->lease, lists.now | lists.next, rig->now, &rig->update);
    carry_out(rig, before);
    rig->unasked = 0;
}

void rig_pass(struct rig *rig, uint64_t nanos) {
    rig->now += nanos;
}

/* Records the end of the validity that the round's nodes have promised. */
static void record_end(struct rig *rig) {
    const struct round *round = &rig->round;
    uint64_t end = validity_end(round->start, round->ttl, rig->lease.terms->drift);
    rig->best_end = nanos_max(rig->best_end, end);
}

static void report_verdict(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    const struct round *round = &rig->round;
    if (round->verdict == ROUND_YES &&
        (round->kind != ROUND_RELEASE && round->kind != ROUND_DIAGNOSE)) {
        record_end(rig);
    }
    lease_decided(&rig->lease, round, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_late_votes(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    if (round_was_granted_late(&rig->round)) {
        record_end(rig);
    }
    lease_late_votes(&rig->lease, &rig->round, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_without_room(struct rig *rig, uint32_t nodes) {
    assert_int_equal(nodes & ~rig->update.top_up, 0);
    lease_await_room(&rig->lease, nodes);
}

void rig_has_room(struct rig *rig, uint32_t nodes) {
    enum lease_state before = rig->lease.state;
    uint32_t awaited = lease_awaits_room(&rig->lease);
    rig->unasked = nodes & awaited;
    lease_has_room(&rig->lease, nodes, rig->now, &rig->update);
    assert_int_equal(lease_awaits_room(&rig->lease), awaited & ~nodes);
    carry_out(rig, before);
    rig->unasked = 0;
}

static bool cast(struct rig *rig, uint32_t node, redlock_vote vote) {
    if (vote == REDLOCK_VOTE_REFUSED) {
        round_record_refusing(&rig->round, node);
    }
    return vote == REDLOCK_VOTE_GRANTED ? round_grant(&rig->round, node, rig->counter)
                                        : round_vote(&rig->round, node, vote, 0);
}

void rig_push(struct rig *rig, uint32_t node, uint64_t until) {
    enum lease_state before = rig->lease.state;
    if (!round_awaits_push(&rig->round, node)) {
        return;
    }
    if (round_push(&rig->round, node, rig->counter, until)) {
        rig->best_end = nanos_max(rig->best_end, round_certain_until(&rig->round, NANOS_NEVER));
        report_verdict(rig);
    } else {
        lease_late_votes(&rig->lease, &rig->round, rig->now, &rig->update);
        carry_out(rig, before);
    }
}

void rig_vote(struct rig *rig, uint32_t node, redlock_vote vote) {
    if (cast(rig, node, vote)) {
        report_verdict(rig);
    } else if (lease_heeds(&rig->round, vote)) {
        rig_late_votes(rig);
    }
}

void rig_votes(struct rig *rig, const char *votes) {
    static const char letters[] = " GDWPME-URB"; /* in the order of redlock_vote */
    bool decided = false, late = false;
    for (uint32_t i = 0; votes[i] != '\0'; i++) {
        const char *letter = strchr(letters, votes[i]);
        assert_non_null(letter);
        redlock_vote vote = (redlock_vote)(letter - letters);
        if (vote != REDLOCK_VOTE_NONE) {
            late = late || (rig->round.verdict != ROUND_OPEN && !decided);
            decided = cast(rig, i, vote) || decided;
        }
    }
    if (decided) {
        report_verdict(rig);
    } else if (late || rig->round.kind == ROUND_QUEUE) {
        rig_late_votes(rig);
    }
}

void rig_says_free(struct rig *rig, uint32_t nodes, uint32_t permit) {
    for (uint32_t i = 0; i < nodes; i++) {
        permits_record(&rig->permits, i, permit);
    }
}

void rig_offers(struct rig *rig, uint32_t node, uint32_t permit) {
    permits_add_offer(&rig->permits, node, permit);
    rig_late_votes(rig);
}

void rig_wake(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    const struct round_silence silence = {
        .late = rig->now >= rig->round.sent_at + MS(50) ? rig->round.silent & ~rig->busy : 0,
        .next = rig->busy != 0 ? rig->now + MS(50) : NANOS_NEVER,
    };
    lease_woken(&rig->lease, &rig->round, &silence, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_wake_on_time(struct rig *rig) {
    assert_int_not_equal(rig->lease.wake_at, NANOS_NEVER);
    rig->now = nanos_max(rig->now, rig->lease.wake_at);
    rig_wake(rig);
}

void rig_out_of_memory(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    rig->is_unsent = false;
    lease_out_of_memory(&rig->lease, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_renew_now(struct rig *rig) {
    rig_renew_now_by(rig, UINT32_MAX);
}

void rig_renew_now_by(struct rig *rig, uint32_t up) {
    enum lease_state before = rig->lease.state;
    lease_renew_now(&rig->lease, &rig->round, up, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_ask_again(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    lease_ask_again(&rig->lease, &rig->round, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_key_changed_at(struct rig *rig, uint32_t node) {
    round_record_changed(&rig->round, UINT32_C(1) << node);
    rig_key_changed(rig);
}

void rig_key_changed(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    lease_key_changed(&rig->lease, &rig->round, rig->now, &rig->update);
    carry_out(rig, before);
}

redlock_status rig_cancel(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    redlock_status status = lease_cancel(&rig->lease, &rig->round, rig->now, &rig->update);
    carry_out(rig, before);
    return status;
}

redlock_status rig_extend(struct rig *rig, uint64_t ttl) {
    enum lease_state before = rig->lease.state;
    redlock_status status = lease_extend(&rig->lease, &rig->round, ttl, rig->now, &rig->update);
    rig->extensions += status == REDLOCK_OK;
    carry_out(rig, before);
    return status;
}

redlock_status rig_release(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    redlock_status status = lease_release(&rig->lease, rig->now, &rig->update);
    carry_out(rig, before);
    return status;
}

void rig_close(struct rig *rig) {
    enum lease_state before = rig->lease.state;
    lease_close(&rig->lease, &rig->round, rig->now, &rig->update);
    carry_out(rig, before);
}

void rig_renew_at_the_end(struct rig *rig) {
    struct lease *lease = &rig->lease;
    uint64_t last = nanos_add(lease->completed_at, lease->terms->max_hold);
    uint64_t interval = renewal_interval(lease->ttl);
    lease->holding.phase = rig->round.start + interval;
    rig->ticks.offset = interval - lease->holding.phase % interval; /* a tick begins then */
    if (lease->terms->watchdog) {
        lease->renews = lease->holding.phase <= last;
        lease->wake_at =
            nanos_min(lease->renews ? lease->holding.phase : NANOS_NEVER, lease->holding.lost_at);
    }
}

void rig_hold(struct rig *rig, const struct lease_terms *terms, const char *votes) {
    rig_start(rig, terms, 1);
    rig_votes(rig, votes);
    assert_state(rig, LEASE_HELD);
    rig_renew_at_the_end(rig);
}

/* ---- assertions ---- */

void assert_sent(const struct rig *rig, enum round_kind kind) {
    assert_true(rig->update.send);
    assert_int_equal(rig->update.round, kind);
}

void assert_nothing_sent(const struct rig *rig) {
    assert_false(rig->update.send);
    assert_int_equal(rig->update.undo, 0);
    assert_int_equal(rig->update.top_up, 0);
}

void assert_state(const struct rig *rig, enum lease_state state) {
    assert_string_equal(lease_state_name(rig->lease.state), lease_state_name(state));
}
