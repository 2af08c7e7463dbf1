/*
 * Tests a lease until it is held or has failed: tries, their undoing, retries, the end of the wait.
 */
#include "base/nanos.h"
#include "core/tries.h"
#include "unit.h"

#include "run.h"

#include <string.h>

static void assert_acquired(const struct rig *rig, redlock_status status) {
    assert_int_equal(rig->update.notifications, LEASE_ACQUIRED);
    assert_int_equal(rig->update.acquired, status);
    assert_state(rig, status == REDLOCK_OK ? LEASE_HELD : LEASE_OVER);
}

/* ---- runs ---- */

#define TRIES_AGAIN .state = LEASE_ACQUIRING, .sends = SENDS(ACQUIRE)
#define DIAGNOSES(nodes) .state = LEASE_DIAGNOSING, .sends = SENDS(DIAGNOSE), .awaited = (nodes)

/* Two rows: three nodes of a fenced lock have granted it, the last of them with 9. */
#define RAISING                                                                                    \
    {VOTES, "GG", .counter = 7}, {                                                                 \
        VOTES, "  G", .counter = 9, IS_RAISED, .fence = 9                                          \
    }

static const struct run runs[] = {
    {
        /* The diagnosing round is the release of the grants. */
        .name = "a late quorum beside deniers is diagnosed",
        .rows = {{PASS, .ms = 9900},
                 {VOTES, "GGDG", DIAGNOSES(NODE(2))},
                 {VOTES, "  M", FAILS(REDLOCK_EEXPIRED)}},
    },
    {
        .name = "diagnosing ends at its deadline",
        .rows = {{VOTES, "DDD", DIAGNOSES(0x07), WAKES_IN(50, 50)},
                 {.event = VOTES, .votes = "DD"},
                 {TIMER, FAILS(REDLOCK_EHELD)}},
    },
    {
        /* A node that timed out may have granted. */
        .name = "silence ends at the deadline",
        .rows = {{VOTES, "GG", WAKES_IN(50, 50)},
                 {TIMER, FAILS(REDLOCK_ENOQUORUM), .undo = ALL_NODES}},
    },
    {
        .name = "each try is undone before the next",
        .terms = {.retries = 2},
        .rows = {{VOTES, "GDDUD", .state = LEASE_BACKOFF, .undo = 0x01},
                 {TIMER, TRIES_AGAIN},
                 {VOTES, "GGDBD", .state = LEASE_BACKOFF, .undo = 0x0b},
                 {TIMER, TRIES_AGAIN},
                 {VOTES, "DDDDD", DIAGNOSES(ALL_NODES)}},
    },
    {
        /* A slow first try does not shorten or lengthen the second try's validity. */
        .name = "the start is that of the try",
        .terms = {.retries = 1},
        .rows = {{PASS, .ms = 5000},
                 {EARLY, .state = LEASE_BACKOFF, .undo = ALL_NODES},
                 {TIMER, TRIES_AGAIN},
                 {PASS, .ms = 3},
                 {VOTES, "GGG", IS_HELD, .validity = 9895}},
    },
    {
        .name = "the shortest wait is one try",
        .terms = {.retries = UINT32_MAX, .wait = MS(1)},
        .rows = {{PASS, .ms = 0, WAKES_IN(50, 50)},
                 {TIMER, FAILS(REDLOCK_ENOQUORUM), .undo = ALL_NODES, .tries = 1}},
    },
    {
        /* A try that began within the wait is not cut short; after it the deniers are asked. */
        .name = "the wait is outlasted by two node timeouts at most",
        .terms = {.retries = UINT32_MAX, .wait = MS(20)},
        .rows = {{VOTES, "DD", WAKES_IN(50, 50)},
                 {TIMER, DIAGNOSES(0x03), WAKES_IN(50, 50)},
                 {TIMER, FAILS(REDLOCK_ENOQUORUM)}},
    },
    {
        .name = "a fence that a quorum agrees on takes one round",
        .terms = {.fenced = true},
        .rows = {{VOTES, "GGDG", .counter = 7, IS_HELD, .fence = 7}},
    },
    {
        /* With a node that had answered too late for the first round. */
        .name = "a fence that no quorum has is raised first",
        .terms = {.fenced = true},
        .rows = {RAISING,
                 {PASS, .ms = 3},
                 {VOTES, "GG G", IS_HELD, .fence = 9, .validity = 9895, .may_hold = ALL_NODES}},
    },
    {
        /* A node that granted late has a larger counter: another client may have had the key there,
           with fence 9. */
        .name = "a counter that is further is raised to again",
        .terms = {.fenced = true},
        .rows = {RAISING,
                 {VOTES, "G  G", .counter = 9},
                 {VOTES, "    G", .counter = 10, IS_RAISED, .fence = 10},
                 {VOTES, "GGG", IS_HELD, .fence = 10, .validity = 9898}},
    },
    {
        .name = "raising without answers is in vain",
        .terms = {.fenced = true},
        .rows = {RAISING, {TIMER, FAILS(REDLOCK_ENOQUORUM), .undo = ALL_NODES}},
    },
    {
        .name = "raising too late is in vain",
        .terms = {.fenced = true},
        .rows = {RAISING,
                 {PASS, .ms = 10000},
                 {VOTES, "GGG", FAILS(REDLOCK_EEXPIRED), .undo = ALL_NODES}},
    },
    {
        .name = "raising is canceled like any try",
        .terms = {.fenced = true},
        .rows = {RAISING, {CANCEL, FAILS(REDLOCK_ECANCELED), .undo = ALL_NODES}},
    },
    {
        .name = "raising ends with its client",
        .terms = {.fenced = true},
        .rows = {RAISING, {CLOSE, FAILS(REDLOCK_ECLOSED), .undo = ALL_NODES}},
    },
    {
        .name = "raising ends without memory",
        .terms = {.fenced = true},
        .rows = {RAISING, {UNSENT, FAILS(REDLOCK_ENOMEM), .undo = ALL_NODES}},
    },
    {
        .name = "a retry has a fence of its own",
        .terms = {.fenced = true, .retries = 1},
        .rows = {{VOTES, "GEEE", .counter = 9, .state = LEASE_BACKOFF, .undo = ALL_NODES},
                 {TIMER, TRIES_AGAIN},
                 {VOTES, "GGG", .counter = 10, IS_HELD, .fence = 10}},
    },
};

/* ---- yes ---- */

static void test_a_quorum_in_time_is_a_lock(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 1);
    assert_sent(&rig, ROUND_ACQUIRE);
    assert_int_equal(rig.update.notifications, 0);
    assert_int_equal(rig.lease.wake_at, T0 + MS(50));
    rig_pass(&rig, MS(4));
    rig_votes(&rig, "GG");
    assert_state(&rig, LEASE_ACQUIRING);
    rig_votes(&rig, "  G");
    assert_acquired(&rig, REDLOCK_OK);
    assert_nothing_sent(&rig);
    assert_int_equal(lease_validity(&rig.lease, T0 + MS(4)), MS(9898 - 4));
    assert_int_equal(lease_validity(&rig.lease, T0 + MS(9898) - 1), 1);
    assert_int_equal(lease_validity(&rig.lease, T0 + MS(9898)), 0);
    assert_int_equal(lease_validity(&rig.lease, NANOS_NEVER), 0);
    assert_int_equal(rig.lease.wake_at, T0 + MS(9888)); /* nothing to renew: the loss is next */
}

/* The votes are yes, but a fresh reading of the clock is too late: each grant is released. */
static void test_a_quorum_that_came_too_late_is_none(void **state) {
    (void)state;
    static const struct {
        uint64_t took, min_validity;
        bool is_held;
    } rows[] = {
        {MS(9898) - 1, 0, true},        {MS(9898), 0, false},        {MS(20000), 0, false},
        {MS(8898) - 1, MS(1000), true}, {MS(8898), MS(1000), false}, /* more than min_validity is
                                                                        required, not just as much
                                                                        */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.min_validity = rows[i].min_validity;
        rig_start(&rig, &terms, 1);
        rig_pass(&rig, rows[i].took);
        rig_votes(&rig, "GG GU");
        assert_acquired(&rig, rows[i].is_held ? REDLOCK_OK : REDLOCK_EEXPIRED);
        assert_int_equal(rig.update.undo, rows[i].is_held ? 0 : 0x0f);
    }
}

static void test_nobody_waits_for_a_quorum_that_would_be_of_no_use(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.ttl = MS(30); /* drift is 2.3 ms, and the node timeout 50 ms */
    rig_start(&rig, &terms, 1);
    assert_int_equal(rig.lease.wake_at, T0 + MS(30) - 2300000);
    terms.min_validity = MS(20);
    rig_start(&rig, &terms, 1);
    assert_int_equal(rig.lease.wake_at, T0 + MS(10) - 2300000);
}

/* ---- no ---- */

/*
 * A failed try is undone at all nodes but those that refused, and those to which nothing was sent:
 * a lost answer may have been a grant.
 */
static void test_a_failed_try_is_undone_where_it_may_be(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
        uint32_t undo;
    } rows[] = {
        {"UUU  ", REDLOCK_ENOQUORUM, 0x18}, /* undone at once, also at the nodes that did not answer
                                             */
        {"UUUGG", REDLOCK_ENOQUORUM, 0x18}, {"EEE  ", REDLOCK_ENOQUORUM, 0x1f},
        {"BBB G", REDLOCK_ENOQUORUM, 0x1f}, {"GGEBU", REDLOCK_ENOQUORUM, 0x0f},
        {"GUEUU", REDLOCK_ENOQUORUM, 0x05}, {"UUUUU", REDLOCK_ENOQUORUM, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        rig_start(&rig, &terms, 1);
        rig_pass(&rig, MS(1));
        rig_votes(&rig, rows[i].votes);
        assert_acquired(&rig, rows[i].status);
        assert_int_equal(rig.update.undo, rows[i].undo);
        assert_false(rig.update.send);
    }
}

/* After the last try, nodes that denied are asked for their holder. */
static void test_a_last_failure_with_deniers_is_diagnosed(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
        uint32_t deniers, may_hold;
    } rows[] = {
        {"DDD  ", REDLOCK_EHELD, 0x07, 0x18},  {"DWP  ", REDLOCK_EHELD, 0x07, 0x18},
        {"GDGDU", REDLOCK_EHELD, 0x0a, 0x05},  {"GGDDE", REDLOCK_EHELD, 0x0c, 0x13},
        {"DUU  ", REDLOCK_EHELD, 0x01, 0x18}, /* a quorum if the denial were a grant */
        {"DUUUU", REDLOCK_ENOQUORUM, 0x01, 0}, {"DEEBG", REDLOCK_ENOQUORUM, 0x01, 0x1e},
        {"UUUDD", REDLOCK_ENOQUORUM, 0x18, 0}, {"DDRRR", REDLOCK_EACCESS, 0x03, 0},
        {"DDDRR", REDLOCK_EHELD, 0x07, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        rig_start(&rig, &terms, 1);
        rig_pass(&rig, MS(7));
        rig_votes(&rig, rows[i].votes);
        assert_state(&rig, LEASE_DIAGNOSING);
        assert_sent(&rig, ROUND_DIAGNOSE);
        assert_int_equal(rig.update.undo, 0);
        assert_int_equal(rig.update.awaited, rows[i].deniers);
        assert_int_equal(rig.lease.may_hold, rows[i].may_hold);
        assert_int_equal(rig.lease.wake_at, T0 + MS(57));
        rig_votes(&rig, "DDDDD");
        assert_acquired(&rig, rows[i].status);
        assert_nothing_sent(&rig);
    }
}

/* Votes that come after the verdict, in the same turn, do not change the reason for the no. */
static void test_late_grants_are_no_failures(void **state) {
    (void)state;
    static const char *const votes[] = {"UUD  ", "UUDG ", "UUDGG", "UEDGG", "UBDDG"};
    for (size_t i = 0; i < COUNT_OF(votes); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        rig_start(&rig, &terms, 1);
        rig_votes(&rig, votes[i]);
        assert_state(&rig, LEASE_DIAGNOSING);
        rig_votes(&rig, "DDDDD");
        assert_acquired(&rig, REDLOCK_EHELD);
    }
}

static void test_a_timer_that_is_early_does_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.retries = 1;
    rig_start(&rig, &terms, 1);
    for (unsigned i = 0; i < 2; i++) { /* while acquiring, then in the backoff */
        rig.now = rig.lease.wake_at - 1;
        enum lease_state before = rig.lease.state;
        rig_wake(&rig);
        assert_state(&rig, before);
        assert_nothing_sent(&rig);
        assert_int_equal(rig.update.notifications, 0);
        assert_int_equal(rig.round.verdict, i == 0 ? ROUND_OPEN : ROUND_NO);
        rig_votes(&rig, "UUU");
    }
}

static void test_without_a_round_the_deadline_decides_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 1);
    lease_woken(&rig.lease, NULL, NULL, rig.lease.wake_at, &rig.update);
    assert_state(&rig, LEASE_ACQUIRING);
    assert_nothing_sent(&rig);
}

/* ---- again ---- */

static void test_a_retry_comes_after_a_random_delay(void **state) {
    (void)state;
    static const uint64_t bounds[] = {MS(200), MS(400), MS(800), MS(1600), MS(2000), MS(2000)};
    bool small[COUNT_OF(bounds)] = {false}, large[COUNT_OF(bounds)] = {false};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = COUNT_OF(bounds);
        rig_start(&rig, &terms, seed);
        for (size_t i = 0; i < COUNT_OF(bounds); i++) {
            rig_votes(&rig, "DDG");
            rig_votes(&rig, "   D");
            assert_state(&rig, LEASE_BACKOFF);
            assert_int_equal(rig.update.notifications, 0);
            uint64_t delay = rig.lease.wake_at - rig.now;
            assert_int_in_range(delay, MS(1), bounds[i]);
            small[i] = small[i] || delay < bounds[i] / 2;
            large[i] = large[i] || delay > bounds[i] / 2;
            rig_wake_on_time(&rig);
            assert_state(&rig, LEASE_ACQUIRING);
            assert_sent(&rig, ROUND_ACQUIRE);
            assert_int_equal(rig.lease.tries, i + 2);
        }
    }
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        assert_true(small[i] && large[i]);
    }
}

/* A wrong password does not fix itself: neither a retry nor a permit retry follows. */
static void test_a_quorum_that_refuses_ends_the_request(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
        uint32_t undo;
    } rows[] = {
        {"RRR  ", REDLOCK_EACCESS, 0x18},
        {"GGRRR", REDLOCK_EACCESS, 0x03},
        {"URRUR", REDLOCK_EACCESS, 0},
        {"GRRUU", REDLOCK_OK, 0x01}, /* two that refuse are no quorum: another try follows */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = UINT32_MAX;
        rig_start(&rig, &terms, 1);
        rig_votes(&rig, rows[i].votes);
        assert_int_equal(rig.update.undo, rows[i].undo);
        if (rows[i].status == REDLOCK_OK) {
            assert_state(&rig, LEASE_BACKOFF);
        } else {
            assert_acquired(&rig, rows[i].status);
        }
    }
}

static void test_retries_are_counted(void **state) {
    (void)state;
    for (uint32_t retries = 0; retries <= 3; retries++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = retries;
        rig_start(&rig, &terms, 1);
        for (uint32_t i = 0; i < retries; i++) {
            rig_votes(&rig, "UUU");
            assert_state(&rig, LEASE_BACKOFF);
            rig_wake_on_time(&rig);
        }
        rig_votes(&rig, "UUU");
        assert_acquired(&rig, REDLOCK_ENOQUORUM);
        assert_int_equal(rig.lease.tries, retries + 1);
    }
}

/* The wait before the second try does not count towards the time for which the key stays. */
static void test_a_key_that_stays_does_so_from_the_try_that_took_it(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_hold(&rig, &terms, "GGG");
    assert_int_equal(rig.lease.holding.stay_until, 0);
    terms.retries = 1;
    terms.min_hold = MS(300);
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "UUU");
    rig_wake_on_time(&rig);
    uint64_t second = rig.now;
    rig_pass(&rig, MS(3));
    rig_votes(&rig, "GGG");
    assert_acquired(&rig, REDLOCK_OK);
    assert_int_equal(rig.lease.holding.stay_until, second + MS(300));
}

static void test_failing_without_end_goes_on_without_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.retries = UINT32_MAX;
    rig_start(&rig, &terms, 1);
    for (unsigned i = 0; i < 10000; i++) {
        rig_votes(&rig, "UUU");
        assert_state(&rig, LEASE_BACKOFF);
        assert_int_in_range(rig.lease.wake_at - rig.now, MS(1), MS(2000));
        rig_wake_on_time(&rig);
    }
}

/* ---- the end of the wait ---- */

static void test_the_last_try_begins_before_the_end_of_the_wait(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = UINT32_MAX;
        terms.wait = MS(500);
        rig_start(&rig, &terms, seed);
        while (rig.lease.state != LEASE_OVER) {
            if (rig.lease.state == LEASE_ACQUIRING) {
                assert_true(rig.now < T0 + terms.wait);
                assert_int_equal(rig.lease.wake_at, rig.now + MS(50));
            }
            rig_wake_on_time(&rig);
        }
        assert_acquired(&rig, REDLOCK_ENOQUORUM);
        assert_int_in_range(rig.now, T0 + MS(300), T0 + terms.wait + MS(50));
    }
}

static void test_no_retry_after_the_end_of_the_wait(void **state) {
    (void)state;
    /* A delay is at least 1 ms; a busy loop may wake the lease much later. */
    static const uint64_t failed_at[] = {MS(9), MS(10) - 1, MS(10), MS(10) + 1, MS(5000)};
    for (size_t i = 0; i < COUNT_OF(failed_at); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = UINT32_MAX;
        terms.wait = MS(10);
        rig_start(&rig, &terms, 1);
        rig_pass(&rig, failed_at[i]);
        rig_votes(&rig, "GUUU");
        assert_acquired(&rig, REDLOCK_ENOQUORUM);
        assert_int_equal(rig.update.undo, 0x11);
    }
}

/* The loop was busy when the retry was due, and the wait is over: no further try begins. */
static void test_a_retry_that_is_late_does_not_begin(void **state) {
    (void)state;
    static const uint64_t late[] = {0, 1, MS(5000)};
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        struct rig rig;
        struct lease_terms terms = rig_terms();
        terms.retries = UINT32_MAX;
        terms.wait = MS(500);
        rig_start(&rig, &terms, 1);
        rig_votes(&rig, "UUU");
        assert_state(&rig, LEASE_BACKOFF);
        rig.now = T0 + terms.wait + late[i];
        rig_wake(&rig);
        assert_acquired(&rig, REDLOCK_ENOQUORUM);
        assert_nothing_sent(&rig);
        assert_int_equal(rig.lease.tries, 1);
    }
}

static void test_a_wait_without_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.retries = UINT32_MAX;
    terms.wait = NANOS_NEVER;
    rig_start(&rig, &terms, 1);
    assert_int_equal(rig.lease.wake_at, T0 + MS(50));
    rig.now = NANOS_NEVER / 2;
    rig_votes(&rig, "UUU");
    assert_state(&rig, LEASE_BACKOFF);
}

/* ---- canceled, closed, without memory ---- */

static void begin_in(struct rig *rig, enum lease_state state) {
    struct lease_terms terms = rig_terms();
    terms.retries = state == LEASE_BACKOFF;
    rig_start(rig, &terms, 1);
    if (state != LEASE_ACQUIRING) {
        rig_votes(rig, "GDDDU");
    } else {
        rig_votes(rig, "GD  U");
    }
    assert_state(rig, state);
}

static const struct {
    enum lease_state state;
    uint32_t undo;
} pending[] = {
    {LEASE_ACQUIRING, 0x0d}, /* even if the answer is still to come */
    {LEASE_BACKOFF, 0},      /* undone when the try failed */
    {LEASE_DIAGNOSING, 0},   /* its round is the release */
};

static void test_cancel(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pending); i++) {
        struct rig rig;
        begin_in(&rig, pending[i].state);
        assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
        assert_acquired(&rig, REDLOCK_ECANCELED);
        assert_int_equal(rig.update.undo, pending[i].undo);
        assert_false(rig.update.send);
        assert_int_equal(rig_cancel(&rig), REDLOCK_EINVAL);
        assert_int_equal(rig.update.notifications, 0);
        rig_votes(&rig, "   G"); /* too late to count */
        assert_state(&rig, LEASE_OVER);
    }
}

static void test_cancel_of_a_yes_that_was_not_reported_yet(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 1);
    for (uint32_t i = 0; i < 3; i++) {
        round_vote(&rig.round, i, REDLOCK_VOTE_GRANTED, 0);
    }
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(rig.update.undo, 0x1f);
}

static void test_cancel_of_a_try_that_was_never_sent(void **state) {
    (void)state;
    struct lease_terms terms = rig_terms();
    struct lease lease;
    struct lease_update update;
    lease_start(&lease, &terms, 0x1f, 0, T0);
    lease_begin(&lease, T0, &update);
    assert_int_equal(lease_cancel(&lease, NULL, T0, &update), REDLOCK_OK);
    assert_int_equal(update.undo, 0);
    assert_int_equal(update.acquired, REDLOCK_ECANCELED);
}

/* The diagnosing round, which was to release the try's grants, could not be sent. */
static void test_cancel_of_an_unsent_diagnosing_round(void **state) {
    (void)state;
    struct rig rig;
    begin_in(&rig, LEASE_DIAGNOSING);
    rig.round.kind = ROUND_ACQUIRE; /* the latest round that was sent */
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_acquired(&rig, REDLOCK_ECANCELED);
    assert_int_equal(rig.update.undo, 0x01);
}

static void test_close(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pending); i++) {
        struct rig rig;
        begin_in(&rig, pending[i].state);
        rig_close(&rig);
        assert_acquired(&rig, REDLOCK_ECLOSED);
        assert_int_equal(rig.update.undo, pending[i].undo);
        assert_false(rig.update.send);
        rig_close(&rig);
        assert_int_equal(rig.update.notifications, 0);
        assert_nothing_sent(&rig);
    }
}

static void test_without_memory(void **state) {
    (void)state;
    struct rig rig;
    begin_in(&rig, LEASE_ACQUIRING);
    rig_out_of_memory(&rig);
    assert_acquired(&rig, REDLOCK_ENOMEM);
    begin_in(&rig, LEASE_DIAGNOSING);
    rig_out_of_memory(&rig);
    assert_acquired(&rig, REDLOCK_EHELD);
    assert_int_equal(rig.update.undo, 0x01); /* the nodes of the diagnosing round */
    begin_in(&rig, LEASE_BACKOFF);           /* nothing was to be sent */
    rig_out_of_memory(&rig);
    assert_state(&rig, LEASE_BACKOFF);
    assert_nothing_sent(&rig);
}

static void test_votes_that_come_late_change_why_a_try_failed(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.retries = 1;
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "D");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_BACKOFF);
    assert_int_equal(rig.lease.failure, REDLOCK_ENOQUORUM);
    rig_votes(&rig, " DDD");
    lease_reconsider(&rig.lease, &rig.round);
    assert_int_equal(rig.lease.failure, REDLOCK_EHELD);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    lease_reconsider(&rig.lease, &rig.round); /* this try has not failed */
    assert_int_equal(rig.lease.failure, REDLOCK_EHELD);
    struct round tried = rig.round;
    begin_in(&rig, LEASE_DIAGNOSING);
    assert_int_equal(rig.lease.failure, REDLOCK_EHELD);
    lease_reconsider(&rig.lease, &tried); /* no node has denied it yet */
    assert_int_equal(rig.lease.failure, REDLOCK_ENOQUORUM);
}

static void test_only_a_round_has_a_deadline_from_when_it_was_sent(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pending); i++) {
        struct rig rig;
        begin_in(&rig, pending[i].state);
        uint64_t wake_at = rig.lease.wake_at;
        rig_pass(&rig, MS(1));
        lease_sent(&rig.lease, &rig.round, rig.now);
        bool is_pause = pending[i].state == LEASE_BACKOFF;
        assert_int_equal(rig.lease.wake_at, is_pause ? wake_at : rig.now + MS(50));
    }
}

/* Each silent node has its own time: a round ends when the last one that matters is late. */
static void test_a_round_waits_for_nodes_that_are_not_late(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 5);
    rig_votes(&rig, "GG");
    rig.busy = 1U << 2 | 1U << 3; /* these two answer earlier commands; node 4 is late */
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    assert_int_equal(round_voters(&rig.round, REDLOCK_VOTE_TIMEOUT), 1U << 4);
    rig.busy = 1U << 3;
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    assert_int_equal(rig.lease.wake_at, rig.now + MS(50));
    rig.busy = 0;
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_OVER);
    assert_int_equal(rig.update.acquired, REDLOCK_ENOQUORUM);
    assert_int_equal(rig.round.timeout, MS(150));
}

/* A quorum that comes after the end of its validity is useless, however busy the nodes are. */
static void test_a_round_waits_no_longer_than_it_is_of_use(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    terms.ttl = MS(200);
    rig_start(&rig, &terms, 5);
    rig.busy = 0x1f;
    while (rig.lease.state == LEASE_ACQUIRING) {
        rig_wake_on_time(&rig);
    }
    assert_int_equal(rig.now, rig.round.usable_until);
}

static void test_what_only_a_held_lock_can_do(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pending); i++) {
        struct rig rig;
        begin_in(&rig, pending[i].state);
        assert_int_equal(rig_release(&rig), REDLOCK_EINVAL);
        assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_EINVAL);
        assert_state(&rig, pending[i].state);
        assert_int_equal(lease_validity(&rig.lease, rig.now), 0);
    }
}

/* ---- fences ---- */

/* Begins a fenced lease of five nodes; the first three have granted it, the last of them with 9. */
static void begin_raising(struct rig *rig) {
    struct lease_terms terms = rig_terms();
    terms.fenced = true;
    rig_start(rig, &terms, 1);
    rig->counter = 7;
    rig_votes(rig, "GG");
    rig->counter = 9;
    rig_votes(rig, "  G");
}

static void test_raising_again_ends_with_the_time_of_the_try(void **state) {
    (void)state;
    struct rig rig;
    begin_raising(&rig);
    while (rig.lease.state == LEASE_RAISING && rig.now < T0 + MS(20000)) {
        rig_pass(&rig, MS(40));
        rig.counter++; /* a node that breaks the rules */
        rig_votes(&rig, "GG");
        rig.counter++;
        rig_votes(&rig, "  G");
    }
    assert_state(&rig, LEASE_OVER);
    assert_int_equal(rig.update.acquired, REDLOCK_EEXPIRED);
    assert_int_equal(rig.update.undo, 0x1f);
    assert_true(rig.now >= T0 + MS(9898) && rig.now < T0 + MS(9898 + 40));
}

static void test_a_fence_that_cannot_be_raised_is_no_lock(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
    } rows[] = {{"GEEE", REDLOCK_ENOQUORUM}, {"MMM", REDLOCK_ENOQUORUM}, {"DDD", REDLOCK_EHELD}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        begin_raising(&rig);
        rig_votes(&rig, rows[i].votes);
        uint32_t undone = rig.update.undo;
        if (rig.lease.state == LEASE_DIAGNOSING) {
            assert_int_equal(rig.lease.may_hold, 0x1f); /* the nodes that its release is sent to */
            rig_wake_on_time(&rig);
        } else {
            assert_int_equal(undone, 0x1f);
        }
        assert_state(&rig, LEASE_OVER);
        assert_int_equal(rig.update.acquired, rows[i].status);
    }
}

/* Makes nodes answer a RAISE by counters that exceed the limit of the round. */
static void answer_beyond(struct rig *rig, const uint64_t *counters) {
    for (uint32_t i = 0; i < 3; i++) {
        round_record_fence(&rig->round, i, counters[i]);
    }
    rig_votes(rig, "EEE");
}

/*
 * The smallest one is enough: it may be a lie, or the value to which another client has raised the
 * counters.
 */
static void test_a_counter_beyond_the_limit_is_raised_to_where_there_is_no_other(void **state) {
    (void)state;
    struct rig rig;
    begin_raising(&rig);
    answer_beyond(&rig, (const uint64_t[]){12, 14, 11});
    assert_state(&rig, LEASE_RAISING);
    assert_sent(&rig, ROUND_RAISE);
    assert_int_equal(rig.lease.fence, 11);
    rig.counter = 11;
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.fence, 11);

    begin_raising(&rig);
    answer_beyond(&rig, (const uint64_t[]){0, 9, 0}); /* the fence itself */
    assert_state(&rig, LEASE_OVER);
    begin_raising(&rig);
    rig_pass(&rig, MS(10000));
    answer_beyond(&rig, (const uint64_t[]){12, 12, 12});
    assert_state(&rig, LEASE_OVER);
}

static void test_retries_are_used_up_by_the_last_one(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 1);
    assert_false(tries_are_used_up(&rig.lease)); /* there is none */
    terms.retries = 1;
    rig_start(&rig, &terms, 1);
    assert_false(tries_are_used_up(&rig.lease));
    struct lease unsent = rig.lease;
    unsent.tries = 0; /* another request was served first */
    assert_false(tries_are_used_up(&unsent));
    rig_votes(&rig, "EEE");
    rig_wake_on_time(&rig);
    assert_true(tries_are_used_up(&rig.lease));
}

static void test_the_deadline_of_raising_counts_from_when_it_was_sent(void **state) {
    (void)state;
    struct rig rig;
    begin_raising(&rig);
    rig_pass(&rig, MS(20));
    lease_sent(&rig.lease, &rig.round, rig.now);
    assert_int_equal(rig.lease.wake_at, rig.now + MS(50));
}

/* The time that a writer reports to the nodes, for which readers make room for its next try. */
static void test_when_the_next_try_comes_at_the_latest(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 1);
    assert_int_equal(lease_next_try_within(&rig.lease, T0), 0); /* it is the only one */
    terms.retries = 2;
    terms.retry_delay = MS(200);
    terms.retry_delay_max = MS(300);
    terms.ttl = MS(360);
    rig_start(&rig, &terms, 1);
    assert_int_equal(lease_next_try_within(&rig.lease, T0), MS(50 + 200 + 50));
    rig_votes(&rig, "EEE");
    rig_wake_on_time(&rig);
    assert_int_equal(lease_next_try_within(&rig.lease, rig.now), MS(360)); /* not 400: the TTL */
    rig_votes(&rig, "EEE");
    rig_wake_on_time(&rig);
    assert_int_equal(lease_next_try_within(&rig.lease, rig.now), 0);
    terms.wait = MS(10);
    rig_start(&rig, &terms, 1);
    assert_int_equal(lease_next_try_within(&rig.lease, T0), MS(50 + 10 + 50));
    assert_int_equal(lease_next_try_within(&rig.lease, T0 + MS(10)), 0);
}

/* ---- delayed start ---- */

static struct lease hold_back(const struct lease_terms *terms) {
    struct lease lease;
    lease_start(&lease, terms, 0x1f, MS(5000), T0);
    assert_int_equal(lease.state, LEASE_STARTING);
    assert_string_equal(lease_state_name(LEASE_STARTING), "starting");
    assert_true(lease_is_acquiring(&lease));
    return lease;
}

/*
 * The nodes have the time of a round; then the first try starts if the nodes that are up are a
 * quorum.
 */
static void test_the_first_try_waits_for_the_nodes(void **state) {
    (void)state;
    static const uint64_t waits[] = {0, MS(2000), MS(20)};
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct lease_terms terms = rig_terms();
        terms.wait = waits[i];
        uint64_t end = T0 + (waits[i] > 0 ? waits[i] : MS(5000));
        uint64_t patient = nanos_min(T0 + MS(50), end);
        struct lease lease = hold_back(&terms);
        assert_int_equal(lease.wake_at, patient);
        assert_false(lease_may_start(&lease, true, patient - 1));
        assert_int_equal(lease.wake_at, patient);
        assert_true(lease_may_start(&lease, true, patient));
        assert_int_equal(lease_may_start(&lease, false, patient), patient == end);
        assert_int_equal(lease.wake_at, end);
        assert_true(lease_may_start(&lease, false, end));
    }
}

static void test_what_was_held_back_begins_waits_or_ends(void **state) {
    (void)state;
    struct lease_terms terms = rig_terms();
    struct lease_update update;
    struct lease lease = hold_back(&terms);
    lease_woken(&lease, NULL, NULL, lease.wake_at, &update);
    assert_int_equal(lease.state, LEASE_STARTING);
    assert_false(update.send);
    lease_begin(&lease, T0 + MS(70), &update);
    assert_int_equal(lease.state, LEASE_ACQUIRING);
    assert_int_equal(lease.begun_at, T0);
    assert_true(update.send);

    lease = hold_back(&terms);
    lease_wait(&lease);
    assert_int_equal(lease.state, LEASE_QUEUED);
    assert_int_equal(lease.wake_at, lease.trying.give_up_at);

    lease = hold_back(&terms);
    assert_int_equal(lease_cancel(&lease, NULL, T0 + 1, &update), REDLOCK_OK);
    assert_int_equal(lease.state, LEASE_OVER);
    assert_int_equal(update.acquired, REDLOCK_ECANCELED);
    assert_int_equal(update.undo, 0);

    lease = hold_back(&terms);
    lease_close(&lease, NULL, T0 + 1, &update);
    assert_int_equal(update.acquired, REDLOCK_ECLOSED);
    assert_false(update.send);

    lease = hold_back(&terms);
    lease_end_untried(&lease, REDLOCK_ENOQUORUM, T0 + 1, &update);
    assert_int_equal(lease.state, LEASE_OVER);
    assert_int_equal(update.acquired, REDLOCK_ENOQUORUM);
    assert_int_equal(lease.tries, 0);
    assert_false(update.send);
}

int main(void) {
    const struct lease_terms terms = rig_terms();
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_a_quorum_in_time_is_a_lock),
        cmocka_unit_test(test_a_quorum_that_came_too_late_is_none),
        cmocka_unit_test(test_nobody_waits_for_a_quorum_that_would_be_of_no_use),
        cmocka_unit_test(test_a_failed_try_is_undone_where_it_may_be),
        cmocka_unit_test(test_a_last_failure_with_deniers_is_diagnosed),
        cmocka_unit_test(test_late_grants_are_no_failures),
        cmocka_unit_test(test_a_timer_that_is_early_does_nothing),
        cmocka_unit_test(test_without_a_round_the_deadline_decides_nothing),
        cmocka_unit_test(test_a_retry_comes_after_a_random_delay),
        cmocka_unit_test(test_a_quorum_that_refuses_ends_the_request),
        cmocka_unit_test(test_retries_are_counted),
        cmocka_unit_test(test_a_key_that_stays_does_so_from_the_try_that_took_it),
        cmocka_unit_test(test_failing_without_end_goes_on_without_end),
        cmocka_unit_test(test_the_last_try_begins_before_the_end_of_the_wait),
        cmocka_unit_test(test_no_retry_after_the_end_of_the_wait),
        cmocka_unit_test(test_a_retry_that_is_late_does_not_begin),
        cmocka_unit_test(test_a_wait_without_end),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_of_a_yes_that_was_not_reported_yet),
        cmocka_unit_test(test_cancel_of_a_try_that_was_never_sent),
        cmocka_unit_test(test_cancel_of_an_unsent_diagnosing_round),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_votes_that_come_late_change_why_a_try_failed),
        cmocka_unit_test(test_only_a_round_has_a_deadline_from_when_it_was_sent),
        cmocka_unit_test(test_a_round_waits_for_nodes_that_are_not_late),
        cmocka_unit_test(test_a_round_waits_no_longer_than_it_is_of_use),
        cmocka_unit_test(test_what_only_a_held_lock_can_do),
        cmocka_unit_test(test_the_first_try_waits_for_the_nodes),
        cmocka_unit_test(test_what_was_held_back_begins_waits_or_ends),
        cmocka_unit_test(test_raising_again_ends_with_the_time_of_the_try),
        cmocka_unit_test(test_a_fence_that_cannot_be_raised_is_no_lock),
        cmocka_unit_test(test_a_counter_beyond_the_limit_is_raised_to_where_there_is_no_other),
        cmocka_unit_test(test_retries_are_used_up_by_the_last_one),
        cmocka_unit_test(test_the_deadline_of_raising_counts_from_when_it_was_sent),
        cmocka_unit_test(test_when_the_next_try_comes_at_the_latest),
    };
    struct CMUnitTest tests[COUNT_OF(runs) + COUNT_OF(others)];
    run_make_tests(tests, runs, COUNT_OF(runs), &terms);
    memcpy(tests + COUNT_OF(runs), others, sizeof(others));
    return cmocka_run_group_tests_name("lease_acquire", tests, NULL, NULL);
}
