/* Tests the end of a lease: releases and their results, close, and each state without memory. */
#include "base/nanos.h"
#include "rig.h"
#include "unit.h"

/* Begins a watched lease in one of the states after the acquisition. */
static void hold_in(struct rig *rig, enum lease_state state) {
    struct lease_terms terms = rig_terms();
    terms.watchdog = true;
    rig_hold(rig, &terms, "GGG");
    if (state == LEASE_RENEWING || state == LEASE_LOST) {
        rig_wake_on_time(rig);
    }
    if (state == LEASE_LOST) {
        rig_votes(rig, "MMM");
    }
    if (state == LEASE_RELEASING || state == LEASE_OVER) {
        rig_release(rig);
    }
    if (state == LEASE_OVER) {
        rig_votes(rig, "GGG");
    }
    assert_state(rig, state);
}

static const enum lease_state releasable[] = {LEASE_HELD, LEASE_RENEWING, LEASE_LOST};

static void assert_releasing(const struct rig *rig) {
    assert_state(rig, LEASE_RELEASING);
    assert_sent(rig, ROUND_RELEASE);
    assert_int_equal(rig->update.undo, 0);
    assert_int_equal(rig->lease.wake_at, rig->now + MS(50));
    assert_int_equal(lease_validity(&rig->lease, rig->now), 0);
}

static void assert_released(const struct rig *rig, redlock_status status) {
    assert_state(rig, LEASE_OVER);
    assert_int_equal(rig->update.notifications, LEASE_RELEASED);
    assert_int_equal(rig->update.released, status);
    assert_nothing_sent(rig);
}

/* ---- releases ---- */

static void test_a_release_reports_whether_the_lock_was_ours_to_the_end(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
    } rows[] = {
        {"GGG", REDLOCK_OK},          {"GGGMD", REDLOCK_OK},        {"MMGGG", REDLOCK_OK},
        {"MMM", REDLOCK_ELOST},       {"DDD", REDLOCK_ELOST},       {"GGWPM", REDLOCK_ELOST},
        {"MMDEU", REDLOCK_ELOST},     {"UUUUU", REDLOCK_ENOQUORUM}, {"GGEEE", REDLOCK_ENOQUORUM},
        {"MMUBE", REDLOCK_ENOQUORUM}, {"GGMMU", REDLOCK_ENOQUORUM},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t from = 0; from < COUNT_OF(releasable); from++) {
            struct rig rig;
            hold_in(&rig, releasable[from]);
            assert_int_equal(rig_release(&rig), REDLOCK_OK);
            assert_releasing(&rig);
            assert_int_equal(rig.update.notifications, 0);
            rig_votes(&rig, rows[i].votes);
            assert_released(&rig, rows[i].status);
        }
    }
}

static void test_a_release_that_nobody_answers_ends_at_its_deadline(void **state) {
    (void)state;
    static const struct {
        const char *votes;
        redlock_status status;
    } rows[] = {{"", REDLOCK_ENOQUORUM}, {"GG", REDLOCK_ENOQUORUM}, {"MMU", REDLOCK_ENOQUORUM}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig rig;
        hold_in(&rig, LEASE_HELD);
        rig_release(&rig);
        uint64_t begun = rig.now;
        rig_votes(&rig, rows[i].votes);
        rig.now = begun + MS(50) - 1;
        rig_wake(&rig);
        assert_state(&rig, LEASE_RELEASING);
        rig_wake_on_time(&rig);
        assert_int_equal(rig.now, begun + MS(50));
        assert_released(&rig, rows[i].status);
    }
}

static void test_a_release_ends_an_extension(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_HELD);
    rig_extend(&rig, MS(10000));
    assert_int_equal(rig_release(&rig), REDLOCK_OK);
    assert_releasing(&rig);
    assert_int_equal(rig.update.notifications, LEASE_EXTENDED);
    assert_int_equal(rig.update.extended, REDLOCK_ECANCELED);
    rig_votes(&rig, "GGG");
    assert_released(&rig, REDLOCK_OK);
}

static void test_after_a_release_the_handle_does_nothing_more(void **state) {
    (void)state;
    static const enum lease_state states[] = {LEASE_RELEASING, LEASE_OVER};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct rig rig;
        hold_in(&rig, states[i]);
        assert_int_equal(rig_release(&rig), REDLOCK_EINVAL);
        assert_int_equal(rig_extend(&rig, MS(10000)), REDLOCK_EINVAL);
        assert_int_equal(rig_cancel(&rig), REDLOCK_EINVAL);
        rig_close(&rig); /* the round in flight ends with its own result */
        assert_int_equal(rig.update.notifications, 0);
        assert_nothing_sent(&rig);
        assert_state(&rig, states[i]);
    }
}

static void test_what_is_held_cannot_be_canceled(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(releasable); i++) {
        struct rig rig;
        hold_in(&rig, releasable[i]);
        assert_int_equal(rig_cancel(&rig), REDLOCK_EINVAL);
        assert_nothing_sent(&rig);
        assert_state(&rig, releasable[i]);
    }
}

static void test_what_is_over_stays_over(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_OVER);
    rig.now = NANOS_NEVER;
    rig_wake(&rig);
    assert_state(&rig, LEASE_OVER);
    lease_decided(&rig.lease, &rig.round, rig.now, &rig.update);
    assert_int_equal(rig.update.notifications, 0);
    assert_nothing_sent(&rig);
    hold_in(&rig, LEASE_LOST);
    rig.now = NANOS_NEVER - 1;
    rig_wake(&rig);
    assert_state(&rig, LEASE_LOST);
    assert_nothing_sent(&rig);
}

/* ---- close ---- */

static void test_close_releases_what_is_held_and_reports_its_holder(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(releasable); i++) {
        struct rig rig;
        hold_in(&rig, releasable[i]);
        rig_close(&rig);
        assert_releasing(&rig);
        if (releasable[i] == LEASE_LOST) {
            /* the application was notified already */
            assert_int_equal(rig.update.notifications, 0);
        } else {
            assert_int_equal(rig.update.notifications, LEASE_LOSS);
            assert_int_equal(rig.update.loss, REDLOCK_ECLOSED);
        }
        rig_votes(&rig, "GGG");
        assert_released(&rig, REDLOCK_OK);
    }
}

static void test_close_ends_an_extension(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_RENEWING);
    rig_extend(&rig, MS(10000));
    rig_close(&rig);
    assert_releasing(&rig);
    assert_int_equal(rig.update.notifications, LEASE_LOSS | LEASE_EXTENDED);
    assert_int_equal(rig.update.loss, REDLOCK_ECLOSED);
    assert_int_equal(rig.update.extended, REDLOCK_ECLOSED);
}

/* ---- without memory ---- */

static void test_a_renewal_without_memory_is_tried_again(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_HELD);
    rig.without_memory = true;
    rig_wake_on_time(&rig);
    assert_true(rig.is_unsent);
    rig_out_of_memory(&rig);
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.update.notifications, 0);
    uint64_t left = rig.lease.holding.lost_at - rig.now;
    assert_int_in_range(rig.lease.wake_at - rig.now, left / 4, left / 2);
    rig.without_memory = false;
    rig_wake_on_time(&rig);
    rig_votes(&rig, "GGG");
    assert_int_in_range(rig.lease.wake_at, rig.now + 1, rig.now + MS(10000) / 3);
}

static void test_an_extension_without_memory(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_HELD);
    rig_extend(&rig, MS(10000));
    rig_out_of_memory(&rig);
    assert_int_equal(rig.update.notifications, LEASE_EXTENDED);
    assert_int_equal(rig.update.extended, REDLOCK_ENOMEM);
    assert_state(&rig, LEASE_HELD);
    assert_int_equal(rig.lease.holding.validity_end, T0 + MS(9898));
}

static void test_without_memory_to_the_end(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_HELD);
    rig.without_memory = true;
    while (rig.lease.state != LEASE_LOST) {
        rig_wake_on_time(&rig);
        if (rig.is_unsent) {
            rig_out_of_memory(&rig);
        }
    }
    assert_int_equal(rig.now, T0 + MS(9888));
    assert_int_equal(rig.update.loss, REDLOCK_EEXPIRED);
}

static void test_a_release_without_memory(void **state) {
    (void)state;
    struct rig rig;
    hold_in(&rig, LEASE_RELEASING);
    rig_out_of_memory(&rig);
    assert_released(&rig, REDLOCK_ENOMEM);
}

static void test_a_lease_that_sends_nothing_needs_no_memory(void **state) {
    (void)state;
    static const enum lease_state states[] = {LEASE_HELD, LEASE_LOST, LEASE_OVER};
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct rig rig;
        hold_in(&rig, states[i]);
        rig_out_of_memory(&rig);
        assert_state(&rig, states[i]);
        assert_int_equal(rig.update.notifications, 0);
        assert_nothing_sent(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_release_reports_whether_the_lock_was_ours_to_the_end),
        cmocka_unit_test(test_a_release_that_nobody_answers_ends_at_its_deadline),
        cmocka_unit_test(test_a_release_ends_an_extension),
        cmocka_unit_test(test_after_a_release_the_handle_does_nothing_more),
        cmocka_unit_test(test_what_is_held_cannot_be_canceled),
        cmocka_unit_test(test_what_is_over_stays_over),
        cmocka_unit_test(test_close_releases_what_is_held_and_reports_its_holder),
        cmocka_unit_test(test_close_ends_an_extension),
        cmocka_unit_test(test_a_renewal_without_memory_is_tried_again),
        cmocka_unit_test(test_an_extension_without_memory),
        cmocka_unit_test(test_without_memory_to_the_end),
        cmocka_unit_test(test_a_release_without_memory),
        cmocka_unit_test(test_a_lease_that_sends_nothing_needs_no_memory),
    };
    return cmocka_run_group_tests_name("lease_end", tests, NULL, NULL);
}
