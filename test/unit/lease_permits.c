/* Tests a lease of any one of several permits: it tries another permit at once if that is free. */
#include "base/nanos.h"
#include "rig.h"
#include "unit.h"

#define PERMITS 3

/* Maximum number of permit retries in a row; see ACQUIRE_PERMIT_RETRIES_MAX in core/acquire.h. */
#define PERMIT_RETRIES_MAX 4

static struct lease_terms permit_terms(void) {
    struct lease_terms terms = rig_terms();
    terms.permits = PERMITS;
    return terms;
}

static uint32_t another(const struct rig *rig) {
    return (rig->lease.permit + 1u) % PERMITS;
}

/*
 * Denies the permit that is tried; all nodes report that another one is free. Returns that permit.
 */
static uint32_t deny_but_for_another(struct rig *rig) {
    uint32_t permit = another(rig);
    rig_says_free(rig, 5, permit);
    rig_votes(rig, "DDD");
    return permit;
}

static void test_the_first_is_any(void **state) {
    (void)state;
    uint32_t seen = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig rig;
        struct lease_terms terms = permit_terms();
        rig_start(&rig, &terms, seed);
        assert_sent(&rig, ROUND_ACQUIRE);
        assert_true(rig.lease.permit < PERMITS);
        seen |= 1u << rig.lease.permit;
    }
    assert_int_equal(seen, 7);
}

static void test_a_lock_has_none(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = rig_terms();
    rig_start(&rig, &terms, 77);
    assert_int_equal(rig.lease.permit, 0);
    assert_int_equal(rig.seed, 77); /* nothing was drawn */
    assert_null(rig.round.permits);
}

static void test_one_that_is_free_is_held(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    uint32_t permit = rig.lease.permit;
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.permit, permit);
    assert_int_equal(rig.lease.permit_retries, 0);
}

/* The permit retry is a new try: with its own token, start and deadline. */
static void test_another_that_is_free_is_tried_at_once(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(7));
    rig_says_free(&rig, 4, another(&rig));
    uint32_t next = another(&rig);
    rig_votes(&rig, "DGDGD");
    assert_state(&rig, LEASE_ACQUIRING);
    assert_sent(&rig, ROUND_ACQUIRE);
    assert_int_equal(rig.update.undo, 0x0a); /* where the permit that was tried may be held */
    assert_int_equal(rig.update.notifications, 0);
    assert_int_equal(rig.lease.permit, next);
    assert_int_equal(rig.round.start, T0 + MS(7));
    assert_int_equal(rig.lease.wake_at, T0 + MS(57));
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.permit, next);
    assert_int_equal(rig.lease.tries, 2);
    assert_int_equal(lease_validity(&rig.lease, T0 + MS(7)), MS(9898));
}

/* A request for one try: a permit retry would be a second one. */
static void test_none_that_is_free_is_the_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    deny_but_for_another(&rig);
    rig_votes(&rig, "DDD");
    assert_state(&rig, LEASE_DIAGNOSING);
    assert_sent(&rig, ROUND_DIAGNOSE);
    rig_votes(&rig, "DDDDD");
    assert_state(&rig, LEASE_OVER);
    assert_int_equal(rig.update.acquired, REDLOCK_EHELD);
    assert_int_equal(rig.lease.tries, 2);
}

static void test_after_some_in_a_row_there_is_a_pause(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    terms.retries = 1;
    rig_start(&rig, &terms, 1);
    for (unsigned pause = 0; pause < 2; pause++) {
        for (unsigned i = 0; i < PERMIT_RETRIES_MAX; i++) {
            uint32_t permit = deny_but_for_another(&rig);
            assert_state(&rig, LEASE_ACQUIRING);
            assert_int_equal(rig.lease.permit, permit);
        }
        uint32_t permit = deny_but_for_another(&rig);
        assert_state(&rig, pause == 0 ? LEASE_BACKOFF : LEASE_DIAGNOSING);
        assert_int_equal(rig.lease.permit, permit); /* the free permit is the next one to try */
        if (pause == 0) {
            assert_true(rig.lease.wake_at > rig.now && rig.lease.wake_at <= rig.now + MS(200));
            rig_wake_on_time(&rig);
            assert_sent(&rig, ROUND_ACQUIRE);
        }
    }
    assert_int_equal(rig.lease.tries, 2 * (1 + PERMIT_RETRIES_MAX));
    assert_int_equal(rig.lease.permit_retries, 2 * PERMIT_RETRIES_MAX);
}

static void test_what_comes_at_once_uses_up_no_retry(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    terms.retries = 2;
    rig_start(&rig, &terms, 1);
    for (unsigned i = 0; i < 3; i++) {
        deny_but_for_another(&rig);
        assert_state(&rig, LEASE_ACQUIRING);
        rig_votes(&rig, "DDD"); /* no other permit is free now */
        assert_state(&rig, i < 2 ? LEASE_BACKOFF : LEASE_DIAGNOSING);
        if (i < 2) { /* the bound doubles with each retry, and with nothing else */
            assert_true(rig.lease.wake_at <= rig.now + MS(200 << i));
            rig_wake_on_time(&rig);
        }
    }
    assert_int_equal(rig.lease.tries, 6);
}

static void test_no_try_begins_after_the_end_of_the_wait(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    terms.retries = UINT32_MAX;
    terms.wait = MS(10);
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(10) - 1);
    deny_but_for_another(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    rig_pass(&rig, 1);
    deny_but_for_another(&rig);
    assert_state(&rig, LEASE_DIAGNOSING);
}

/* The try was too slow: another permit would not help. */
static void test_a_quorum_that_came_too_late_is_not_left_for_another(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(9900));
    rig_says_free(&rig, 5, another(&rig));
    rig_votes(&rig, "DGGG");
    assert_state(&rig, LEASE_DIAGNOSING);
    rig_votes(&rig, "D");
    assert_int_equal(rig.update.acquired, REDLOCK_EEXPIRED);
}

static void test_a_fence_that_cannot_be_raised_leaves_the_permit(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    terms.fenced = true;
    terms.retries = 1;
    rig_start(&rig, &terms, 1);
    rig.counter = 4;
    rig_votes(&rig, "G");
    rig.counter = 5;
    rig_votes(&rig, " GG");
    assert_state(&rig, LEASE_RAISING);
    assert_null(rig.round.permits);
    rig_votes(&rig, "MMM");
    assert_state(&rig, LEASE_BACKOFF);
}

static void test_canceled_while_it_goes_on(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    deny_but_for_another(&rig);
    rig_votes(&rig, "GD");
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(rig.update.undo, 0x1d);
    assert_state(&rig, LEASE_OVER);
}

static void test_without_memory_to_go_on(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    rig.without_memory = true;
    deny_but_for_another(&rig);
    assert_int_equal(rig.update.undo, 0x18);
    rig_out_of_memory(&rig);
    assert_state(&rig, LEASE_OVER);
    assert_int_equal(rig.update.acquired, REDLOCK_ENOMEM);
}

/* ---- in the queue ---- */

static struct lease_terms waiting_terms(void) {
    struct lease_terms terms = permit_terms();
    terms.queues = true;
    terms.reservation = MS(1000);
    terms.retries = UINT32_MAX;
    terms.retry_delay = terms.retry_delay_max = MS(200);
    return terms;
}

/* Makes all nodes from `from` on deny the permit, with an entry. */
static void deny_with_entries(struct rig *rig, uint32_t from) {
    for (uint32_t node = from; node < 5; node++) {
        round_mark_queued(&rig->round, node, 0);
        round_vote(&rig->round, node, REDLOCK_VOTE_DENIED, 5000);
    }
    rig_late_votes(rig);
}

/* Starts a lease with entries at all nodes. */
static void start_waiting(struct rig *rig) {
    struct lease_terms terms = waiting_terms();
    rig_start(rig, &terms, 1);
    assert_sent(rig, ROUND_QUEUE);
    rig_pass(rig, MS(2));
    deny_with_entries(rig, 0);
    assert_state(rig, LEASE_QUEUED);
    assert_nothing_sent(rig);
}

/* Starts a lease with a permit of two nodes and entries of the others. Returns the permit. */
static uint32_t start_with_two_grants(struct rig *rig) {
    struct lease_terms terms = waiting_terms();
    rig_start(rig, &terms, 1);
    uint32_t permit = rig->lease.permit;
    rig_votes(rig, "GG");
    deny_with_entries(rig, 2);
    assert_state(rig, LEASE_QUEUED);
    return permit;
}

static void assert_asks_for(const struct rig *rig, uint32_t permit) {
    assert_sent(rig, ROUND_QUEUE);
    assert_state(rig, LEASE_ACQUIRING);
    assert_int_equal(rig->lease.permit, permit);
    assert_true(rig->update.keeps_entry);
    assert_false(rig->update.keeps_token);
}

/* No node has granted anything: there is nothing to undo, and the entries stay. */
static void test_one_that_a_quorum_offers_is_asked_for(void **state) {
    (void)state;
    struct rig rig;
    start_waiting(&rig);
    uint32_t permit = another(&rig);
    rig_pass(&rig, MS(300));
    rig_offers(&rig, 0, permit);
    rig_offers(&rig, 4, permit);
    assert_nothing_sent(&rig);
    rig_offers(&rig, 2, permit);
    assert_asks_for(&rig, permit);
    assert_int_equal(rig.update.undo, 0);
    assert_int_equal(rig.lease.trying.may_queue, 0x1f);
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.may_hold, 0x1f); /* the entries are left together with the permit */
    assert_int_equal(lease_validity(&rig.lease, rig.now), MS(9898));
}

/* Each node reserves a permit for the waiter, whichever one it offers. */
static void test_the_one_that_most_offer_is_asked_for(void **state) {
    (void)state;
    struct rig rig;
    start_waiting(&rig);
    uint32_t permit = another(&rig);
    rig_offers(&rig, 0, (permit + 1) % PERMITS);
    rig_offers(&rig, 1, permit);
    rig_offers(&rig, 2, permit);
    assert_asks_for(&rig, permit);
}

static void test_the_one_that_was_tried_is_asked_for_under_its_token(void **state) {
    (void)state;
    struct rig rig;
    start_waiting(&rig);
    for (uint32_t node = 0; node < 3; node++) {
        rig_offers(&rig, node, rig.lease.permit);
    }
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    assert_int_equal(rig.lease.tries, 1);
}

/* The nodes that offer reserve any permit for the waiter: none that was granted is given up. */
static void test_grants_are_kept_where_the_rest_offers(void **state) {
    (void)state;
    struct rig rig;
    uint32_t permit = start_with_two_grants(&rig);
    rig_offers(&rig, 3, another(&rig));
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    assert_int_equal(rig.lease.permit, permit);
    assert_int_equal(rig.lease.may_hold, 0x03);
    rig_votes(&rig, "GG");
    rig_votes(&rig, "   G");
    assert_state(&rig, LEASE_HELD);
}

/*
 * Messages were lost, or few nodes have a permit free: after two round trips and 1 ms, or somewhat
 * earlier, the waiter gives back what nodes reserve for it, and takes nothing. The instant is
 * drawn: two waiters in step would collide again at the next permit.
 */
static void test_one_that_few_offer_is_given_back(void **state) {
    (void)state;
    struct rig rig;
    start_waiting(&rig);
    uint32_t tried = rig.lease.permit;
    uint32_t tries = rig.lease.tries;
    rig_offers(&rig, 1, another(&rig));
    assert_nothing_sent(&rig);
    assert_true(rig.lease.wake_at > rig.now + MS(5) / 2 && rig.lease.wake_at < rig.now + MS(5));
    rig_wake_on_time(&rig);
    assert_asks_for(&rig, tried);
    assert_true(rig.update.enters_only);
    assert_int_equal(rig.lease.tries, tries + 1);
    assert_int_equal(rig.lease.permit_retries, 1);
}

/* A split vote: grants are given up where they were made, and the entry stays. */
static void test_grants_of_a_minority_are_given_up(void **state) {
    (void)state;
    struct rig rig;
    uint32_t permit = start_with_two_grants(&rig);
    rig_wake_on_time(&rig);
    assert_asks_for(&rig, permit);
    assert_true(rig.update.enters_only);
    assert_int_equal(rig.update.undo, 0x03);
    assert_int_equal(rig_cancel(&rig), REDLOCK_OK);
    assert_int_equal(rig.update.undo, 0x1f);
}

/* Starts a lease that has given up the grants of two nodes. */
static void start_with_grants_given_up(struct rig *rig) {
    start_with_two_grants(rig);
    rig_wake_on_time(rig);
    assert_true(rig->update.enters_only);
}

/* After that, also the permit that was tried may turn out to be free. */
static void test_what_a_quorum_says_is_free_is_asked_for_after_that(void **state) {
    (void)state;
    struct rig rig;
    start_with_grants_given_up(&rig);
    uint32_t permit = rig.lease.permit;
    rig_says_free(&rig, 3, permit);
    rig_votes(&rig, "DDD");
    assert_sent(&rig, ROUND_QUEUE);
    assert_int_equal(rig.lease.permit, permit);
    assert_true(rig.update.keeps_token);
    assert_false(rig.update.enters_only);
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
}

/* An offer reports a permit as an answer does, whichever node it is from. */
static void test_answers_and_offers_make_a_quorum(void **state) {
    (void)state;
    struct rig rig;
    start_with_grants_given_up(&rig);
    uint32_t permit = another(&rig);
    rig_says_free(&rig, 1, permit);
    deny_with_entries(&rig, 0);
    assert_nothing_sent(&rig);
    rig_offers(&rig, 3, permit);
    assert_nothing_sent(&rig);
    rig_offers(&rig, 4, permit);
    assert_asks_for(&rig, permit);
    assert_false(rig.update.enters_only);
}

/* A master that lost permits which are held has them free: no waiter takes one there. */
static void test_what_few_say_is_free_is_not_taken(void **state) {
    (void)state;
    struct rig rig;
    start_with_grants_given_up(&rig);
    for (int i = 0; i < 4; i++) {
        for (uint32_t permit = 0; permit < PERMITS; permit++) {
            rig_says_free(&rig, 2, permit);
        }
        deny_with_entries(&rig, 0);
        assert_state(&rig, LEASE_QUEUED);
        assert_nothing_sent(&rig);
        assert_true(rig.lease.wake_at > rig.now + MS(500));
        rig_wake_on_time(&rig);
        assert_sent(&rig, ROUND_QUEUE);
        assert_true(rig.update.keeps_token);
        assert_true(rig.update.enters_only);
    }
}

/* The waiters ahead may take what is free: this one is notified, or looks after a while. */
static void test_what_is_left_to_those_ahead_is_polled_for_later(void **state) {
    (void)state;
    struct rig rig;
    start_with_grants_given_up(&rig);
    for (uint32_t node = 0; node < 5; node++) {
        round_mark_queued(&rig.round, node, 1);
        round_vote(&rig.round, node, REDLOCK_VOTE_DENIED, 0);
    }
    rig_late_votes(&rig);
    assert_state(&rig, LEASE_QUEUED);
    assert_true(rig.lease.wake_at > rig.now + MS(1000));
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.enters_only);
}

/* A message for an earlier token counts, too: there is no need to ask for it first. */
static void test_what_is_offered_again_is_given_back_at_once(void **state) {
    (void)state;
    struct rig rig;
    start_with_grants_given_up(&rig);
    for (int i = 0; i < 3; i++) {
        deny_with_entries(&rig, 0);
        rig_offers(&rig, 1, another(&rig));
        rig_wake_on_time(&rig);
        assert_asks_for(&rig, rig.lease.permit);
        assert_true(rig.update.enters_only);
    }
}

/*
 * The first waiter proceeds like the others; after some permit retries in a row the next poll comes
 * first.
 */
static void test_what_answers_say_is_free_is_asked_for(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = waiting_terms();
    rig_start(&rig, &terms, 1);
    for (unsigned i = 0; i <= PERMIT_RETRIES_MAX; i++) {
        uint32_t permit = another(&rig);
        rig_says_free(&rig, 5, permit);
        deny_with_entries(&rig, 0);
        if (i < PERMIT_RETRIES_MAX) {
            assert_asks_for(&rig, permit);
        }
    }
    assert_state(&rig, LEASE_QUEUED);
    rig_wake_on_time(&rig);
    assert_sent(&rig, ROUND_QUEUE);
    assert_true(rig.update.keeps_token);
    rig_says_free(&rig, 5, another(&rig));
    deny_with_entries(&rig, 0);
    assert_state(&rig, LEASE_ACQUIRING);
}

static void test_silent_nodes_do_not_keep_from_another(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = waiting_terms();
    rig_start(&rig, &terms, 1);
    uint32_t permit = another(&rig);
    rig_says_free(&rig, 4, permit);
    rig_votes(&rig, "DDD");
    assert_asks_for(&rig, permit);
    assert_int_equal(rig.update.undo, 0x18); /* where the first ask may have arrived */
}

static void test_silent_nodes_that_may_grant_are_waited_for(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = waiting_terms();
    rig_start(&rig, &terms, 1);
    uint32_t permit = another(&rig);
    rig_says_free(&rig, 4, permit);
    rig_votes(&rig, "GDD");
    assert_nothing_sent(&rig);
    rig_vote(&rig, 3, REDLOCK_VOTE_DENIED);
    assert_asks_for(&rig, permit);
}

static void test_messages_without_answers_count_after_the_deadline(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = waiting_terms();
    rig_start(&rig, &terms, 1);
    uint32_t permit = another(&rig);
    for (uint32_t node = 0; node < 3; node++) {
        rig_offers(&rig, node, permit);
        assert_nothing_sent(&rig);
    }
    rig_wake_on_time(&rig);
    assert_asks_for(&rig, permit);
}

static void test_after_the_wait_none_is_asked_for(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = waiting_terms();
    terms.wait = MS(1);
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(2));
    rig_says_free(&rig, 5, another(&rig));
    deny_with_entries(&rig, 0);
    assert_nothing_sent(&rig);
    rig_wake(&rig);
    assert_state(&rig, LEASE_DIAGNOSING);
    assert_int_equal(rig.lease.may_hold, 0x1f);
}

static void test_without_memory_to_ask_the_entry_is_given_up(void **state) {
    (void)state;
    struct rig rig;
    start_waiting(&rig);
    rig.without_memory = true;
    for (uint32_t node = 0; node < 3; node++) {
        rig_offers(&rig, node, another(&rig));
    }
    rig_out_of_memory(&rig);
    assert_state(&rig, LEASE_OVER);
    assert_int_equal(rig.update.undo, 0x1f);
    assert_int_equal(rig.update.acquired, REDLOCK_ENOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_is_any),
        cmocka_unit_test(test_a_lock_has_none),
        cmocka_unit_test(test_one_that_is_free_is_held),
        cmocka_unit_test(test_another_that_is_free_is_tried_at_once),
        cmocka_unit_test(test_none_that_is_free_is_the_end),
        cmocka_unit_test(test_after_some_in_a_row_there_is_a_pause),
        cmocka_unit_test(test_what_comes_at_once_uses_up_no_retry),
        cmocka_unit_test(test_no_try_begins_after_the_end_of_the_wait),
        cmocka_unit_test(test_a_quorum_that_came_too_late_is_not_left_for_another),
        cmocka_unit_test(test_a_fence_that_cannot_be_raised_leaves_the_permit),
        cmocka_unit_test(test_canceled_while_it_goes_on),
        cmocka_unit_test(test_without_memory_to_go_on),
        cmocka_unit_test(test_one_that_a_quorum_offers_is_asked_for),
        cmocka_unit_test(test_the_one_that_most_offer_is_asked_for),
        cmocka_unit_test(test_the_one_that_was_tried_is_asked_for_under_its_token),
        cmocka_unit_test(test_grants_are_kept_where_the_rest_offers),
        cmocka_unit_test(test_one_that_few_offer_is_given_back),
        cmocka_unit_test(test_grants_of_a_minority_are_given_up),
        cmocka_unit_test(test_what_a_quorum_says_is_free_is_asked_for_after_that),
        cmocka_unit_test(test_answers_and_offers_make_a_quorum),
        cmocka_unit_test(test_what_few_say_is_free_is_not_taken),
        cmocka_unit_test(test_what_is_left_to_those_ahead_is_polled_for_later),
        cmocka_unit_test(test_what_is_offered_again_is_given_back_at_once),
        cmocka_unit_test(test_what_answers_say_is_free_is_asked_for),
        cmocka_unit_test(test_silent_nodes_do_not_keep_from_another),
        cmocka_unit_test(test_silent_nodes_that_may_grant_are_waited_for),
        cmocka_unit_test(test_messages_without_answers_count_after_the_deadline),
        cmocka_unit_test(test_after_the_wait_none_is_asked_for),
        cmocka_unit_test(test_without_memory_to_ask_the_entry_is_given_up),
    };
    return cmocka_run_group_tests_name("lease_permits", tests, NULL, NULL);
}
