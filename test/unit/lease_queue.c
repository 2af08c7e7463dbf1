/* Tests a lease that waits in the queue: entries, pushes, polls, requeues, and handovers. */
#include "base/nanos.h"
#include "core/handover.h"
#include "core/queue.h"
#include "core/validity.h"
#include "unit.h"

#include "run.h"

#include <string.h>

static struct lease_terms queue_terms(void) {
    struct lease_terms terms = rig_terms();
    terms.queues = true;
    terms.reservation = MS(1000);
    terms.retries = UINT32_MAX;
    terms.retry_delay = terms.retry_delay_max = MS(200);
    return terms;
}

/* Makes nodes from `first` on deny the key for 5 s, with an entry after `ahead` others. */
static void deny_from(struct rig *rig, uint32_t first, uint32_t ahead) {
    for (uint32_t node = first; node < 5; node++) {
        round_mark_queued(&rig->round, node, ahead);
        round_vote(&rig->round, node, REDLOCK_VOTE_DENIED, 5000);
    }
}

/* Makes all five nodes deny, with an entry after `ahead` others. */
static void mark_queued(struct rig *rig, uint32_t ahead) {
    rig_pass(rig, MS(2));
    deny_from(rig, 0, ahead);
    rig_late_votes(rig);
    assert_state(rig, LEASE_QUEUED);
    assert_nothing_sent(rig);
}

/* Starts a lease whose five nodes have all denied, with an entry after `ahead` others. */
static void start_queued(struct rig *rig, const struct lease_terms *terms, uint32_t ahead) {
    rig_start(rig, terms, 1);
    assert_sent(rig, ROUND_QUEUE);
    mark_queued(rig, ahead);
}

/* ---- runs ---- */

static const struct run runs[] = {
    {
        .name = "a free key is had at once",
        .rows = {{VOTES, "GGG", IS_HELD, .validity = 9898}},
    },
    {
        .name = "pushes are confirmed first",
        .rows = {QUEUED_AFTER(0),
                 {PASS, .ms = 100},
                 {PUSH, .nodes = NODE(0) | NODE(4), .ms = 1000},
                 {PUSH, .nodes = NODE(2), .ms = 1000, IS_RAISED},
                 {VOTES, "G G G", IS_HELD, .validity = 9898}},
    },
    {
        /* During a change of nodes, one list may have more than its quorum when the other reaches
           one. */
        .name = "a push that was not needed is no matter",
        .lists = {0x07, 0x38},
        .rows = {{PUSH, .nodes = NODE(0), .ms = 900}, {VOTES, " GGGG", IS_HELD, .validity = 9898}},
    },
    {
        .name = "pushes that are trusted are notified at once",
        .terms = {.watchdog = true, .trusts_pushes = true},
        .rows = {QUEUED_AFTER(0),
                 {PASS, .ms = 100},
                 {PUSH, .nodes = NODE(0), .ms = 900},
                 {PUSH, .nodes = NODE(4), .ms = 700},
                 /* the minimum of the quorum counts */
                 {PUSH, .nodes = NODE(2), .ms = 800, IS_HELD, .validity = 700, WAKES_IN(175, 175)},
                 {TIMER, .state = LEASE_RENEWING, .sends = SENDS(RENEW)}},
    },
    {
        .name = "pushes that leave too little are confirmed",
        .terms = {.watchdog = true, .trusts_pushes = true, .min_validity = MS(700)},
        .rows = {QUEUED_AFTER(0),
                 {PUSH, .nodes = NODE(0), .ms = 900},
                 {PUSH, .nodes = NODE(1), .ms = 700},
                 {PUSH, .nodes = NODE(2), .ms = 800, IS_RAISED}},
    },
    {
        /* The rig's nodes are late after 50 ms: a renewal might not be answered. */
        .name = "pushes that leave too little for a renewal are confirmed",
        .terms = {.watchdog = true, .trusts_pushes = true},
        .rows = {QUEUED_AFTER(0),
                 {PUSH, .nodes = NODE(0), .ms = 900},
                 {PUSH, .nodes = NODE(1), .ms = 49},
                 {PUSH, .nodes = NODE(2), .ms = 800, IS_RAISED}},
    },
    {
        .name = "counters that differ are raised",
        .terms = {.watchdog = true, .trusts_pushes = true, .fenced = true},
        .rows = {QUEUED_AFTER(0),
                 {PUSH, .nodes = 0x03, .ms = 900, .counter = 7},
                 {PUSH, .nodes = NODE(2), .ms = 900, .counter = 8, IS_RAISED, .fence = 8}},
    },
    {
        .name = "a quorum that can neither grant nor queue is a no",
        /* undone: the keys and entries of all nodes that were reached */
        .rows = {{VOTES, "DUEU", .state = LEASE_BACKOFF, .undo = 0x15}},
    },
    {
        .name = "silent nodes are not waited for",
        .rows = {{DENY, .nodes = 0x03},
                 {DENY, .nodes = NODE(2), .state = LEASE_QUEUED},
                 {.event = VOTES, .votes = "   G"},
                 {PUSH, .nodes = NODE(0), .ms = 900},
                 {PUSH, .nodes = NODE(1), .ms = 900, IS_RAISED}},
    },
    {
        .name = "silent nodes are late in the queue, too",
        .rows = {{DENY, .nodes = 0x07, .state = LEASE_QUEUED, WAKES_IN(50, 50)},
                 {TIMER, .late = 0x18, WAKES_IN(950, 1950)}, /* next is the poll */
                 {.event = VOTES,
                  .votes = "   G"}, /* too late for the deadline, but not for the entry */
                 {PUSH, .nodes = NODE(0), .ms = 900},
                 {PUSH, .nodes = NODE(1), .ms = 900, IS_RAISED}},
    },
    {
        /* The time in which a split vote may resolve begins when a quorum has answered. */
        .name = "a grant of a near node waits for the others",
        .rows = {{.event = VOTES, .votes = "G"},
                 {PASS, .ms = 20},
                 {DENY, .nodes = 0x1e, .state = LEASE_QUEUED, WAKES_IN(41, 41)}},
    },
    {
        /* Unreachable nodes answer at once: that is no split, as long as others may complete. */
        .name = "a grant beside dead nodes waits for the others",
        .rows = {{.event = VOTES, .votes = "GUU", .state = LEASE_QUEUED, WAKES_IN(50, 50)}},
    },
    {
        .name = "a poll comes when the holder has expired",
        .rows = {{DENY, .nodes = NODE(0), .ms = 100},
                 {DENY, .nodes = NODE(1), .ms = 200},
                 {DENY, .nodes = NODE(2), .ms = 300, .state = LEASE_QUEUED},
                 {DENY, .nodes = NODE(3), .ms = 400},
                 /* three of five are free then */
                 {DENY, .nodes = NODE(4), .ms = 500, WAKES_IN(301, 330)},
                 {TIMER, ASKS_AGAIN, .tries = 1}},
    },
    {
        /* The holder frees its keys one by one: the entry asks when a quorum is free. */
        .name = "changes at a quorum bring the poll forward",
        .rows = {QUEUED_AFTER(0),
                 {PASS, .ms = 11},
                 {CHANGE, .nodes = NODE(0) | NODE(3), .wakes_as_before = true},
                 {CHANGE, .nodes = NODE(3), .wakes_as_before = true}, /* once more */
                 {CHANGE, .nodes = NODE(1), ASKS_AGAIN}},
    },
    {
        .name = "grants count with changes",
        .rows = {QUEUED_AFTER(0),
                 {PASS, .ms = 11},
                 {PUSH, .nodes = 0x03, .ms = 900},
                 {CHANGE, .nodes = NODE(4), ASKS_AGAIN}},
    },
    {
        /* A change notification within 10 ms after an ask leads to a check when the 10 ms are over:
           the key may be taken. */
        .name = "an early change has the key looked at",
        .rows = {QUEUED_AFTER(0, .wakes_to_poll = true),
                 {CHANGE, .nodes = ALL_NODES, WAKES_IN(8, 8)},
                 {TIMER, .watches = true, .wakes_to_poll = true},
                 /* the answer to the check: the key is free */
                 {CHANGE, .nodes = NODE(2), ASKS_AGAIN}},
    },
    {
        /* Nodes leave the key to anybody for a while: the first waiter asks again after that. */
        .name = "a key that is left to anybody is asked for afterwards",
        .rows = {QUEUED_AFTER(9, WAKES_IN(1000, 17063)),
                 {OPEN, .nodes = 0x07, .ms = 7, WAKES_IN(8, 9)},
                 {TIMER, ASKS_AGAIN}},
    },
    {
        /* The message came before the answer, which names the previous holder: the message counts.
           Node 3 leaves the key for longer than the holder has it. */
        .name = "so is one whose message overtakes the answer",
        .rows = {{OPEN, .nodes = 0x07, .ms = 7},
                 {OPEN, .nodes = NODE(3), .ms = 9000},
                 QUEUED_AFTER(0, WAKES_IN(8, 9))},
    },
    {
        /* Without entries no push comes: polls follow each other like retries. */
        .name = "without entries polls are retries",
        .rows = {{VOTES, "DDDDD", .state = LEASE_QUEUED, WAKES_IN(1, 200)}, {TIMER, ASKS_AGAIN}},
    },
    {
        .name = "a queue that begins anew is joined soon",
        .rows = {QUEUED_AFTER(0),
                 {JOIN, WAKES_IN(0, 50)},
                 {TIMER, ASKS_AGAIN},
                 {JOIN, .wakes_as_before = true},
                 {DENY, .nodes = ALL_NODES, .state = LEASE_QUEUED, WAKES_IN(0, 50)},
                 {TIMER, ASKS_AGAIN},
                 {VOTES, "GGG", IS_HELD},
                 {.event = JOIN}},
    },
    {
        .name = "without entries at a quorum it is joined at once",
        .rows = {{VOTES, "DDDDD", .state = LEASE_QUEUED, WAKES_IN(0, 200)}, {JOIN, ASKS_AGAIN}},
    },
    {
        /* If no quorum answers in time, the longest time for that counts: two node timeouts. */
        .name = "without answers a split vote takes longer",
        .terms = {.reservation = MS(5000)},
        .rows = {{DENY, .nodes = 0x03},
                 {TIMER, .state = LEASE_QUEUED},
                 {PUSH, .nodes = NODE(0), .ms = 900, WAKES_IN(101, 101)}},
    },
    {
        /* Nodes that cannot be reached at the end have a pending release: they may have the key, or
           an entry. */
        .name = "a wait ends",
        .terms = {.wait = MS(500)},
        .rows = {QUEUED_AFTER(0, WAKES_IN(498, 498)),
                 {TIMER, .state = LEASE_DIAGNOSING, .sends = SENDS(DIAGNOSE), .awaited = ALL_NODES,
                  .may_hold = ALL_NODES},
                 {VOTES, "DDDDD", FAILS(REDLOCK_EHELD)}},
    },
    {
        .name = "the end of a wait cuts off no answer that may complete a quorum",
        .terms = {.wait = MS(10)},
        .rows = {{.event = VOTES, .votes = "GG"},
                 {DENY, .nodes = NODE(2), .state = LEASE_QUEUED}, /* next is the requeue */
                 {PASS, .ms = 10},
                 {EARLY, WAKES_IN(40, 40)},
                 {VOTES, "   G", IS_HELD}},
    },
    {
        .name = "canceling gives up all entries, also while it asks again",
        .rows = {QUEUED_AFTER(0),
                 {TIMER, ASKS_AGAIN},
                 {CANCEL, .undo = ALL_NODES, FAILS(REDLOCK_ECANCELED)}},
    },
    {
        .name = "without memory to ask again entries are given up",
        .rows = {QUEUED_AFTER(0),
                 {.event = NO_MEMORY},
                 {TIMER, ASKS_AGAIN},
                 {UNSENT, .undo = ALL_NODES, FAILS(REDLOCK_ENOMEM)}},
    },
    {
        .name = "an early timer is no poll",
        .rows = {QUEUED_AFTER(0), {EARLY, .wakes_as_before = true}},
    },
};

/* ---- entries ---- */

/* While channels open, a crowd that polled would delay them: it asks when a quorum can answer. */
static void test_waiters_ask_when_a_quorum_gives_entries(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    struct patience patience = *terms.patience;
    terms.patience = &patience;
    patience.is_opening = true;
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "DDDDD");
    assert_state(&rig, LEASE_QUEUED);
    assert_int_equal(rig.lease.wake_at, rig.now + MS(1000));
    rig_ask_again(&rig);
    assert_nothing_sent(&rig);
    patience.is_opening = false;
    rig_ask_again(&rig);
    assert_sent(&rig, ROUND_QUEUE);
}

/*
 * An answer may be older than the change that was notified before it arrived: the key is checked.
 */
static void test_a_change_during_a_poll_has_the_key_looked_at(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig_pass(&rig, MS(500));
    for (uint32_t node = 0; node < 3; node++) {
        rig_key_changed_at(&rig, node);
    }
    assert_sent(&rig, ROUND_QUEUE);
    rig_key_changed_at(&rig, 1);
    assert_state(&rig, LEASE_ACQUIRING);
    assert_int_equal(rig.round.changed, 1 << 1);
    mark_queued(&rig, 0);
    assert_int_equal(rig.round.changed, 0);
    assert_int_equal(rig.lease.wake_at, rig.lease.asked_at + MS(20)); /* the pauses double */
    rig_wake_on_time(&rig);
    assert_nothing_sent(&rig);
    assert_true(rig.update.watch);
}

/* A server that notifies forever is asked four times a second in the end; a poll ends that. */
static void test_hints_without_end_in_queue_are_followed_seldom(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    uint64_t pause = MS(10);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t pause_end = rig.lease.asked_at + pause;
        rig_pass(&rig, pause_end - 1 - rig.now);
        rig_key_changed_at(&rig, 4);
        assert_nothing_sent(&rig);
        rig_wake_on_time(&rig);
        assert_int_equal(rig.now, pause_end);
        rig_key_changed_at(&rig, 0);
        rig_key_changed_at(&rig, 1);
        assert_sent(&rig, ROUND_QUEUE);
        mark_queued(&rig, 0);
        pause = nanos_min(2 * pause, MS(250));
    }
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_int_equal(rig.lease.change_rounds, 0);
}

static void test_who_stands_further_back_polls_less(void **state) {
    (void)state;
    static const struct {
        uint32_t ahead;
        uint64_t least_ms, most_ms;
    } rows[] = {{0, 1875, 1993}, {8, 1250, 2579}, {1000000, 1250, 21329}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        struct lease_terms terms = queue_terms();
        start_queued(&rig, &terms, rows[i].ahead);
        assert_int_in_range(rig.lease.trying.poll_at - rig.now, MS(rows[i].least_ms),
                            MS(rows[i].most_ms));
    }
}

/*
 * In a queue that moves, all have asked from its back. If it stops because the next waiter hangs,
 * one of them asks soon after that one's reservation, though most ask much later.
 */
static void test_a_queue_that_stops_is_looked_at_soon(void **state) {
    (void)state;
    static const uint32_t lengths[] = {16, 64, 128};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        uint64_t first = UINT64_MAX, sum = 0;
        for (uint32_t seed = 1; seed <= lengths[i]; seed++) {
            struct rig rig;
            struct lease_terms terms = queue_terms();
            rig_start(&rig, &terms, seed * UINT64_C(0x9e3779b97f4a7c15));
            mark_queued(&rig, lengths[i] - 1);
            uint64_t delay = rig.lease.trying.poll_at - rig.now;
            first = nanos_min(first, delay);
            sum += delay;
        }
        assert_int_in_range(first, MS(1000), MS(1500));
        assert_true(sum / lengths[i] > MS(1000) + MS(1000) * lengths[i] / 24);
    }
}

static void test_answers_after_a_quorum_of_them_count(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    assert_true(queue_heeds(&rig.round, REDLOCK_VOTE_GRANTED));
    rig_votes(&rig, "DD");
    assert_false(queue_heeds(&rig.round, REDLOCK_VOTE_DENIED));
    rig_vote(&rig, 2, REDLOCK_VOTE_DENIED);
    assert_true(queue_heeds(&rig.round, REDLOCK_VOTE_DENIED)); /* and when two stay silent */
}

/* Nodes whose grants do not count are asked for an entry only: the holder then tops them up. */
static void test_nodes_that_only_gave_an_entry_are_topped_up(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(2));
    round_record_left_free(&rig.round, 4);
    round_vote(&rig.round, 4, REDLOCK_VOTE_UNTRUSTED, 500);
    round_vote(&rig.round, 3, REDLOCK_VOTE_UNTRUSTED, 500); /* it has the key */
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_true(rig.update.top_up_later);
    rig_late_votes(&rig);
    assert_int_equal(rig.update.top_up, NODE(4));
}

static void test_a_node_that_gave_an_entry_after_the_verdict_is_topped_up(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(2));
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    rig_vote(&rig, 3, REDLOCK_VOTE_UNTRUSTED); /* it has the key */
    assert_nothing_sent(&rig);
    round_record_left_free(&rig.round, 4);
    rig_vote(&rig, 4, REDLOCK_VOTE_UNTRUSTED);
    assert_int_equal(rig.update.top_up, NODE(4));
}

/* ---- requeues ---- */

/* Makes node 0 grant the key, and the others deny it, with an entry. */
static void grant_at_one(struct rig *rig) {
    rig_pass(rig, MS(2));
    deny_from(rig, 1, 0);
    round_vote(&rig->round, 0, REDLOCK_VOTE_GRANTED, 0);
    rig_late_votes(rig);
    assert_state(rig, LEASE_QUEUED);
}

/*
 * The time that nodes take to answer counts, not the time in the queue. From the third time on the
 * lease asks first: pushes may take longer than that.
 */
static void test_a_split_vote_is_given_up_for_a_new_entry(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    uint64_t delay = MS(5); /* two round trips and 1 ms */
    start_queued(&rig, &terms, 0);
    for (unsigned i = 0; i < 3; i++) {
        rig_pass(&rig, MS(30));
        uint64_t before = rig.now;
        rig_push(&rig, i % 5, rig.now + MS(900));
        assert_int_equal(rig.lease.wake_at, before + delay);
        rig_wake_on_time(&rig);
        assert_sent(&rig, ROUND_QUEUE);
        assert_int_equal(rig.update.keeps_token, i >= 2);
        if (i >= 2) {
            before = rig.now + MS(2);
            grant_at_one(&rig);
            assert_int_equal(rig.lease.wake_at, before + delay);
            rig_wake_on_time(&rig);
            assert_sent(&rig, ROUND_QUEUE);
        }
        assert_false(rig.update.keeps_token);
        assert_int_equal(rig.update.undo, 0x1f);
        assert_int_equal(rig.lease.tries, i + 2);
        mark_queued(&rig, 0);
        delay = nanos_min(2 * delay, terms.reservation / 4);
    }
}

/* While a quorum keeps the key for a holder, the lease leaves it to the holder at other nodes. */
static void test_who_waits_beside_a_holder_only_enters(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    assert_sent(&rig, ROUND_QUEUE);
    assert_false(rig.update.enters_only);
    mark_queued(&rig, 0);
    rig_wake_on_time(&rig);
    assert_true(rig.update.enters_only);
    /* Its own key, or a free one, is not granted; a minority of such nodes changes nothing. */
    rig_pass(&rig, MS(2));
    deny_from(&rig, 2, 0);
    round_vote(&rig.round, 0, REDLOCK_VOTE_DENIED, 0);
    round_vote(&rig.round, 1, REDLOCK_VOTE_DENIED, 0);
    rig_late_votes(&rig);
    rig_wake_on_time(&rig);
    assert_true(rig.update.enters_only);
    /* With a third one, the key may be free. */
    rig_pass(&rig, MS(2));
    deny_from(&rig, 3, 0);
    for (uint32_t node = 0; node < 3; node++) {
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 0);
    }
    rig_late_votes(&rig);
    rig_wake_on_time(&rig);
    assert_true(rig.update.keeps_token);
    assert_false(rig.update.enters_only);
    /* A push says that the holder has released it. */
    mark_queued(&rig, 0);
    rig_push(&rig, 1, rig.now + MS(900));
    rig_wake_on_time(&rig);
    assert_false(rig.update.keeps_token);
    assert_false(rig.update.enters_only);
}

/* Nodes that may still answer, but complete no quorum, do not put off the end of the wait. */
static void test_the_end_does_not_wait_for_a_minority(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.wait = MS(20);
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(2));
    deny_from(&rig, 2, 0);
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_QUEUED);
    rig_wake_on_time(&rig);
    assert_int_equal(rig.now, rig.lease.begun_at + MS(20));
    assert_state(&rig, LEASE_DIAGNOSING);
}

/* Two nodes deny, and three do not answer: nobody need have the key, which may expire at the two.
 */
static void test_who_knows_of_no_holder_asks_for_the_key(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(2));
    deny_from(&rig, 3, 0);
    rig_late_votes(&rig);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_QUEUED);
    assert_nothing_sent(&rig);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    assert_false(rig.update.enters_only);
}

/* A quorum has notified that the key has changed, in a pause that the poll need not wait for. */
static void test_a_poll_in_the_pause_asks_for_a_key_that_changed(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    for (unsigned i = 0; i < 6; i++) { /* until the pause is 250 ms */
        rig_pass(&rig, MS(250));
        for (uint32_t node = 0; node < 3; node++) {
            rig_key_changed_at(&rig, node);
        }
        assert_sent(&rig, ROUND_QUEUE);
        rig_pass(&rig, MS(2));
        for (uint32_t node = 0; node < 5; node++) {
            round_mark_queued(&rig.round, node, 0);
            round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 100);
        }
        rig_late_votes(&rig);
    }
    for (uint32_t node = 0; node < 3; node++) {
        rig_key_changed_at(&rig, node);
    }
    assert_nothing_sent(&rig);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.now < rig.lease.asked_at + MS(250));
    assert_false(rig.update.enters_only);
}

/*
 * The node that grants passes the key to the new token: it is the same node after each requeue, so
 * no other waiter is in need of it, and a holder has the others.
 */
static void test_requeues_that_do_not_help_show_a_holder(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    grant_at_one(&rig);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2) { /* asks first */
            rig_wake_on_time(&rig);
            assert_true(rig.update.keeps_token);
            assert_false(rig.update.enters_only);
            grant_at_one(&rig);
        }
        rig_wake_on_time(&rig);
        assert_false(rig.update.keeps_token);
        assert_false(rig.update.enters_only);
        mark_queued(&rig, 0);
        rig_push(&rig, 0, rig.now + MS(900));
    }
    rig_wake_on_time(&rig);
    assert_true(rig.update.keeps_token);
    assert_true(rig.update.enters_only);
    /* From then on all deny, and nothing is left to give up. */
    mark_queued(&rig, 0);
    assert_int_equal(rig.lease.trying.requeue_at, NANOS_NEVER);
    rig_wake_on_time(&rig);
    assert_true(rig.update.enters_only);
    assert_int_equal(rig.lease.trying.requeues, 0);
}

/* A node that has lost its keys grants the key of a holder: no other waiter is in need of it. */
static void test_a_grant_beside_a_holder_is_kept_for_longer(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    uint64_t granted_at = rig.now + MS(2);
    do {
        grant_at_one(&rig);
        rig_wake_on_time(&rig);
        assert_sent(&rig, ROUND_QUEUE);
    } while (rig.update.keeps_token);
    assert_int_equal(rig.now, granted_at + 4 * terms.reservation);
    assert_int_equal(rig.update.undo, 0x1f);
    /* A push says that the holder has released the key. */
    grant_at_one(&rig);
    assert_int_equal(rig.lease.trying.requeue_at, rig.now + 4 * terms.reservation);
    rig_push(&rig, 1, rig.now + MS(900));
    assert_in_range(rig.lease.trying.requeue_at, rig.now, rig.now + terms.reservation / 4);
}

/* The nodes that deny in the first round may have granted to others of a split vote. */
static void test_a_split_vote_in_the_first_round_is_given_up_soon(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    grant_at_one(&rig);
    assert_int_equal(rig.lease.wake_at, rig.now + MS(5));
}

/* Makes a lease requeue, after which the nodes deny the new token. */
static void start_requeued(struct rig *rig, const struct lease_terms *terms) {
    start_queued(rig, terms, 0);
    rig_push(rig, 0, rig->now + MS(900));
    rig_wake_on_time(rig);
    assert_sent(rig, ROUND_QUEUE);
    assert_false(rig->update.keeps_token);
    mark_queued(rig, 0);
}

/* ---- ends ---- */

/* A node may still have the key for the token of before the requeue: it is asked once more. */
static void test_a_denial_after_a_requeue_is_no_evidence(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.wait = MS(100);
    start_requeued(&rig, &terms);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_DIAGNOSING);
    assert_int_equal(rig.update.awaited, 0x1f);
    assert_int_equal(rig.lease.failure, REDLOCK_ENOQUORUM);
    start_requeued(&rig, &terms);
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(rig.update.undo, 0x1f);
    assert_int_equal(round_voters(&rig.round, REDLOCK_VOTE_DENIED), 0);
    /* Once it has asked again, the old token is released everywhere. */
    terms.wait = MS(3000);
    start_requeued(&rig, &terms);
    rig_wake_on_time(&rig);
    assert_true(rig.update.keeps_token);
    mark_queued(&rig, 0);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_DIAGNOSING);
    assert_int_equal(rig.lease.failure, REDLOCK_EHELD);
    /* A reader's earlier share denies nothing: others do. */
    terms.wait = MS(100);
    terms.is_reader = true;
    start_requeued(&rig, &terms);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_DIAGNOSING);
    assert_int_equal(rig.lease.failure, REDLOCK_EHELD);
}

/* The verdict has come, but was not handled yet. */
static void test_a_decided_round_keeps_its_votes_when_canceled(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_requeued(&rig, &terms);
    for (uint32_t node = 0; node < 3; node++) {
        round_push(&rig.round, node, 0, rig.now + MS(900));
    }
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(round_voters(&rig.round, REDLOCK_VOTE_DENIED), 0x18);
}

static void test_a_push_that_comes_after_a_cancel_is_nothing(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    round_push(&rig.round, 0, 0, rig.now + MS(900));
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_OVER);
    assert_nothing_sent(&rig);
}

/* ---- handing over ---- */

static void wait_for_another(struct lease *lease, const struct lease_terms *terms) {
    lease_start(lease, terms, 0x1f, 0, T0);
    lease_wait(lease);
    assert_int_equal(lease->state, LEASE_QUEUED);
    assert_int_equal(lease->wake_at, nanos_add(T0, terms->wait));
}

static void test_who_waits_for_another_asks_nobody(void **state) {
    (void)state;
    struct lease lease;
    struct lease_update update;
    struct lease_terms terms = queue_terms();
    terms.wait = MS(500);
    wait_for_another(&lease, &terms);
    lease_woken(&lease, NULL, NULL, T0 + MS(499), &update);
    assert_int_equal(update.notifications, 0);
    lease_ask_again(&lease, NULL, T0, &update);
    assert_false(update.send);
    assert_false(lease_is_at_end(&lease, T0 + MS(499)));
    assert_true(lease_is_at_end(&lease, T0 + MS(500)));
    lease_end_untried(&lease, REDLOCK_EHELD, T0 + MS(500), &update);
    assert_int_equal(update.acquired, REDLOCK_EHELD);
    assert_int_equal(update.undo, 0);
    wait_for_another(&lease, &terms);
    lease_lead(&lease, T0 + MS(1), &update);
    assert_true(update.send);
    assert_int_equal(update.round, ROUND_QUEUE);
    wait_for_another(&lease, &terms);
    assert_int_equal(lease_cancel(&lease, NULL, T0, &update), REDLOCK_OK);
    assert_int_equal(update.acquired, REDLOCK_ECANCELED);
    assert_int_equal(update.undo, 0);
    lease_lead(&lease, T0, &update);
    assert_false(update.send);
}

static void test_a_lock_is_handed_over_with_its_validity(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, begun;
    struct lease_terms terms = queue_terms();
    terms.watchdog = true;
    rig_hold(&rig, &terms, "GGG");
    wait_for_another(&to, &terms);
    rig_pass(&rig, MS(1000));
    assert_true(handover_is_silent(&rig.lease, &to, rig.now));
    uint64_t end = rig.lease.holding.validity_end;
    uint64_t wake_at = rig.lease.wake_at;
    handover_move(&rig.lease, &to, rig.now, &ended, &begun);
    assert_int_equal(ended.notifications, LEASE_RELEASED);
    assert_int_equal(ended.released, REDLOCK_OK);
    assert_int_equal(begun.notifications, LEASE_ACQUIRED);
    assert_int_equal(begun.acquired, REDLOCK_OK);
    assert_int_equal(rig.lease.state, LEASE_OVER);
    assert_int_equal(lease_validity(&rig.lease, rig.now), 0);
    assert_int_equal(to.state, LEASE_HELD);
    assert_int_equal(lease_validity(&to, rig.now), end - rig.now);
    assert_int_equal(to.wake_at, wake_at);
    assert_int_equal(to.may_hold, 0x1f);
}

/* The first lease is no longer renewed, since its max_hold is over; that of the next one begins. */
static void test_renewals_begin_anew_with_the_next(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, begun;
    struct lease_terms terms = queue_terms();
    terms.watchdog = true;
    terms.max_hold = MS(1);
    rig_hold(&rig, &terms, "GGG");
    wait_for_another(&to, &terms);
    assert_int_equal(rig.lease.wake_at, rig.lease.holding.lost_at);
    assert_true(handover_is_silent(&rig.lease, &to, rig.now));
    handover_move(&rig.lease, &to, rig.now, &ended, &begun);
    assert_int_equal(to.wake_at, rig.now);
    lease_woken(&to, NULL, NULL, rig.now, &begun);
    assert_int_equal(to.state, LEASE_RENEWING);
    assert_true(begun.send);
}

static void test_a_renewal_goes_on_with_the_next(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, begun;
    struct lease_terms terms = queue_terms();
    terms.watchdog = terms.trusts_pushes = true;
    rig_hold(&rig, &terms, "GGG");
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_RENEWING);
    wait_for_another(&to, &terms);
    assert_true(handover_is_silent(&rig.lease, &to, rig.now));
    handover_move(&rig.lease, &to, rig.now, &ended, &begun);
    assert_int_equal(to.state, LEASE_RENEWING);
    round_grant(&rig.round, 0, 0);
    round_grant(&rig.round, 1, 0);
    assert_true(round_grant(&rig.round, 2, 0));
    lease_decided(&to, &rig.round, rig.now, &ended);
    assert_int_equal(to.state, LEASE_HELD);
    assert_int_equal(lease_validity(&to, rig.now), MS(9898));
}

/* Hands over from a held lease to one that has to ask the nodes. */
static void hand_over_aloud(struct rig *rig, struct lease *to, struct lease_update *begun) {
    struct lease_update ended;
    assert_true(handover_is_possible(&rig->lease, to, rig->now));
    assert_false(handover_is_silent(&rig->lease, to, rig->now));
    handover_move(&rig->lease, to, rig->now, &ended, begun);
    assert_int_equal(ended.notifications, LEASE_RELEASED);
    assert_int_equal(ended.released, REDLOCK_OK);
    assert_int_equal(rig->lease.state, LEASE_OVER);
    assert_int_equal(begun->notifications, 0);
    assert_true(begun->send);
    assert_int_equal(begun->round, ROUND_RAISE);
    assert_int_equal(to->state, LEASE_RAISING);
    assert_int_equal(to->may_hold, 0x1f);
}

/* The range of an acquisition is 1937 to 2000, that of the round 2001 to 2064. */
static void test_a_fenced_lock_is_handed_over_with_a_fence_of_its_own(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, update;
    struct lease_terms terms = queue_terms();
    terms.fenced = true;
    rig_start(&rig, &terms, 1);
    rig.counter = 2000;
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(lease_fence(&rig.lease), 1937);
    for (uint64_t fence = 1938; fence <= 2000; fence++) {
        wait_for_another(&to, &terms);
        assert_true(handover_is_silent(&rig.lease, &to, rig.now));
        handover_move(&rig.lease, &to, rig.now, &ended, &update);
        assert_int_equal(update.acquired, REDLOCK_OK);
        assert_false(update.send);
        assert_int_equal(lease_fence(&to), fence);
        assert_int_equal(to.fence, 2000); /* renewals carry the end of the range */
        rig.lease = to;
    }
    wait_for_another(&to, &terms);
    rig_pass(&rig, MS(1000));
    hand_over_aloud(&rig, &to, &update);
    assert_int_equal(to.fence, 2064);
    struct round round;
    struct round_answer answers[5];
    round_begin(&round, answers, ROUND_RAISE, rig.lists, rig.now, terms.ttl, 0);
    round_grant(&round, 0, 2064);
    round_grant(&round, 1, 2064);
    assert_true(round_grant(&round, 2, 2064));
    lease_decided(&to, &round, rig.now, &update);
    assert_int_equal(update.acquired, REDLOCK_OK);
    assert_int_equal(to.state, LEASE_HELD);
    assert_int_equal(lease_fence(&to), 2001);
    assert_int_equal(lease_validity(&to, rig.now), MS(9898));
}

static void test_a_lock_without_a_fence_is_handed_over_without_one(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, begun;
    struct lease_terms terms = queue_terms();
    rig_hold(&rig, &terms, "GGG");
    for (unsigned i = 0; i < 100; i++) {
        wait_for_another(&to, &terms);
        assert_true(handover_is_silent(&rig.lease, &to, rig.now));
        handover_move(&rig.lease, &to, rig.now, &ended, &begun);
        assert_int_equal(lease_fence(&to), 0);
        rig.lease = to;
    }
}

static void test_a_handover_that_fails_is_undone(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update update;
    struct lease_terms terms = queue_terms();
    struct lease_terms longer = terms;
    longer.ttl = MS(20000);
    rig_hold(&rig, &terms, "GGG");
    wait_for_another(&to, &longer);
    hand_over_aloud(&rig, &to, &update);
    struct round round;
    struct round_answer answers[5];
    round_begin(&round, answers, ROUND_RAISE, rig.lists, rig.now, longer.ttl, 0);
    round_vote(&round, 0, REDLOCK_VOTE_MISSING, 0);
    round_vote(&round, 1, REDLOCK_VOTE_MISSING, 0);
    assert_true(round_vote(&round, 2, REDLOCK_VOTE_MISSING, 0));
    lease_decided(&to, &round, rig.now, &update);
    assert_int_equal(to.state, LEASE_BACKOFF);
    assert_int_equal(update.undo, 0x1f);
}

static void test_the_longest_hold_is_that_of_the_next(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update ended, begun;
    struct lease_terms terms = queue_terms();
    struct lease_terms brief = terms;
    terms.watchdog = brief.watchdog = true;
    brief.max_hold = MS(100);
    rig_hold(&rig, &terms, "GGG");
    wait_for_another(&to, &brief);
    handover_move(&rig.lease, &to, rig.now, &ended, &begun);
    assert_int_equal(to.state, LEASE_HELD);
    assert_false(to.renews);
    assert_int_equal(to.wake_at, to.holding.lost_at);
}

static void test_not_every_lock_is_handed_over(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_terms terms = queue_terms();
    struct lease_terms impatient = terms;
    rig_hold(&rig, &terms, "GGG");
    impatient.wait = 0;
    wait_for_another(&to, &impatient);
    assert_false(handover_is_possible(&rig.lease, &to, rig.now)); /* its wait is over */
    wait_for_another(&to, &terms);
    assert_true(handover_is_possible(&rig.lease, &to, rig.lease.holding.lost_at - 1));
    assert_false(handover_is_possible(&rig.lease, &to, rig.lease.holding.lost_at));
    rig_extend(&rig, MS(10000));
    /* the extension is reported first */
    assert_false(handover_is_possible(&rig.lease, &to, rig.now));
    rig_votes(&rig, "UUU");
    assert_true(handover_is_possible(&rig.lease, &to, rig.now));
    rig_release(&rig);
    assert_false(handover_is_possible(&rig.lease, &to, rig.now));
}

static void test_not_every_handover_is_silent(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_terms terms = queue_terms();
    struct lease_terms other = terms;
    rig_hold(&rig, &terms, "GGG");
    wait_for_another(&to, &terms);
    assert_true(handover_is_silent(&rig.lease, &to, rig.lease.holding.lost_at - MS(7500) - 1));
    assert_false(
        handover_is_silent(&rig.lease, &to, rig.lease.holding.lost_at - MS(7500))); /* too little */
    other.min_validity = MS(9900);
    wait_for_another(&to, &other);
    assert_false(handover_is_silent(&rig.lease, &to, rig.now)); /* asks for more */
    other = terms;
    other.watchdog = true;
    wait_for_another(&to, &other);
    assert_false(handover_is_silent(&rig.lease, &to, rig.now));
    wait_for_another(&to, &terms);
    rig.lease.is_unrenewed = true;
    assert_false(handover_is_silent(&rig.lease, &to, rig.now));
}

int main(void) {
    const struct lease_terms terms = queue_terms();
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_who_stands_further_back_polls_less),
        cmocka_unit_test(test_a_queue_that_stops_is_looked_at_soon),
        cmocka_unit_test(test_answers_after_a_quorum_of_them_count),
        cmocka_unit_test(test_waiters_ask_when_a_quorum_gives_entries),
        cmocka_unit_test(test_a_change_during_a_poll_has_the_key_looked_at),
        cmocka_unit_test(test_hints_without_end_in_queue_are_followed_seldom),
        cmocka_unit_test(test_a_split_vote_is_given_up_for_a_new_entry),
        cmocka_unit_test(test_a_grant_beside_a_holder_is_kept_for_longer),
        cmocka_unit_test(test_a_split_vote_in_the_first_round_is_given_up_soon),
        cmocka_unit_test(test_nodes_that_only_gave_an_entry_are_topped_up),
        cmocka_unit_test(test_a_node_that_gave_an_entry_after_the_verdict_is_topped_up),
        cmocka_unit_test(test_who_waits_beside_a_holder_only_enters),
        cmocka_unit_test(test_the_end_does_not_wait_for_a_minority),
        cmocka_unit_test(test_who_knows_of_no_holder_asks_for_the_key),
        cmocka_unit_test(test_a_poll_in_the_pause_asks_for_a_key_that_changed),
        cmocka_unit_test(test_requeues_that_do_not_help_show_a_holder),
        cmocka_unit_test(test_a_denial_after_a_requeue_is_no_evidence),
        cmocka_unit_test(test_a_decided_round_keeps_its_votes_when_canceled),
        cmocka_unit_test(test_a_push_that_comes_after_a_cancel_is_nothing),
        cmocka_unit_test(test_who_waits_for_another_asks_nobody),
        cmocka_unit_test(test_a_lock_is_handed_over_with_its_validity),
        cmocka_unit_test(test_renewals_begin_anew_with_the_next),
        cmocka_unit_test(test_a_renewal_goes_on_with_the_next),
        cmocka_unit_test(test_a_fenced_lock_is_handed_over_with_a_fence_of_its_own),
        cmocka_unit_test(test_a_lock_without_a_fence_is_handed_over_without_one),
        cmocka_unit_test(test_a_handover_that_fails_is_undone),
        cmocka_unit_test(test_the_longest_hold_is_that_of_the_next),
        cmocka_unit_test(test_not_every_lock_is_handed_over),
        cmocka_unit_test(test_not_every_handover_is_silent),
    };
    struct CMUnitTest tests[COUNT_OF(runs) + COUNT_OF(others)];
    run_make_tests(tests, runs, COUNT_OF(runs), &terms);
    memcpy(tests + COUNT_OF(runs), others, sizeof(others));
    return cmocka_run_group_tests_name("lease_queue", tests, NULL, NULL);
}
