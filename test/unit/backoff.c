/* Tests backoff: bounds that double, and delays drawn evenly below them. */
#include "core/backoff.h"
#include "base/nanos.h"
#include "unit.h"

#include <stdbool.h>

static void test_the_bound_doubles_up_to_the_last(void **state) {
    (void)state;
    static const struct {
        uint64_t first, last;
        uint32_t attempt;
        uint64_t bound;
    } rows[] = {
        {MS(200), MS(2000), 0, MS(200)},
        {MS(200), MS(2000), 1, MS(400)},
        {MS(200), MS(2000), 2, MS(800)},
        {MS(200), MS(2000), 3, MS(1600)},
        {MS(200), MS(2000), 4, MS(2000)},
        {MS(200), MS(2000), 5, MS(2000)},
        {MS(200), MS(2000), 1000000, MS(2000)},
        {MS(200), MS(2000), UINT32_MAX, MS(2000)},
        {MS(200), MS(200), 0, MS(200)},
        {MS(200), MS(200), UINT32_MAX, MS(200)},
        {MS(300), MS(200), 0, MS(200)},
        {1, NANOS_NEVER, 62, UINT64_C(1) << 62},
        {1, NANOS_NEVER, 63, UINT64_C(1) << 63},
        {1, NANOS_NEVER, 64, NANOS_NEVER}, /* the largest time is not doubled */
        {1, NANOS_NEVER, UINT32_MAX, NANOS_NEVER},
        {NANOS_NEVER, NANOS_NEVER, 3, NANOS_NEVER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(backoff_bound(rows[i].first, rows[i].last, rows[i].attempt),
                         rows[i].bound);
    }
}

static void test_a_draw_is_within_its_bound_and_never_hot(void **state) {
    (void)state;
    static const uint64_t bounds[] = {
        0,       1,        MS(1) - 1,         MS(1),           MS(1) + 1,  MS(2),
        MS(200), MS(2000), UINT64_C(1) << 63, NANOS_NEVER - 1, NANOS_NEVER};
    uint64_t seed = 7;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        for (unsigned draw = 0; draw < 1000; draw++) {
            uint64_t delay = backoff_draw(&seed, bounds[i]);
            assert_true(delay >= MS(1));
            assert_true(delay <= nanos_max(bounds[i], MS(1)));
        }
    }
}

/* Full jitter makes small delays as likely as large ones: otherwise herds would stay together. */
static void test_draws_spread_over_the_whole_range(void **state) {
    (void)state;
    enum { SLICES = 10, DRAWS = 10000 };
    unsigned hits[SLICES] = {0};
    uint64_t seed = 1;
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t delay = backoff_draw(&seed, MS(201));
        uint64_t slice = (delay - MS(1)) * SLICES / MS(200);
        hits[slice == SLICES ? SLICES - 1 : slice]++;
    }
    for (unsigned i = 0; i < SLICES; i++) {
        assert_int_in_range(hits[i], DRAWS / SLICES * 8 / 10, DRAWS / SLICES * 12 / 10);
    }
}

static void test_the_ends_of_a_range_are_drawn_too(void **state) {
    (void)state;
    bool least = false, most = false;
    uint64_t seed = 3;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t delay = backoff_draw(&seed, MS(1) + 3);
        least = least || delay == MS(1);
        most = most || delay == MS(1) + 3;
    }
    assert_true(least && most);
}

static void test_the_same_seed_draws_the_same(void **state) {
    (void)state;
    uint64_t one = 42, same = 42, other = 43;
    unsigned differ = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t delay = backoff_draw(&one, MS(2000));
        assert_int_equal(delay, backoff_draw(&same, MS(2000)));
        differ += delay != backoff_draw(&other, MS(2000));
    }
    assert_true(
        differ >
        90); /* adjacent seeds, such as those of one client's leases, draw different delays */
}

/*
 * The earliest of a crowd serves the others, so few may be nearly as early, however large it is. A
 * member that is alone waits longest.
 */
static void test_few_of_a_crowd_draw_an_early_delay(void **state) {
    (void)state;
    enum { PART = 1000 };
    uint64_t seed = 11;
    for (unsigned crowd = 1; crowd <= 10000; crowd *= 10) {
        static uint64_t delays[10000];
        uint64_t earliest = NANOS_NEVER;
        unsigned early = 0;
        for (unsigned i = 0; i < crowd; i++) {
            delays[i] = backoff_draw_late(&seed, 14 * PART);
            assert_int_in_range(delays[i], 1, 14 * PART);
            earliest = nanos_min(earliest, delays[i]);
        }
        for (unsigned i = 0; i < crowd; i++) {
            early += delays[i] < earliest + PART;
        }
        assert_int_in_range(early, 1, 8);
    }
}

static void test_half_of_all_late_delays_are_in_the_last_part(void **state) {
    (void)state;
    enum { PART = 1000, DRAWS = 10000 };
    unsigned last = 0;
    uint64_t seed = 5;
    for (unsigned i = 0; i < DRAWS; i++) {
        last += backoff_draw_late(&seed, 14 * PART) > 13 * PART;
    }
    assert_int_in_range(last, DRAWS * 45 / 100, DRAWS * 55 / 100);
    assert_int_equal(backoff_draw_late(&seed, 0), 0);
}

/* Expects the first outputs of SplitMix64 for the seed 1234567, as given by its authors' code. */
static void test_the_generator_is_splitmix64(void **state) {
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    uint64_t seed = 1234567;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(backoff_random(&seed), expected[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bound_doubles_up_to_the_last),
        cmocka_unit_test(test_a_draw_is_within_its_bound_and_never_hot),
        cmocka_unit_test(test_draws_spread_over_the_whole_range),
        cmocka_unit_test(test_the_ends_of_a_range_are_drawn_too),
        cmocka_unit_test(test_the_same_seed_draws_the_same),
        cmocka_unit_test(test_few_of_a_crowd_draw_an_early_delay),
        cmocka_unit_test(test_half_of_all_late_delays_are_in_the_last_part),
        cmocka_unit_test(test_the_generator_is_splitmix64),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
