/*
 * Tests a lease that is held: renewals and their failures, extensions, top-ups, and the loss in
 * time.
 */
#include "base/nanos.h"
#include "rig.h"
#include "unit.h"

/* Interval of the renewals of a lock with a TTL of 10 s: a multiple of 10 ms. */
#define INTERVAL MS(3330)

static struct lease_terms watched(void) {
    struct lease_terms terms = rig_terms();
    terms.watchdog = true;
    return terms;
}

static void assert_lost(const struct rig *rig, redlock_status status) {
    assert_state(rig, LEASE_LOST);
    assert_true(rig->update.notifications & LEASE_LOSS);
    assert_int_equal(rig->update.loss, status);
    assert_nothing_sent(rig);
    assert_int_equal(lease_validity(&rig->lease, rig->now), 0);
}

static void assert_extended(const struct rig *rig, redlock_status status) {
    assert_true(rig->update.notifications & LEASE_EXTENDED);
    assert_int_equal(rig->update.extended, status);
}

/* ---- renewals ---- */

static void test_a_renewal_that_was_not_sent_has_no_round_to_expire(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    lease_woken(&rig.lease, NULL, NULL, rig.lease.wake_at, &rig.update);
    assert_state(&rig, LEASE_RENEWING);
    assert_nothing_sent(&rig);
}

/* Holds a lock whose key nodes watch. */
static void hold_watched(struct rig *rig) {
    struct lease_terms terms = watched();
    terms.watches = true;
    rig_hold(rig, &terms, "GGGGG");
    assert_true(rig->update.watch);
}

static void test_a_change_is_looked_into_at_once(void **state) {
    (void)state;
    struct rig rig;
    hold_watched(&rig);
    rig_pass(&rig, MS(100));
    rig_key_changed(&rig);
    assert_nothing_sent(&rig);
    rig_wake(&rig);
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "GGGMM");
    assert_state(&rig, LEASE_HELD);
    assert_true(rig.update.watch);
    assert_int_equal(rig.topped_up, 0x18);
}

static void test_a_change_finds_a_loss(void **state) {
    (void)state;
    struct rig rig;
    hold_watched(&rig);
    rig_pass(&rig, MS(100));
    rig_key_changed(&rig);
    rig_wake(&rig);
    rig_votes(&rig, "DMM");
    assert_lost(&rig, REDLOCK_ELOST);
    assert_false(rig.update.watch);
    rig_key_changed(&rig);
    assert_nothing_sent(&rig);
}

/*
 * A server that sends change notifications forever causes at most four renewals a second in the
 * end.
 */
static void test_changes_without_end_are_looked_into_seldom(void **state) {
    (void)state;
    static const uint64_t pauses_ms[] = {20, 40, 80, 160, 250, 250, 250};
    struct rig rig;
    hold_watched(&rig);
    rig_pass(&rig, MS(100));
    rig_key_changed(&rig);
    rig_wake(&rig);
    for (size_t i = 0; i < COUNT_OF(pauses_ms); i++) {
        uint64_t asked_at = rig.now;
        assert_sent(&rig, ROUND_RENEW);
        rig_key_changed(&rig);
        assert_state(&rig, LEASE_RENEWING);
        rig_votes(&rig, "GGGGG");
        rig_key_changed(&rig);
        assert_int_equal(rig.lease.wake_at, asked_at + MS(pauses_ms[i]));
        rig_wake_on_time(&rig);
    }
    rig_votes(&rig, "GGGGG");
    rig_wake_on_time(&rig); /* as usual */
    assert_int_equal(rig.lease.change_rounds, 0);
}

static void test_the_count_of_changes_has_an_end(void **state) {
    (void)state;
    struct rig rig;
    hold_watched(&rig);
    for (unsigned i = 0; i < 300; i++) {
        rig_pass(&rig, MS(300));
        rig_key_changed(&rig);
        rig_wake(&rig);
        rig_votes(&rig, "GGGGG");
    }
    assert_int_equal(rig.lease.change_rounds, 255);
}

static void test_without_watching_a_change_is_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGGGG");
    assert_false(rig.update.watch);
    uint64_t wake_at = rig.lease.wake_at;
    rig_key_changed(&rig);
    assert_int_equal(rig.lease.wake_at, wake_at);
}

/* No renewal is due any more: the lock is held to its end. */
static void test_a_hint_after_the_longest_hold_is_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.watches = true;
    terms.max_hold = MS(1);
    rig_hold(&rig, &terms, "GGGGG");
    rig_key_changed(&rig);
    assert_int_equal(rig.lease.wake_at, rig.lease.holding.lost_at);
}

static void test_a_watchdog_renews_every_third_of_the_ttl(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    uint64_t begun = T0;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(rig.lease.wake_at, begun + INTERVAL);
        rig_wake_on_time(&rig);
        assert_state(&rig, LEASE_RENEWING);
        assert_sent(&rig, ROUND_RENEW);
        assert_int_equal(rig.update.notifications, 0);
        assert_int_equal(rig.lease.wake_at, rig.now + (rig.lease.holding.lost_at - rig.now) / 2);
        begun = rig.now;
        rig_pass(&rig, MS(9));
        rig_votes(&rig, "GGG");
        assert_state(&rig, LEASE_HELD);
        assert_int_equal(rig.update.notifications, 0); /* no notification for the application */
        assert_int_equal(lease_validity(&rig.lease, rig.now), MS(9898 - 9));
    }
}

static void test_without_a_watchdog_nothing_is_renewed(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    assert_false(rig.lease.renews);
    rig_wake_on_time(&rig);
    assert_lost(&rig, REDLOCK_EEXPIRED);
}

static void test_a_timer_that_is_early_renews_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    for (unsigned i = 0; i < 2; i++) { /* while held, then while renewing */
        rig.now = rig.lease.wake_at - 1;
        enum lease_state before = rig.lease.state;
        rig_wake(&rig);
        assert_state(&rig, before);
        assert_nothing_sent(&rig);
        rig_wake_on_time(&rig);
    }
}

/*
 * The granularity of a loop's clock must not delay the notification of the loss: it comes up to 10
 * ms early.
 */
static void test_the_loss_is_reported_before_the_validity_ends(void **state) {
    (void)state;
    static const struct {
        uint64_t ttl, took, end, reported;
    } rows[] = {
        {MS(10000), 0, MS(9898), MS(9888)},        {MS(10000), MS(9818), MS(9898), MS(9888)},
        {MS(10000), MS(9858), MS(9898), MS(9893)}, /* 1/8 of the time left */
        {MS(100), 0, MS(97), MS(97) - 10000000},   {MS(50), MS(7), 47500000, 47500000 - 5062500},
        {MS(3), 0, 970000, 970000 - 121250},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.ttl = rows[i].ttl;
        rig_start(&rig, &terms, 1);
        rig_pass(&rig, rows[i].took);
        rig_votes(&rig, "GGG");
        assert_int_equal(rig.lease.holding.validity_end, T0 + rows[i].end);
        assert_int_equal(rig.lease.wake_at, T0 + rows[i].reported);
        rig.now = rig.lease.wake_at - 1;
        rig_wake(&rig);
        assert_state(&rig, LEASE_HELD);
        rig_wake_on_time(&rig);
        assert_lost(&rig, REDLOCK_EEXPIRED);
    }
}

/* The instant of the first renewal is drawn, and later renewals keep to it. */
static void test_locks_that_were_acquired_together_are_renewed_apart(void **state) {
    (void)state;
    enum { LOCKS = 1000, PARTS = 10 };
    unsigned parts[PARTS] = {0};
    for (uint64_t seed = 1; seed <= LOCKS; seed++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_start(&rig, &terms, seed * 7919);
        rig_votes(&rig, "GGG");
        uint64_t first = rig.lease.wake_at;
        assert_int_in_range(first, T0 + 1, T0 + INTERVAL);
        parts[(first - T0 - 1) * PARTS / INTERVAL]++;
        rig_wake_on_time(&rig);
        rig_votes(&rig, "GGG");
        assert_int_equal(rig.lease.wake_at, first + INTERVAL);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        assert_int_in_range(parts[i], LOCKS / PARTS / 2, LOCKS / PARTS * 2);
    }
}

/*
 * After a busy loop, all renewals that were due are sent at once, and are spread again afterwards.
 */
static void test_a_busy_loop_leaves_locks_apart(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_start(&rig, &terms, seed);
        rig_votes(&rig, "GGG");
        uint64_t first = rig.lease.wake_at;
        rig.now = T0 + MS(5000);
        rig_wake(&rig);
        assert_state(&rig, LEASE_RENEWING);
        rig_votes(&rig, "GGG");
        assert_int_in_range(rig.lease.wake_at, rig.now + 1, rig.now + INTERVAL);
        assert_int_equal((rig.lease.wake_at - first) % INTERVAL, 0);
    }
}

static void test_a_failed_renewal_is_tried_again(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_start(&rig, &terms, seed);
        rig_votes(&rig, "GGG");
        unsigned renewals = 0;
        while (rig.lease.state != LEASE_LOST) {
            rig_wake_on_time(&rig);
            if (rig.lease.state == LEASE_RENEWING) {
                renewals++;
                rig_votes(&rig, "UUUGG");
                assert_state(&rig, LEASE_HELD);
                uint64_t left = rig.lease.holding.lost_at - rig.now;
                uint64_t tick = INTERVAL / TICKS_LEAST + MS(10);
                uint64_t least = nanos_max(nanos_sub(left / 8 * 3, tick), MS(500));
                uint64_t most = nanos_max(left / 8 * 3, MS(500)) + nanos_max(left / 8, MS(1));
                assert_int_in_range(rig.lease.wake_at - rig.now, nanos_min(least, left),
                                    nanos_min(most, left));
            }
        }
        assert_lost(&rig, REDLOCK_EEXPIRED);
        assert_int_equal(rig.now, T0 + MS(9888)); /* the retries do not delay the loss */
        assert_int_in_range(renewals, 4, 8);      /* few, however many locks there are */
    }
}

/* A renewal brought forward asks nodes that have come back, but not forever without success. */
static void test_a_lock_is_renewed_at_once_when_a_node_comes_up(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_renew_now(&rig); /* nothing has failed */
    assert_nothing_sent(&rig);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "UUUGG");
    for (unsigned i = 0; i < 5; i++) {
        rig_renew_now(&rig);
        assert_state(&rig, LEASE_RENEWING);
        rig_renew_now(&rig); /* a renewal is in flight */
        assert_nothing_sent(&rig);
        rig_votes(&rig, "UUUGG");
        assert_state(&rig, LEASE_HELD);
    }
    rig_renew_now(&rig);
    assert_state(&rig, LEASE_HELD);
    assert_nothing_sent(&rig);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGG");
    assert_false(rig.lease.is_unrenewed);
    assert_int_equal(rig.lease.early_renewals, 0);
}

/* Nodes answer in order: a second question would be answered no earlier than the first one. */
static void test_silent_nodes_are_not_asked_again(void **state) {
    (void)state;
    static const char *const votes[] = {"", "G", "GG", "GE", "MM", "MMG", "UB", "GM U"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        uint64_t begun = rig.now;
        rig_votes(&rig, votes[i]);
        for (unsigned wakes = 0; rig.lease.state == LEASE_RENEWING; wakes++) {
            rig_wake_on_time(&rig);
            assert_nothing_sent(&rig);
            assert_true(wakes < 20);
        }
        assert_int_equal(rig.round.start, begun);
        assert_lost(&rig, REDLOCK_EEXPIRED);
        assert_int_equal(rig.now, T0 + MS(9888));
    }
}

/* A late answer counts as well as one in time. */
static void test_a_renewal_is_waited_for_to_the_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    uint64_t begun = rig.now;
    rig_wake_on_time(&rig);
    assert_true(rig.lease.is_unrenewed);
    rig.now = rig.lease.holding.lost_at - 1;
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_false(rig.lease.is_unrenewed);
    assert_int_equal(rig.lease.holding.validity_end, begun + MS(9898));
}

/*
 * If the nodes that have failed could make a quorum next time, the silent ones are not waited for.
 */
static void test_a_renewal_has_half_of_what_is_left(void **state) {
    (void)state;
    static const char *const votes[] = {"EE", "GE", "GGE", "UB", "GGB"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        rig_votes(&rig, votes[i]);
        bool is_stuck = rig.lease.state == LEASE_RENEWING && !round_needs_silent(&rig.round);
        uint64_t since = rig.now;
        rig_wake_on_time(&rig);
        if (is_stuck) {
            assert_int_equal(rig.now, since + (T0 + MS(9888) - since) / 2);
            assert_state(&rig, LEASE_HELD);
            assert_true(rig.lease.is_unrenewed);
        }
    }
}

/* A node has come up whose connection broke during the renewal; other nodes are silent. */
static void test_a_renewal_that_waits_is_sent_anew_too(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "B");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_RENEWING);
    rig_renew_now(&rig); /* useless with four silent nodes */
    assert_nothing_sent(&rig);
    rig_votes(&rig, " GB");
    rig_renew_now(&rig);
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
}

/* As nodes come up one by one, only those that can complete the quorum bring a renewal forward. */
static void test_a_renewal_under_way_is_not_sent_for_each_node(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GUUUU");
    assert_state(&rig, LEASE_HELD);
    rig_renew_now_by(&rig, 0x7);
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "G  UU");    /* slow: 1 and 2 have not answered */
    rig_renew_now_by(&rig, 0xf); /* 0 and 3 alone are no quorum */
    assert_nothing_sent(&rig);
    rig_renew_now_by(&rig, 0x1f);
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "GGG");
    assert_false(rig.lease.is_unrenewed);
}

/* The timer and the verdict coincide: the round is over, whichever nodes are silent. */
static void test_a_verdict_is_not_waited_for(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    for (uint32_t node = 0; node < 3; node++) {
        round_vote(&rig.round, node, REDLOCK_VOTE_MISSING, 0);
    }
    rig_wake_on_time(&rig);
    assert_lost(&rig, REDLOCK_ELOST);
}

/*
 * A renewal is not brought forward during an extension, for a decided round, or when the loss is
 * due.
 */
static void test_who_is_not_renewed_at_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_extend(&rig, MS(10000));
    rig_votes(&rig, "UUU");
    assert_true(rig.lease.is_unrenewed);
    rig_extend(&rig, MS(10000));
    rig_renew_now(&rig);
    assert_nothing_sent(&rig);
    rig_votes(&rig, "UUU");
    rig_wake_on_time(&rig);
    for (uint32_t node = 0; node < 3; node++) {
        round_vote(&rig.round, node, REDLOCK_VOTE_GRANTED, 0);
    }
    rig_renew_now(&rig);
    assert_nothing_sent(&rig);
    rig_wake(&rig);
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "UUU");
    rig.now = rig.lease.holding.lost_at;
    rig_renew_now(&rig);
    assert_nothing_sent(&rig);
}

/* Late grants count only if more than min_validity is left, and only once. */
static void test_late_grants_that_change_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.min_validity = MS(9000);
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GEE");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "   GG");
    assert_int_equal(rig.lease.holding.validity_end, T0 + MS(9898));
    assert_true(rig.lease.is_unrenewed);
    terms.min_validity = 0;
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGE");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "   G");
    uint64_t end = rig.lease.holding.validity_end;
    rig_votes(&rig, "    G");
    assert_int_equal(rig.lease.holding.validity_end, end);
}

/*
 * Each row: the votes in time, the votes after the round, and whether both together renew the lock.
 */
static void test_late_grants_of_the_latest_renewal_count(void **state) {
    (void)state;
    static const struct {
        const char *votes, *late;
        bool is_renewed;
    } rows[] = {
        {"GEE", "   GG", true}, {"UGE", "   GG", true}, {"GEE", "   GD", false},
        {"GGE", "   D", false}, {"GGB", "   M", false}, {"GGU", "   G", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        uint64_t begun = rig.now;
        rig_votes(&rig, rows[i].votes);
        rig_wake_on_time(&rig); /* the deadline */
        assert_state(&rig, LEASE_HELD);
        assert_true(rig.lease.is_unrenewed);
        rig_votes(&rig, rows[i].late);
        assert_state(&rig, LEASE_HELD);
        assert_int_equal(rig.lease.is_unrenewed, !rows[i].is_renewed);
        assert_int_equal(rig.lease.holding.validity_end,
                         rows[i].is_renewed ? begun + MS(9898) : T0 + MS(9898));
    }
}

/* Late grants do not count when the loss is due, or too little validity would be left. */
static void test_late_grants_revive_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GEE");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_HELD);
    rig.now = rig.lease.holding.lost_at;
    rig_votes(&rig, "   GG");
    assert_int_equal(rig.lease.holding.validity_end, T0 + MS(9898));
    rig_wake(&rig);
    assert_lost(&rig, REDLOCK_EEXPIRED);
}

static void test_a_renewal_that_succeeds_at_last_saves_the_lock(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    while (rig.now < T0 + MS(8000)) {
        rig_wake_on_time(&rig);
        if (rig.lease.state == LEASE_RENEWING) {
            rig_votes(&rig, "EEE");
        }
    }
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_RENEWING);
    uint64_t begun = rig.now;
    rig_votes(&rig, "GGGEE");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.holding.validity_end, begun + MS(9898));
    assert_int_in_range(rig.lease.wake_at, begun + 1, begun + INTERVAL);
}

static void test_a_lock_that_a_quorum_lost_is_lost_at_once(void **state) {
    (void)state;
    static const char *const votes[] = {"MMM", "DDD", "MDM", "GGMDW", "GMPEM", "MM-UM"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        rig_votes(&rig, votes[i]);
        assert_lost(&rig, REDLOCK_ELOST);
        assert_int_equal(rig.update.notifications, LEASE_LOSS);
    }
}

static void test_what_is_not_known_is_not_lost(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        uint32_t lacking;
    } rows[] = {{"MMEEE", 0x03}, {"MMUUU", 0x03}, {"GMMBU", 0x06}, {"DDEGG", 0}, {"MM---", 0x03}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        rig_votes(&rig, rows[i].votes);
        assert_state(&rig, LEASE_HELD);
        assert_false(rig.update.send);
        assert_int_equal(rig.update.top_up, rows[i].lacking);
    }
}

/* A quorum's yes that is received after the end of the validity does not revive the lock. */
static void test_a_renewal_heard_too_late_does_not_revive(void **state) {
    (void)state;
    static const struct {
        uint64_t heard;
        const char *votes;
        bool is_held;
    } rows[] = {
        {MS(9898) - 1, "GGG", true}, /* past the instant of the loss, but before it was reported */
        {MS(9898), "GGG", false},
        {MS(60000), "GGG", false},
        {MS(9898), "MMM", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig.now = T0 + MS(9000);
        rig_wake(&rig);
        assert_state(&rig, LEASE_RENEWING);
        rig.now = T0 + rows[i].heard;
        rig_votes(&rig, rows[i].votes);
        if (rows[i].is_held) {
            assert_state(&rig, LEASE_HELD);
        } else {
            assert_lost(&rig, REDLOCK_EEXPIRED);
        }
    }
}

static void test_a_loop_that_was_busy_renews_nothing_that_is_over(void **state) {
    (void)state;
    static const struct {
        uint64_t woken;
        bool is_held;
    } rows[] = {{MS(9888) - 1, true}, {MS(9888), false}, {MS(100000), false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig.now = T0 + rows[i].woken;
        rig_wake(&rig);
        if (rows[i].is_held) {
            assert_state(&rig, LEASE_RENEWING);
            rig_wake_on_time(&rig);
            rig_wake_on_time(&rig);
        }
        assert_lost(&rig, REDLOCK_EEXPIRED);
    }
}

/* Like an acquisition, a renewal needs more than min_validity by a fresh reading of the clock. */
static void test_a_renewal_that_leaves_too_little_has_failed(void **state) {
    (void)state;
    static const struct {
        uint64_t took;
        bool renewed;
    } rows[] = {{MS(898) - 1, true}, {MS(898), false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        terms.min_validity = MS(9000);
        rig_hold(&rig, &terms, "GGG");
        rig_wake_on_time(&rig);
        uint64_t begun = rig.now;
        rig_pass(&rig, rows[i].took);
        rig_votes(&rig, "GGG");
        assert_state(&rig, LEASE_HELD);
        assert_int_equal(rig.lease.holding.validity_end,
                         rows[i].renewed ? begun + MS(9898) : T0 + MS(9898));
        assert_int_equal(rig.lease.is_unrenewed, !rows[i].renewed);
    }
}

/* ---- max_hold ---- */

static void test_renewals_begin_within_max_hold_only(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.max_hold = MS(10000);
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(10));
    rig_votes(&rig, "GGG"); /* acquired 10 ms after T0, where max_hold begins */
    rig_renew_at_the_end(&rig);
    uint64_t last = 0;
    for (unsigned renewals = 0; rig.lease.state != LEASE_LOST; renewals++) {
        rig_wake_on_time(&rig);
        if (rig.lease.state == LEASE_RENEWING) {
            last = rig.now;
            rig_votes(&rig, "GGG");
        }
        assert_true(renewals <= 3);
    }
    assert_int_equal(last, T0 + 3 * INTERVAL);
    assert_lost(&rig, REDLOCK_EEXPIRED);
    assert_int_equal(rig.now, last + MS(9888)); /* at most max_hold and one TTL */
}

static void test_the_end_of_max_hold(void **state) {
    (void)state;
    static const struct {
        uint64_t max_hold;
        bool renews;
    } rows[] = {{INTERVAL, true}, {INTERVAL - 1, false}, {NANOS_NEVER, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        terms.max_hold = rows[i].max_hold;
        rig_hold(&rig, &terms, "GGG");
        assert_int_equal(rig.lease.renews, rows[i].renews);
    }
}

static void test_retries_of_a_renewal_end_with_max_hold_too(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.max_hold = MS(4000);
    rig_hold(&rig, &terms, "GGG");
    uint64_t last = 0;
    while (rig.lease.state != LEASE_LOST) {
        rig_wake_on_time(&rig);
        if (rig.lease.state == LEASE_RENEWING) {
            last = rig.now;
            rig_votes(&rig, "UUU");
        }
    }
    assert_int_in_range(last, T0 + INTERVAL, T0 + MS(4000));
}

/* The loop was busy when the renewal was due, and max_hold is over: no further renewal begins. */
static void test_a_renewal_that_is_late_does_not_begin_after_max_hold(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.max_hold = MS(4000);
    rig_hold(&rig, &terms, "GGG");
    rig.now = T0 + MS(4000) + 1;
    rig_wake(&rig);
    assert_state(&rig, LEASE_HELD);
    assert_nothing_sent(&rig);
    assert_int_equal(rig.lease.wake_at, T0 + MS(9888));
}

/* ---- extensions ---- */

static void test_an_extension_counts_from_its_call(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig_pass(&rig, MS(3000));
    assert_int_equal(rig_extend(&rig, MS(20000)), REDLOCK_OK);
    assert_sent(&rig, ROUND_RENEW);
    assert_state(&rig, LEASE_RENEWING);
    assert_int_equal(rig.lease.wake_at, T0 + MS(3050));
    assert_int_equal(rig.round.ttl, MS(20000));
    rig_pass(&rig, MS(5));
    rig_votes(&rig, "GGG");
    assert_extended(&rig, REDLOCK_OK);
    assert_int_equal(rig.update.notifications, LEASE_EXTENDED);
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.holding.validity_end, T0 + MS(3000) + MS(19798));
    assert_int_equal(rig.lease.longest_ttl, MS(20000));
}

static void test_a_watchdog_goes_on_with_the_new_ttl(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_extend(&rig, MS(6000));
    rig_votes(&rig, "GGG");
    assert_int_in_range(rig.lease.wake_at, T0 + 1, T0 + MS(2000));
    rig_wake_on_time(&rig);
    assert_int_equal(rig.round.ttl, MS(6000));
}

/* The TTL of a failed extension does not apply to later renewals. */
static void test_a_watchdog_goes_on_with_the_old_ttl_after_a_failure(void **state) {
    (void)state;
    static const char *const votes[] = {"UUU", "EEE", "MMUUU"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        struct lease_terms terms = watched();
        rig_hold(&rig, &terms, "GGG");
        rig_extend(&rig, MS(6000));
        assert_int_equal(rig.round.ttl, MS(6000));
        rig_votes(&rig, votes[i]);
        assert_extended(&rig, REDLOCK_ENOQUORUM);
        assert_int_equal(rig.lease.ttl, MS(10000));
        rig_wake_on_time(&rig);
        assert_int_equal(rig.round.ttl, MS(10000));
    }
}

/*
 * A shorter extension keeps the margin of the loss: it is reported 10 ms before the end, as when
 * the end was further away.
 */
static void test_a_shorter_extension_leaves_the_margin(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig.now = rig.lease.holding.validity_end - MS(30);
    assert_int_equal(rig_extend(&rig, MS(20)), REDLOCK_OK);
    rig_votes(&rig, "GGG");
    assert_extended(&rig, REDLOCK_OK);
    assert_int_equal(rig.lease.holding.lost_at, rig.lease.holding.validity_end - MS(10));
}

static void test_an_extension_never_shortens(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig_pass(&rig, MS(100));
    assert_int_equal(rig_extend(&rig, MS(1000)), REDLOCK_OK);
    rig_votes(&rig, "GGG");
    assert_extended(&rig, REDLOCK_OK);
    assert_int_equal(lease_validity(&rig.lease, rig.now), MS(9798));
    assert_int_equal(rig.lease.longest_ttl, MS(10000));
    rig.now = T0 + MS(9500);
    rig_extend(&rig, MS(1000));
    rig_votes(&rig, "GGG");
    /* although more would be possible */
    assert_int_equal(lease_validity(&rig.lease, rig.now), MS(988));
}

static void test_one_extension_at_a_time(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_OK);
    assert_int_equal(rig_extend(&rig, MS(20000)), REDLOCK_EBUSY);
    assert_nothing_sent(&rig);
    assert_int_equal(rig.lease.ttl, MS(10000)); /* refused: nothing has changed */
    rig_votes(&rig, "GGG");
    assert_int_equal(rig_extend(&rig, MS(20000)), REDLOCK_OK);
}

/* A renewal that a quorum has granted counts, even if the extension's answers come too late. */
static void test_an_extension_follows_a_renewal(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    uint64_t renewed = rig.now;
    rig_votes(&rig, "GG");
    rig_pass(&rig, MS(20));
    assert_int_equal(rig_extend(&rig, MS(20000)), REDLOCK_OK);
    assert_nothing_sent(&rig);
    assert_int_equal(rig_extend(&rig, MS(20000)), REDLOCK_EBUSY);
    rig_votes(&rig, "GGG");
    assert_int_equal(rig.lease.holding.validity_end, renewed + MS(9898));
    assert_int_equal(rig.lease.ttl, MS(10000));
    assert_state(&rig, LEASE_RENEWING);
    assert_sent(&rig, ROUND_RENEW); /* a separate round: earlier votes do not count for it */
    assert_int_equal(rig.update.ttl, MS(20000));
    assert_int_equal(rig.extended, 0);
    uint64_t begun = rig.now;
    assert_int_equal(rig.lease.wake_at, begun + MS(50));
    rig_votes(&rig, "GGG");
    assert_extended(&rig, REDLOCK_OK);
    assert_int_equal(rig.lease.holding.validity_end, begun + MS(19798));
    assert_int_equal(rig.lease.ttl, MS(20000));
}

/* A renewal that failed does not hold up the extension after it. */
static void test_an_extension_follows_a_renewal_that_failed(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_extend(&rig, MS(20000));
    assert_nothing_sent(&rig);
    rig_votes(&rig, "GGUUU");
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "UUU");
    assert_extended(&rig, REDLOCK_ENOQUORUM);
    assert_int_equal(rig.lease.ttl, MS(10000));
}

/* Without memory there was no round for the renewal that the extension could follow. */
static void test_an_extension_follows_no_renewal_without_a_round(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_RENEWING);
    assert_int_equal(lease_extend(&rig.lease, NULL, MS(20000), rig.now, &rig.update), REDLOCK_OK);
    assert_true(rig.update.send);
    assert_int_equal(rig.update.ttl, MS(20000));
}

/* A renewal may wait on for silent nodes as long as the lock is held, an extension may not. */
static void test_an_extension_follows_a_late_renewal(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GG");
    rig_wake_on_time(&rig);
    assert_true(rig.lease.is_unrenewed);
    assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_OK);
    assert_nothing_sent(&rig);
    assert_int_equal(rig.lease.wake_at, rig.now + terms.patience->most);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_RENEW);
    rig_votes(&rig, "GGG");
    assert_extended(&rig, REDLOCK_OK);
}

static void test_how_extensions_fail(void **state) {
    (void)state;
    static const struct {
        uint64_t took;
        const char *votes;
        redlock_status status;
        enum lease_state then;
    } rows[] = {
        {MS(1), "UUU", REDLOCK_ENOQUORUM, LEASE_HELD},
        {MS(1), "GGEED", REDLOCK_ENOQUORUM, LEASE_HELD},
        {MS(1), "MMM", REDLOCK_ELOST, LEASE_LOST},
        {MS(1), "DDWGG", REDLOCK_ELOST, LEASE_LOST},
        {MS(8000), "GGG", REDLOCK_EEXPIRED, LEASE_HELD}, /* too slow for min_validity */
        {MS(9898), "GGG", REDLOCK_EEXPIRED, LEASE_LOST},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.min_validity = MS(5000);
        rig_hold(&rig, &terms, "GGG");
        rig_extend(&rig, MS(10000));
        rig_pass(&rig, rows[i].took);
        rig_votes(&rig, rows[i].votes);
        assert_extended(&rig, rows[i].status);
        assert_state(&rig, rows[i].then);
        if (rows[i].then == LEASE_LOST) { /* and on_lost follows */
            assert_lost(&rig, rows[i].status);
        } else {
            assert_int_equal(rig.lease.holding.validity_end, T0 + MS(9898));
        }
    }
}

static void test_an_extension_that_nobody_answers(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig_extend(&rig, MS(10000));
    rig_wake_on_time(&rig);
    assert_extended(&rig, REDLOCK_ENOQUORUM);
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.wake_at, T0 + MS(9888)); /* no watchdog, so no retry */
    rig_pass(&rig, MS(9800));
    rig_extend(&rig, MS(10000));
    rig_wake_on_time(&rig);
    assert_extended(&rig, REDLOCK_EEXPIRED);
    assert_lost(&rig, REDLOCK_EEXPIRED);
}

static void test_a_lost_lock_cannot_be_extended(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig.now = T0 + MS(9888) - 1;
    struct rig in_time = rig;
    assert_int_equal(rig_extend(&in_time, MS(10000)), REDLOCK_OK);
    rig.now++; /* the loss is due: only the timer has not fired yet */
    assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_ELOST);
    assert_nothing_sent(&rig);
    assert_state(&rig, LEASE_HELD);
    rig_wake(&rig);
    assert_lost(&rig, REDLOCK_EEXPIRED);
    assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_ELOST);
}

/* ---- top-ups ---- */

static void test_nodes_without_the_key_are_topped_up_after_a_success(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGGDU");
    assert_int_equal(rig.lease.may_hold, 0x07);
    rig_wake_on_time(&rig);
    rig_pass(&rig, MS(4));
    rig_votes(&rig, "GGGDM"); /* also for votes that came after the verdict, in the same turn */
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.top_up, 0x10); /* not where another client has the key */
    assert_int_equal(rig.update.top_up_ttl, MS(10000 - 4));
    assert_int_equal(rig.lease.may_hold, 0x17);
    assert_false(rig.update.send);
}

static void test_late_votes_top_up_each_node_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGG");
    rig_pass(&rig, MS(30));
    rig_vote(&rig, 4, REDLOCK_VOTE_MISSING);
    assert_int_equal(rig.update.top_up, 0x10);
    assert_int_equal(rig.update.top_up_ttl, MS(10000 - 30));
    rig_vote(&rig, 3, REDLOCK_VOTE_MISSING);
    assert_int_equal(rig.update.top_up, 0x08);
    rig_vote(&rig, 3, REDLOCK_VOTE_MISSING);
    assert_int_equal(rig.update.top_up, 0);
    rig_wake_on_time(&rig); /* the next success may top up again */
    round_vote(&rig.round, 4, REDLOCK_VOTE_MISSING, 0);
    rig_votes(&rig, "GGG");
    assert_int_equal(rig.update.top_up, 0x10);
}

static void test_an_acquisition_that_all_were_asked_for_tops_up_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    assert_false(rig.update.top_up_later);
    rig_late_votes(&rig);
    assert_nothing_sent(&rig);
}

/*
 * The acquisition is reported first: sending takes time, by which the reported validity would
 * shrink.
 */
static void test_an_acquisition_is_reported_before_nodes_are_topped_up(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    terms.fenced = true;
    rig_start(&rig, &terms, 1);
    rig.counter = 2;
    rig_votes(&rig, "GG");
    rig.counter = 3;
    rig_votes(&rig, "  G");
    assert_state(&rig, LEASE_RAISING);
    rig_votes(&rig, "MGGG"); /* a node that has restarted since */
    assert_state(&rig, LEASE_HELD);
    assert_nothing_sent(&rig);
    assert_true(rig.update.top_up_later);
    rig_pass(&rig, MS(2));
    rig_late_votes(&rig);
    assert_int_equal(rig.update.top_up, 0x01);
    assert_int_equal(rig.update.top_up_ttl, MS(10000 - 2));
    assert_int_equal(rig.lease.may_hold, 0x1f);
    rig_vote(&rig, 4, REDLOCK_VOTE_MISSING);
    assert_int_equal(rig.update.top_up, 0x10);
}

/* A master came back without the key when others failed: with its key, the next renewal succeeds.
 */
static void test_nodes_are_topped_up_after_a_failure_until_the_end_of_the_validity(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    uint64_t end = rig.lease.holding.validity_end;
    for (int i = 0; i < 2; i++) { /* after each such renewal, for the top-up may get lost */
        rig_wake_on_time(&rig);
        rig_votes(&rig, "GGMEE");
        assert_state(&rig, LEASE_HELD);
        assert_int_equal(rig.update.top_up, 0x04);
        assert_int_equal(rig.now + rig.update.top_up_ttl, end);
    }
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGG");
    assert_true(rig.lease.holding.validity_end > end);
}

static void test_nothing_is_topped_up_by_late_votes_after_a_failure_or_the_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GEEE");
    assert_int_equal(rig.update.top_up, 0);
    rig_votes(&rig, "    M");
    assert_int_equal(rig.update.top_up, 0); /* that round had failed */
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGG");
    struct rig late = rig;
    late.now = late.lease.holding.lost_at; /* the loss is due, but not reported */
    rig_vote(&late, 4, REDLOCK_VOTE_MISSING);
    assert_nothing_sent(&late);
    rig_wake(&late);
    rig_vote(&late, 3, REDLOCK_VOTE_MISSING);
    assert_nothing_sent(&late);
    assert_int_equal(rig_release(&rig), REDLOCK_OK);
    lease_late_votes(&rig.lease, &rig.round, rig.now, &rig.update);
    assert_nothing_sent(&rig);
}

static void test_an_extension_tops_up_for_what_it_asked(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    rig_extend(&rig, MS(5000));
    rig_pass(&rig, MS(1));
    rig_votes(&rig, "MGGG");
    assert_extended(&rig, REDLOCK_OK);
    assert_int_equal(rig.update.top_up, 0x01);
    assert_int_equal(rig.update.top_up_ttl, MS(4999));
}

/* ---- top-ups that wait for room ---- */

/* Holds a lock whose key the last two nodes lack, and which have no room. */
static void hold_without_room(struct rig *rig) {
    struct lease_terms terms = watched();
    rig_hold(rig, &terms, "GGG");
    rig_wake_on_time(rig);
    rig_votes(rig, "GGGMM");
    assert_int_equal(rig->update.top_up, 0x18);
    assert_false(rig->update.top_up_has_room);
    assert_int_equal(lease_awaits_room(&rig->lease), 0);
    rig_without_room(rig, 0x18);
    assert_int_equal(lease_awaits_room(&rig->lease), 0x18);
}

static void test_a_node_is_topped_up_when_it_has_room(void **state) {
    (void)state;
    struct rig rig;
    hold_without_room(&rig);
    rig_pass(&rig, MS(500));
    rig_has_room(&rig, 0x07); /* no top-up waits for these nodes */
    assert_nothing_sent(&rig);
    rig_has_room(&rig, 0x10);
    assert_int_equal(rig.update.top_up, 0x10);
    assert_int_equal(rig.update.top_up_ttl, rig.lease.holding.validity_end - rig.now);
    assert_true(rig.update.top_up_has_room);
    rig_without_room(&rig, 0x10); /* the room was taken by then */
    rig_has_room(&rig, 0x18);
    assert_int_equal(rig.update.top_up, 0x18);
    rig_has_room(&rig, 0x18);
    assert_nothing_sent(&rig);
    rig_vote(&rig, 4, REDLOCK_VOTE_MISSING);
    rig_late_votes(&rig); /* each node is topped up once between two rounds */
    assert_nothing_sent(&rig);
}

static void test_the_next_renewal_decides_what_waits_for_room(void **state) {
    (void)state;
    struct rig rig;
    hold_without_room(&rig);
    rig_wake_on_time(&rig);
    assert_int_equal(lease_awaits_room(&rig.lease), 0); /* until its verdict */
    rig_has_room(&rig, 0x18);
    assert_nothing_sent(&rig);
    rig_votes(&rig, "GGG U"); /* one node's answer is to come, the other had no room again */
    assert_int_equal(lease_awaits_room(&rig.lease), 0x18);
    assert_nothing_sent(&rig);
    rig_vote(&rig, 3, REDLOCK_VOTE_MISSING);
    rig_late_votes(&rig);
    assert_nothing_sent(&rig); /* it keeps its turn among those that wait */
    rig_has_room(&rig, 0x18);
    assert_int_equal(rig.update.top_up, 0x18);
}

static void test_a_node_that_has_the_key_waits_for_no_room(void **state) {
    (void)state;
    struct rig rig;
    hold_without_room(&rig);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "MGGGM");
    assert_int_equal(rig.update.top_up, 0x01); /* and not the one whose top-up waits */
    assert_int_equal(lease_awaits_room(&rig.lease), 0x10);
}

static void test_room_is_waited_for_after_a_renewal_that_failed(void **state) {
    (void)state;
    struct rig rig;
    hold_without_room(&rig);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GEEUM");
    assert_true(rig.lease.is_unrenewed);
    assert_int_equal(lease_awaits_room(&rig.lease), 0x18);
    rig.without_memory = true;
    rig_wake_on_time(&rig);
    rig_out_of_memory(&rig); /* no node was asked */
    assert_int_equal(lease_awaits_room(&rig.lease), 0x18);
    rig_has_room(&rig, 0x18);
    assert_int_equal(rig.update.top_up, 0x18);
}

static void test_what_is_not_held_waits_for_no_room(void **state) {
    (void)state;
    struct rig rig;
    hold_without_room(&rig);
    struct rig late = rig;
    late.now = late.lease.holding.lost_at; /* the loss is due, but not reported */
    rig_has_room(&late, 0x08);
    assert_nothing_sent(&late);
    rig_wake(&late);
    assert_lost(&late, REDLOCK_EEXPIRED);
    assert_int_equal(lease_awaits_room(&late.lease), 0);
    rig_has_room(&late, 0x10);
    assert_nothing_sent(&late);
    assert_int_equal(rig_release(&rig), REDLOCK_OK);
    assert_int_equal(lease_awaits_room(&rig.lease), 0);
    rig_has_room(&rig, 0x18);
    assert_int_equal(rig.update.top_up, 0);
}

/* ---- other nodes ---- */

static const struct quorum_lists old_list = {0x07, 0};
static const struct quorum_lists both_lists = {0x07, 0x38};
static const struct quorum_lists next_list = {0x38, 0};

static void hold_at(struct rig *rig, struct quorum_lists lists, const char *votes) {
    struct lease_terms terms = watched();
    rig_start_at(rig, &terms, lists, 1);
    rig_votes(rig, votes);
    assert_state(rig, LEASE_HELD);
}

static void test_nodes_that_join_get_the_key(void **state) {
    (void)state;
    struct rig rig;
    hold_at(&rig, old_list, "GGG");
    rig_pass(&rig, MS(1000));
    rig_move(&rig, both_lists);
    assert_int_equal(rig.update.top_up, 0x38);
    assert_int_equal(rig.update.top_up_ttl, rig.lease.holding.validity_end - rig.now);
    assert_int_equal(rig.lease.may_hold, 0x3f);
    assert_false(rig.update.send);
    rig_move(&rig, next_list);
    assert_nothing_sent(&rig);
    rig_move(&rig, old_list); /* other nodes, or nodes that have forgotten the key meanwhile */
    assert_int_equal(rig.update.top_up, 0x07);
}

static void test_nodes_that_join_may_wait_for_room(void **state) {
    (void)state;
    struct rig rig;
    hold_at(&rig, old_list, "GGG");
    rig_wake_on_time(&rig);
    rig_move(&rig, both_lists);
    assert_int_equal(rig.update.top_up, 0x38);
    rig_without_room(&rig, 0x38);
    rig_votes(&rig, "GGG"); /* a round that did not ask them */
    rig_late_votes(&rig);
    assert_nothing_sent(&rig);
    assert_int_equal(lease_awaits_room(&rig.lease), 0x38);
    rig_has_room(&rig, 0x08);
    assert_int_equal(rig.update.top_up, 0x08);
    rig_move(&rig, old_list); /* they leave */
    assert_int_equal(lease_awaits_room(&rig.lease), 0);
}

static void test_nodes_that_join_get_nothing_of_a_lock_that_is_not_held(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_start_at(&rig, &terms, old_list, 1);
    rig_move(&rig, both_lists);
    assert_nothing_sent(&rig);
    hold_at(&rig, old_list, "GGG");
    rig.now = rig.lease.holding.lost_at;
    rig_move(&rig, both_lists);
    assert_nothing_sent(&rig);
    hold_at(&rig, old_list, "GGG");
    assert_int_equal(rig_release(&rig), REDLOCK_OK);
    rig_move(&rig, both_lists);
    assert_int_equal(rig.update.top_up, 0);
}

static void test_a_round_that_began_before_tops_up_whom_it_did_not_ask(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = watched();
    rig_start_at(&rig, &terms, old_list, 1);
    rig_move(&rig, both_lists);
    rig_pass(&rig, MS(2));
    rig_votes(&rig, "GG");
    assert_state(&rig, LEASE_HELD); /* by the list at the beginning of the round */
    assert_int_equal(rig.acquired, 1);
    assert_true(rig.update.top_up_later);
    rig_late_votes(&rig);
    assert_int_equal(rig.update.top_up, 0x38);
    assert_int_equal(rig.update.top_up_ttl, MS(10000 - 2));
}

static void test_a_renewal_takes_both_lists(void **state) {
    (void)state;
    struct rig rig;
    hold_at(&rig, old_list, "GGG");
    uint64_t end = rig.lease.holding.validity_end;
    rig_move(&rig, both_lists);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGGM M");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.holding.validity_end, end);
    assert_int_equal(rig.update.top_up, 0x28); /* the nodes without the key */
    rig_vote(&rig, 4, REDLOCK_VOTE_MISSING);
    assert_int_equal(rig.update.top_up, 0x10);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GG  GG");
    assert_true(rig.lease.holding.validity_end > end);
    rig_wake_on_time(&rig);
    rig_move(&rig, next_list);
    rig_votes(&rig, "GG  GG"); /* the round continues with its own nodes */
    assert_state(&rig, LEASE_HELD);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "   GG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.losses, 0);
}

static void test_the_next_list_alone_does_not_lose_a_lock(void **state) {
    (void)state;
    struct rig rig;
    hold_at(&rig, both_lists, "GGGGGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGGDDD");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.top_up, 0);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "MM GGG");
    assert_lost(&rig, REDLOCK_ELOST); /* the list decides */
}

static void test_a_renewal_that_no_list_kept_tops_up_until_the_end(void **state) {
    (void)state;
    struct rig rig;
    hold_at(&rig, both_lists, "GGGGGG");
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GEEMMM");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.top_up, 0x38);
    assert_int_equal(rig.now + rig.update.top_up_ttl, rig.lease.holding.validity_end);
    rig_wake_on_time(&rig);
    rig_votes(&rig, "EEEGGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.top_up, 0);
    assert_int_equal(rig.losses, 0);
}

/* By the next list, either the holders were no obstacle, or only the silent nodes were. */
static void test_why_not_by_two_lists(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
    } rows[] = {{"GGGDD ", REDLOCK_EHELD},
                {"DD GGG", REDLOCK_EHELD},
                {"GGGDEE", REDLOCK_ENOQUORUM},
                {"DEEGGG", REDLOCK_ENOQUORUM},
                {"GGGEE ", REDLOCK_ENOQUORUM}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        rig_start_at(&rig, &terms, both_lists, 1);
        rig_votes(&rig, rows[i].votes);
        if (rig.lease.state == LEASE_DIAGNOSING) {
            rig_wake_on_time(&rig);
        }
        assert_state(&rig, LEASE_OVER);
        assert_int_equal(rig.update.acquired, rows[i].status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_watchdog_renews_every_third_of_the_ttl),
        cmocka_unit_test(test_a_change_is_looked_into_at_once),
        cmocka_unit_test(test_a_change_finds_a_loss),
        cmocka_unit_test(test_changes_without_end_are_looked_into_seldom),
        cmocka_unit_test(test_the_count_of_changes_has_an_end),
        cmocka_unit_test(test_without_watching_a_change_is_nothing),
        cmocka_unit_test(test_a_hint_after_the_longest_hold_is_nothing),
        cmocka_unit_test(test_a_renewal_that_was_not_sent_has_no_round_to_expire),
        cmocka_unit_test(test_without_a_watchdog_nothing_is_renewed),
        cmocka_unit_test(test_a_timer_that_is_early_renews_nothing),
        cmocka_unit_test(test_the_loss_is_reported_before_the_validity_ends),
        cmocka_unit_test(test_locks_that_were_acquired_together_are_renewed_apart),
        cmocka_unit_test(test_a_busy_loop_leaves_locks_apart),
        cmocka_unit_test(test_a_failed_renewal_is_tried_again),
        cmocka_unit_test(test_a_lock_is_renewed_at_once_when_a_node_comes_up),
        cmocka_unit_test(test_a_verdict_is_not_waited_for),
        cmocka_unit_test(test_who_is_not_renewed_at_once),
        cmocka_unit_test(test_late_grants_that_change_nothing),
        cmocka_unit_test(test_late_grants_of_the_latest_renewal_count),
        cmocka_unit_test(test_late_grants_revive_nothing),
        cmocka_unit_test(test_a_watchdog_goes_on_with_the_old_ttl_after_a_failure),
        cmocka_unit_test(test_silent_nodes_are_not_asked_again),
        cmocka_unit_test(test_a_renewal_is_waited_for_to_the_end),
        cmocka_unit_test(test_a_renewal_has_half_of_what_is_left),
        cmocka_unit_test(test_a_renewal_that_waits_is_sent_anew_too),
        cmocka_unit_test(test_a_renewal_under_way_is_not_sent_for_each_node),
        cmocka_unit_test(test_a_renewal_that_succeeds_at_last_saves_the_lock),
        cmocka_unit_test(test_a_lock_that_a_quorum_lost_is_lost_at_once),
        cmocka_unit_test(test_what_is_not_known_is_not_lost),
        cmocka_unit_test(test_a_renewal_heard_too_late_does_not_revive),
        cmocka_unit_test(test_a_loop_that_was_busy_renews_nothing_that_is_over),
        cmocka_unit_test(test_a_renewal_that_leaves_too_little_has_failed),
        cmocka_unit_test(test_renewals_begin_within_max_hold_only),
        cmocka_unit_test(test_the_end_of_max_hold),
        cmocka_unit_test(test_retries_of_a_renewal_end_with_max_hold_too),
        cmocka_unit_test(test_a_renewal_that_is_late_does_not_begin_after_max_hold),
        cmocka_unit_test(test_an_extension_counts_from_its_call),
        cmocka_unit_test(test_a_watchdog_goes_on_with_the_new_ttl),
        cmocka_unit_test(test_an_extension_never_shortens),
        cmocka_unit_test(test_a_shorter_extension_leaves_the_margin),
        cmocka_unit_test(test_one_extension_at_a_time),
        cmocka_unit_test(test_an_extension_follows_a_renewal),
        cmocka_unit_test(test_an_extension_follows_a_renewal_that_failed),
        cmocka_unit_test(test_an_extension_follows_a_late_renewal),
        cmocka_unit_test(test_an_extension_follows_no_renewal_without_a_round),
        cmocka_unit_test(test_how_extensions_fail),
        cmocka_unit_test(test_an_extension_that_nobody_answers),
        cmocka_unit_test(test_a_lost_lock_cannot_be_extended),
        cmocka_unit_test(test_nodes_without_the_key_are_topped_up_after_a_success),
        cmocka_unit_test(test_late_votes_top_up_each_node_once),
        cmocka_unit_test(test_an_acquisition_that_all_were_asked_for_tops_up_nothing),
        cmocka_unit_test(test_an_acquisition_is_reported_before_nodes_are_topped_up),
        cmocka_unit_test(test_nodes_are_topped_up_after_a_failure_until_the_end_of_the_validity),
        cmocka_unit_test(test_nothing_is_topped_up_by_late_votes_after_a_failure_or_the_end),
        cmocka_unit_test(test_an_extension_tops_up_for_what_it_asked),
        cmocka_unit_test(test_a_node_is_topped_up_when_it_has_room),
        cmocka_unit_test(test_the_next_renewal_decides_what_waits_for_room),
        cmocka_unit_test(test_a_node_that_has_the_key_waits_for_no_room),
        cmocka_unit_test(test_room_is_waited_for_after_a_renewal_that_failed),
        cmocka_unit_test(test_what_is_not_held_waits_for_no_room),
        cmocka_unit_test(test_nodes_that_join_get_the_key),
        cmocka_unit_test(test_nodes_that_join_may_wait_for_room),
        cmocka_unit_test(test_nodes_that_join_get_nothing_of_a_lock_that_is_not_held),
        cmocka_unit_test(test_a_round_that_began_before_tops_up_whom_it_did_not_ask),
        cmocka_unit_test(test_a_renewal_takes_both_lists),
        cmocka_unit_test(test_the_next_list_alone_does_not_lose_a_lock),
        cmocka_unit_test(test_a_renewal_that_no_list_kept_tops_up_until_the_end),
        cmocka_unit_test(test_why_not_by_two_lists),
    };
    return cmocka_run_group_tests_name("lease_hold", tests, NULL, NULL);
}
