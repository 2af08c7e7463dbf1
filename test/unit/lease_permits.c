/* Tests a lease of any of some permits: it tries another permit at once if that is free. */
#include "base/nanos.h"
#include "rig.h"
#include "unit.h"

#define PERMITS 3

/* Maximum number of hops in a row; see core/lease.c. */
#define HOPS_MAX 4

static struct lease_terms permit_terms(void) {
    struct lease_terms terms = rig_terms();
    terms.permits = PERMITS;
    return terms;
}

static uint32_t another(const struct rig *rig) {
    return (rig->lease.permit + 1) % PERMITS;
}

/*
 * Denies the permit that is tried; all nodes say that another permit is free. Returns that permit.
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
    assert_int_equal(rig.lease.seed, 77); /* nothing was drawn */
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
    assert_int_equal(rig.lease.hops, 0);
}

/* The hop is a new try: with its own token, start and deadline. */
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
    assert_int_equal(rig.update.news, 0);
    assert_int_equal(rig.lease.permit, next);
    assert_int_equal(rig.round.start, T0 + MS(7));
    assert_int_equal(rig.lease.wake_at, T0 + MS(57));
    rig_votes(&rig, "GGG");
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.permit, next);
    assert_int_equal(rig.lease.tries, 2);
    assert_int_equal(lease_validity(&rig.lease, T0 + MS(7)), MS(9898));
}

/* A request for one try: a hop would be a second one. */
static void test_none_that_is_free_is_the_end(void **state) {
    (void)state;
    struct rig rig;
    struct lease_terms terms = permit_terms();
    rig_start(&rig, &terms, 1);
    deny_but_for_another(&rig);
    rig_votes(&rig, "DDD");
    assert_state(&rig, LEASE_SETTLING);
    assert_sent(&rig, ROUND_SETTLE);
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
        for (unsigned i = 0; i < HOPS_MAX; i++) {
            uint32_t permit = deny_but_for_another(&rig);
            assert_state(&rig, LEASE_ACQUIRING);
            assert_int_equal(rig.lease.permit, permit);
        }
        uint32_t permit = deny_but_for_another(&rig);
        assert_state(&rig, pause == 0 ? LEASE_BACKOFF : LEASE_SETTLING);
        assert_int_equal(rig.lease.permit, permit); /* the free permit is the next one to try */
        if (pause == 0) {
            assert_true(rig.lease.wake_at > rig.now && rig.lease.wake_at <= rig.now + MS(200));
            rig_wake_on_time(&rig);
            assert_sent(&rig, ROUND_ACQUIRE);
        }
    }
    assert_int_equal(rig.lease.tries, 2 * (1 + HOPS_MAX));
    assert_int_equal(rig.lease.hops, 2 * HOPS_MAX);
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
        assert_state(&rig, i < 2 ? LEASE_BACKOFF : LEASE_SETTLING);
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
    terms.give_up_at = T0 + MS(10);
    rig_start(&rig, &terms, 1);
    rig_pass(&rig, MS(10) - 1);
    deny_but_for_another(&rig);
    assert_state(&rig, LEASE_ACQUIRING);
    rig_pass(&rig, 1);
    deny_but_for_another(&rig);
    assert_state(&rig, LEASE_SETTLING);
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
    assert_state(&rig, LEASE_SETTLING);
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
    };
    return cmocka_run_group_tests_name("lease_permits", tests, NULL, NULL);
}
