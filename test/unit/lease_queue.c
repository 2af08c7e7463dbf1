/* Tests a lease that waits in the queue: entries, pushes, polls, requeues, and handovers. */
#include "base/nanos.h"
#include "core/handover.h"
#include "core/queue.h"
#include "core/validity.h"
#include "rig.h"
#include "unit.h"

#include <string.h>

static struct lease_terms queue_terms(void) {
    struct lease_terms terms = rig_terms();
    terms.queues = true;
    terms.reservation = MS(1000);
    terms.retries = UINT32_MAX;
    terms.retry_delay = terms.retry_delay_max = MS(200);
    return terms;
}

/* Makes all five nodes deny, with an entry after `ahead` others. */
static void mark_queued(struct rig *rig, uint32_t ahead) {
    rig_pass(rig, MS(2));
    for (uint32_t node = 0; node < 5; node++) {
        round_mark_queued(&rig->round, node, ahead);
        round_vote(&rig->round, node, REDLOCK_VOTE_DENIED, 5000);
    }
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

static void assert_acquired(const struct rig *rig, redlock_status status) {
    assert_int_equal(rig->update.notifications, LEASE_ACQUIRED);
    assert_int_equal(rig->update.acquired, status);
}

/* ---- grants ---- */

static void test_a_free_key_is_had_at_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "GGG");
    assert_acquired(&rig, REDLOCK_OK);
    assert_int_equal(lease_validity(&rig.lease, T0), MS(9898));
}

static void test_pushes_are_confirmed_first(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig_pass(&rig, MS(100));
    rig_push(&rig, 0, rig.now + MS(1000));
    rig_push(&rig, 4, rig.now + MS(1000));
    assert_state(&rig, LEASE_QUEUED);
    rig_push(&rig, 2, rig.now + MS(1000));
    assert_state(&rig, LEASE_RAISING);
    assert_sent(&rig, ROUND_RAISE);
    rig_votes(&rig, "G G G");
    assert_acquired(&rig, REDLOCK_OK);
    assert_int_equal(lease_validity(&rig.lease, rig.now), MS(9898));
}

/* During a change of nodes, one list may have more than its quorum when the other reaches one. */
static void test_a_push_that_was_not_needed_is_no_matter(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start_at(&rig, &terms, (struct quorum_lists){0x07, 0x38}, 1);
    rig_push(&rig, 0, rig.now + MS(900));
    rig_votes(&rig, " GGGG");
    assert_acquired(&rig, REDLOCK_OK);
    assert_int_equal(lease_validity(&rig.lease, T0), MS(9898));
}

static void test_pushes_that_are_trusted_are_notified_at_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.watchdog = terms.trusts_pushes = true;
    start_queued(&rig, &terms, 0);
    rig_pass(&rig, MS(100));
    rig_push(&rig, 0, rig.now + MS(900));
    rig_push(&rig, 4, rig.now + MS(700));
    rig_push(&rig, 2, rig.now + MS(800));
    assert_acquired(&rig, REDLOCK_OK);
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(lease_validity(&rig.lease, rig.now), MS(700)); /* the minimum of the quorum */
    assert_int_equal(rig.lease.wake_at, rig.now + MS(700) / 4);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_RENEW);
}

static void test_pushes_that_leave_too_little_are_confirmed(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.watchdog = terms.trusts_pushes = true;
    terms.min_validity = MS(700);
    start_queued(&rig, &terms, 0);
    rig_push(&rig, 0, rig.now + MS(900));
    rig_push(&rig, 1, rig.now + MS(700));
    rig_push(&rig, 2, rig.now + MS(800));
    assert_state(&rig, LEASE_RAISING);
}

static void test_counters_that_differ_are_raised(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.watchdog = terms.trusts_pushes = terms.fenced = true;
    start_queued(&rig, &terms, 0);
    for (uint32_t node = 0; node < 3; node++) {
        rig.counter = 7 + node / 2;
        rig_push(&rig, node, rig.now + MS(900));
    }
    assert_state(&rig, LEASE_RAISING);
    assert_int_equal(rig.lease.fence, 8);
}

/* ---- entries ---- */

static void test_a_quorum_that_can_neither_grant_nor_queue_is_a_no(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "DUEU");
    assert_state(&rig, LEASE_BACKOFF);
    /* the keys and entries of all nodes that were reached */
    assert_int_equal(rig.update.undo, 0x15);
}

static void test_silent_nodes_are_not_waited_for(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    for (uint32_t node = 0; node < 3; node++) {
        round_mark_queued(&rig.round, node, 0);
    }
    rig_votes(&rig, "DD");
    assert_state(&rig, LEASE_ACQUIRING);
    rig_vote(&rig, 2, REDLOCK_VOTE_DENIED);
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_QUEUED);
    rig_vote(&rig, 3, REDLOCK_VOTE_GRANTED);
    rig_push(&rig, 0, rig.now + MS(900));
    rig_push(&rig, 1, rig.now + MS(900));
    assert_state(&rig, LEASE_RAISING);
}

static void test_silent_nodes_are_late_in_queue_too(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    for (uint32_t node = 0; node < 3; node++) {
        round_mark_queued(&rig.round, node, 0);
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 5000);
    }
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_QUEUED);
    assert_int_equal(rig.lease.wake_at, T0 + terms.node_timeout);
    rig_wake_on_time(&rig);
    assert_nothing_sent(&rig);
    assert_state(&rig, LEASE_QUEUED);
    assert_int_equal(round_voters(&rig.round, REDLOCK_VOTE_TIMEOUT), 0x18);
    assert_int_in_range(rig.lease.wake_at - T0, terms.reservation,
                        2 * terms.reservation); /* the poll */
    rig_vote(&rig, 3, REDLOCK_VOTE_GRANTED); /* too late for the deadline, but not for the entry */
    rig_push(&rig, 0, rig.now + MS(900));
    rig_push(&rig, 1, rig.now + MS(900));
    assert_state(&rig, LEASE_RAISING);
}

/* The time in which a split vote may resolve begins when a quorum has answered. */
static void test_a_grant_of_a_near_node_waits_for_the_others(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_vote(&rig, 0, REDLOCK_VOTE_GRANTED);
    rig_pass(&rig, MS(20));
    for (uint32_t node = 1; node < 5; node++) {
        round_mark_queued(&rig.round, node, 0);
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 5000);
    }
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_QUEUED);
    assert_int_equal(rig.lease.wake_at, rig.now + 2 * MS(20) + MS(1));
}

static void test_a_poll_comes_when_the_holder_has_expired(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    for (uint32_t node = 0; node < 5; node++) {
        round_mark_queued(&rig.round, node, 0);
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 100 * (node + 1));
    }
    rig_late_votes(&rig);
    assert_int_in_range(rig.lease.wake_at - T0, MS(301), MS(330)); /* three of five are free then */
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    assert_int_equal(rig.update.undo, 0);
    assert_int_equal(rig.lease.tries, 1);
}

/* The holder frees its keys one by one: the entry asks when a quorum is free. */
static void test_changes_at_a_quorum_bring_the_poll_forward(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    uint64_t poll_at = rig.lease.wake_at;
    rig_pass(&rig, MS(11));
    rig_key_changed_at(&rig, 0);
    rig_key_changed_at(&rig, 3);
    rig_key_changed_at(&rig, 3); /* once more */
    assert_nothing_sent(&rig);
    assert_int_equal(rig.lease.wake_at, poll_at);
    rig_key_changed_at(&rig, 1);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
}

static void test_grants_count_with_changes(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    mark_queued(&rig, 0);
    rig_pass(&rig, MS(11));
    rig_push(&rig, 0, rig.now + MS(900));
    rig_push(&rig, 1, rig.now + MS(900));
    assert_nothing_sent(&rig);
    rig_key_changed_at(&rig, 4);
    assert_sent(&rig, ROUND_QUEUE);
}

/*
 * A change notification within 10 ms after an ask leads to a check when the 10 ms are over: the key
 * may be taken.
 */
static void test_an_early_change_has_the_key_looked_at(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    uint64_t poll_at = rig.lease.wake_at;
    for (uint32_t node = 0; node < 5; node++) {
        rig_key_changed_at(&rig, node);
    }
    assert_nothing_sent(&rig);
    assert_int_equal(rig.lease.wake_at, T0 + MS(10));
    assert_false(rig.update.watch);
    rig_wake_on_time(&rig);
    assert_nothing_sent(&rig);
    assert_true(rig.update.watch);
    assert_int_equal(rig.lease.wake_at, poll_at);
    rig_key_changed_at(&rig, 2); /* the answer to the check: the key is free */
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
    } rows[] = {{0, 1000, 1063}, {8, 1000, 2063}, {1000000, 1000, 17063}};
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

/* Nodes leave the key to anybody for a while: the first waiter asks again when that is over. */
static void test_a_key_that_is_left_to_anybody_is_asked_for_afterwards(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 9);
    assert_true(rig.lease.wake_at > nanos_add(rig.now, MS(1000)));
    for (uint32_t node = 0; node < 3; node++) {
        assert_true(round_awaits_push(&rig.round, node));
        round_record_open(&rig.round, node, 7);
        rig_late_votes(&rig);
    }
    assert_int_in_range(rig.lease.wake_at - rig.now, MS(8), MS(9));
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
}

/* The message came before the answer, which names the previous holder: the message counts. */
static void test_so_is_one_whose_message_overtakes_the_answer(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    for (uint32_t node = 0; node < 3; node++) {
        round_record_open(&rig.round, node, 7);
    }
    round_record_open(&rig.round, 3, 9000); /* for longer than the holder has the key */
    mark_queued(&rig, 0);
    assert_int_in_range(rig.lease.wake_at - rig.now, MS(8), MS(9));
}

/* Without entries no push comes: polls follow each other like retries. */
static void test_without_entries_polls_are_retries(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    rig_start(&rig, &terms, 1);
    rig_votes(&rig, "DDDDD");
    assert_state(&rig, LEASE_QUEUED);
    assert_int_in_range(rig.lease.wake_at - T0, MS(1), MS(200));
    rig_wake_on_time(&rig);
    assert_true(rig.update.keeps_token);
}

static void test_a_queue_that_begins_anew_is_joined_at_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    lease_ask_again(&rig.lease, &rig.round, rig.now, &rig.update);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    rig_hold(&rig, &terms, "GGG");
    lease_ask_again(&rig.lease, &rig.round, rig.now, &rig.update);
    assert_nothing_sent(&rig);
}

/* ---- requeues ---- */

/* The time that nodes take to answer counts, not the time in the queue. */
static void test_a_split_vote_is_given_up_for_a_new_entry(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    uint64_t delay = MS(5); /* two round trips and 1 ms */
    start_queued(&rig, &terms, 0);
    for (unsigned i = 0; i < 10; i++) {
        rig_pass(&rig, MS(30));
        uint64_t before = rig.now;
        rig_push(&rig, i % 5, rig.now + MS(900));
        assert_int_equal(rig.lease.wake_at, before + delay);
        rig_wake_on_time(&rig);
        assert_sent(&rig, ROUND_QUEUE);
        assert_false(rig.update.keeps_token);
        assert_int_equal(rig.update.undo, 0x1f);
        assert_int_equal(rig.lease.tries, i + 2);
        rig_pass(&rig, MS(2));
        for (uint32_t node = 0; node < 5; node++) {
            round_mark_queued(&rig.round, node, 0);
            round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 5000);
        }
        rig_late_votes(&rig);
        delay = nanos_min(2 * delay, terms.reservation / 4);
    }
}

/* If no quorum answers in time, the longest time for that counts. */
static void test_without_answers_a_split_vote_takes_longer(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.reservation = MS(5000);
    rig_start(&rig, &terms, 1);
    for (uint32_t node = 0; node < 2; node++) {
        round_mark_queued(&rig.round, node, 0);
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 5000);
    }
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    rig_wake_on_time(&rig);
    assert_state(&rig, LEASE_QUEUED);
    uint64_t before = rig.now;
    rig_push(&rig, 0, rig.now + MS(900));
    assert_int_equal(rig.lease.wake_at, before + 2 * terms.node_timeout + MS(1));
}

/* ---- ends ---- */

static void test_a_wait_ends(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.wait = MS(500);
    start_queued(&rig, &terms, 0);
    assert_int_equal(rig.lease.wake_at, T0 + MS(500));
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_DIAGNOSE);
    rig_votes(&rig, "DDDDD");
    assert_acquired(&rig, REDLOCK_EHELD);
}

/*
 * Nodes that cannot be reached at the end have a pending release: they may have the key, or an
 * entry.
 */
static void test_the_end_of_a_wait_is_pending_at_all(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    terms.wait = MS(500);
    start_queued(&rig, &terms, 0);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_DIAGNOSE);
    assert_int_equal(rig.lease.may_hold, 0x1f);
}

static void test_canceling_gives_up_all_entries(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig_wake_on_time(&rig); /* asks again, under the same token */
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(rig.update.undo, 0x1f);
    assert_acquired(&rig, REDLOCK_ECANCELED);
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

static void test_without_memory_to_ask_again_entries_are_given_up(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig.without_memory = true;
    rig_wake_on_time(&rig);
    rig_out_of_memory(&rig);
    assert_int_equal(rig.update.undo, 0x1f);
    assert_acquired(&rig, REDLOCK_ENOMEM);
}

static void test_a_late_timer_is_no_poll(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = queue_terms();
    start_queued(&rig, &terms, 0);
    rig_wake(&rig); /* early */
    assert_nothing_sent(&rig);
    assert_state(&rig, LEASE_QUEUED);
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
    lease_woken(&lease, NULL, T0 + MS(499), &update);
    assert_int_equal(update.notifications, 0);
    lease_ask_again(&lease, NULL, T0, &update);
    assert_false(update.send);
    lease_woken(&lease, NULL, T0 + MS(500), &update);
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
    lease_woken(&to, NULL, rig.now, &begun);
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

static void test_a_fenced_lock_is_handed_over_with_a_fence_of_its_own(void **state) {
    (void)state;
    struct rig rig;
    struct lease to;
    struct lease_update update;
    struct lease_terms terms = queue_terms();
    terms.fenced = true;
    rig_start(&rig, &terms, 1);
    rig.counter = 7;
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    wait_for_another(&to, &terms);
    rig_pass(&rig, MS(1000));
    hand_over_aloud(&rig, &to, &update);
    assert_int_equal(to.fence, 8);
    struct round round;
    struct round_answer answers[5];
    round_begin(&round, answers, ROUND_RAISE, rig.lists, rig.now, terms.ttl, 0);
    round_grant(&round, 0, 8);
    round_grant(&round, 1, 8);
    assert_true(round_grant(&round, 2, 8));
    lease_decided(&to, &round, rig.now, &update);
    assert_int_equal(update.acquired, REDLOCK_OK);
    assert_int_equal(to.state, LEASE_HELD);
    assert_int_equal(lease_validity(&to, rig.now), MS(9898));
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_key_is_had_at_once),
        cmocka_unit_test(test_pushes_are_confirmed_first),
        cmocka_unit_test(test_a_push_that_was_not_needed_is_no_matter),
        cmocka_unit_test(test_pushes_that_are_trusted_are_notified_at_once),
        cmocka_unit_test(test_pushes_that_leave_too_little_are_confirmed),
        cmocka_unit_test(test_counters_that_differ_are_raised),
        cmocka_unit_test(test_a_quorum_that_can_neither_grant_nor_queue_is_a_no),
        cmocka_unit_test(test_silent_nodes_are_not_waited_for),
        cmocka_unit_test(test_silent_nodes_are_late_in_queue_too),
        cmocka_unit_test(test_a_grant_of_a_near_node_waits_for_the_others),
        cmocka_unit_test(test_a_poll_comes_when_the_holder_has_expired),
        cmocka_unit_test(test_who_stands_further_back_polls_less),
        cmocka_unit_test(test_a_queue_that_stops_is_looked_at_soon),
        cmocka_unit_test(test_answers_after_a_quorum_of_them_count),
        cmocka_unit_test(test_changes_at_a_quorum_bring_the_poll_forward),
        cmocka_unit_test(test_grants_count_with_changes),
        cmocka_unit_test(test_an_early_change_has_the_key_looked_at),
        cmocka_unit_test(test_a_change_during_a_poll_has_the_key_looked_at),
        cmocka_unit_test(test_hints_without_end_in_queue_are_followed_seldom),
        cmocka_unit_test(test_a_key_that_is_left_to_anybody_is_asked_for_afterwards),
        cmocka_unit_test(test_so_is_one_whose_message_overtakes_the_answer),
        cmocka_unit_test(test_without_entries_polls_are_retries),
        cmocka_unit_test(test_a_queue_that_begins_anew_is_joined_at_once),
        cmocka_unit_test(test_a_split_vote_is_given_up_for_a_new_entry),
        cmocka_unit_test(test_without_answers_a_split_vote_takes_longer),
        cmocka_unit_test(test_a_wait_ends),
        cmocka_unit_test(test_the_end_of_a_wait_is_pending_at_all),
        cmocka_unit_test(test_canceling_gives_up_all_entries),
        cmocka_unit_test(test_a_push_that_comes_after_a_cancel_is_nothing),
        cmocka_unit_test(test_without_memory_to_ask_again_entries_are_given_up),
        cmocka_unit_test(test_a_late_timer_is_no_poll),
        cmocka_unit_test(test_who_waits_for_another_asks_nobody),
        cmocka_unit_test(test_a_lock_is_handed_over_with_its_validity),
        cmocka_unit_test(test_renewals_begin_anew_with_the_next),
        cmocka_unit_test(test_a_renewal_goes_on_with_the_next),
        cmocka_unit_test(test_a_fenced_lock_is_handed_over_with_a_fence_of_its_own),
        cmocka_unit_test(test_a_handover_that_fails_is_undone),
        cmocka_unit_test(test_the_longest_hold_is_that_of_the_next),
        cmocka_unit_test(test_not_every_lock_is_handed_over),
        cmocka_unit_test(test_not_every_handover_is_silent),
    };
    return cmocka_run_group_tests_name("lease_queue", tests, NULL, NULL);
}
