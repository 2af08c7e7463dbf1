/* Tests the bounds of a connection, and when there is plenty of room again. */
#include "core/load.h"

#include "unit.h"

static const struct load_bounds BOUNDS = {.commands = 16, .bytes = 1000};

static void add(struct load *load, unsigned count, size_t length) {
    for (unsigned i = 0; i < count; i++) {
        assert_true(load_has_room(load, &BOUNDS, LOAD_HELD, length));
        load_add(load, length);
    }
}

static void remove_without_report(struct load *load, unsigned count, size_t length) {
    for (unsigned i = 0; i < count; i++) {
        assert_false(load_remove(load, &BOUNDS, length));
    }
}

static void test_each_bound_holds(void **state) {
    (void)state;
    struct load many = {0};
    struct load long_ones = {0};

    add(&many, 16, 1);
    assert_false(load_has_room(&many, &BOUNDS, LOAD_HELD, 1));
    add(&long_ones, 2, 500);
    assert_false(load_has_room(&long_ones, &BOUNDS, LOAD_HELD, 1));
    load_remove(&long_ones, &BOUNDS, 500);
    assert_true(load_has_room(&long_ones, &BOUNDS, LOAD_HELD, 500));
    assert_false(load_has_room(&long_ones, &BOUNDS, LOAD_HELD, 501));
}

/* Commands that acquire locks leave room for held locks; the client's own questions need none. */
static void test_each_class_has_its_share(void **state) {
    (void)state;
    struct load load = {0};

    for (unsigned i = 0; i < 12; i++) {
        assert_true(load_has_room(&load, &BOUNDS, LOAD_NEW, 1));
        load_add(&load, 1);
    }
    assert_false(load_has_room(&load, &BOUNDS, LOAD_NEW, 1));
    add(&load, 4, 1);
    assert_false(load_has_room(&load, &BOUNDS, LOAD_HELD, 1));
    assert_true(load_has_room(&load, &BOUNDS, LOAD_OWN, 5000));
    load = (struct load){0};
    assert_true(load_has_room(&load, &BOUNDS, LOAD_NEW, 1000)); /* the only command */
    assert_false(load_has_room(&load, &BOUNDS, LOAD_NEW, 1001));
    load_add(&load, 700);
    assert_true(load_has_room(&load, &BOUNDS, LOAD_NEW, 50));
    assert_false(load_has_room(&load, &BOUNDS, LOAD_NEW, 51));
    assert_true(load_has_room(&load, &BOUNDS, LOAD_HELD, 300));
}

/* New requests wait while 1/8 of the room is taken, and an answer that makes room is reported. */
static void test_requests_wait_beyond_an_eighth(void **state) {
    (void)state;
    struct load load = {0};

    assert_true(load_admits(&load, &BOUNDS, 16));
    add(&load, 2, 1);
    assert_true(load_admits(&load, &BOUNDS, 16));
    remove_without_report(&load, 1, 1);
    add(&load, 2, 1);
    assert_false(load_admits(&load, &BOUNDS, 16));
    assert_true(load_remove(&load, &BOUNDS, 1));
    remove_without_report(&load, 2, 1);
    add(&load, 1, 126);
    assert_false(load_admits(&load, &BOUNDS, 16));
    assert_true(load_remove(&load, &BOUNDS, 126));
    add(&load, 2, 1);
    assert_true(load_admits(&load, &BOUNDS, 2));
    assert_false(load_admits(&load, &BOUNDS, 1));
    assert_true(load_remove(&load, &BOUNDS, 1));
}

static void test_room_is_reported_at_half_and_once(void **state) {
    (void)state;
    struct load load = {0};

    add(&load, 16, 1);
    assert_false(load_has_room(&load, &BOUNDS, LOAD_HELD, 1));
    remove_without_report(&load, 7, 1);
    assert_true(load_remove(&load, &BOUNDS, 1));
    remove_without_report(&load, 8, 1);
}

static void test_room_is_reported_when_there_are_few_bytes_too(void **state) {
    (void)state;
    struct load load = {0};

    add(&load, 1, 100);
    add(&load, 1, 200);
    add(&load, 1, 600);
    assert_false(load_has_room(&load, &BOUNDS, LOAD_HELD, 200));
    remove_without_report(&load, 1, 100);
    remove_without_report(&load, 1, 200);
    assert_true(load_remove(&load, &BOUNDS, 600));
}

static void test_room_is_not_reported_without_a_refusal(void **state) {
    (void)state;
    struct load load = {0};

    add(&load, 16, 1);
    remove_without_report(&load, 16, 1);
}

/* No completed command could make room. */
static void test_what_never_fits_waits_for_nothing(void **state) {
    (void)state;
    struct load load = {0};

    assert_false(load_has_room(&load, &BOUNDS, LOAD_HELD, 1001));
    add(&load, 1, 1);
    remove_without_report(&load, 1, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_bound_holds),
        cmocka_unit_test(test_each_class_has_its_share),
        cmocka_unit_test(test_requests_wait_beyond_an_eighth),
        cmocka_unit_test(test_room_is_reported_at_half_and_once),
        cmocka_unit_test(test_room_is_reported_when_there_are_few_bytes_too),
        cmocka_unit_test(test_room_is_not_reported_without_a_refusal),
        cmocka_unit_test(test_what_never_fits_waits_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
