/* Tests the buckets of histograms, their bounds, quantiles and sums. */
#include "unit.h"

#include "base/histogram.h"

#include <math.h>
#include <string.h>

#define LAST (REDLOCK_HISTOGRAM_BUCKETS - 1)

/* A bound is the longest duration of its bucket; one nanosecond more belongs to the next. */
static void test_bounds_part_buckets(void **state) {
    (void)state;
    uint64_t before = 0;

    for (size_t i = 0; i < LAST; i++) {
        uint64_t bound = redlock_histogram_bound_ns(i);
        assert_true(bound > before);
        assert_int_equal(histogram_bucket(bound), i);
        assert_int_equal(histogram_bucket(bound + 1), i + 1);
        before = bound;
    }
    assert_int_equal(redlock_histogram_bound_ns(7), 2048);
    assert_int_equal(redlock_histogram_bound_ns(LAST - 1), (UINT64_C(15) << 38));
    assert_true(redlock_histogram_bound_ns(LAST) == UINT64_MAX);
    assert_true(redlock_histogram_bound_ns(LAST + 1) == UINT64_MAX);
    assert_true(redlock_histogram_bound_ns(SIZE_MAX) == UINT64_MAX);
}

/* The width of a bucket is at most 1/8 of its durations. */
static void test_buckets_are_narrow(void **state) {
    (void)state;

    for (size_t i = 1; i < LAST; i++) {
        uint64_t before = redlock_histogram_bound_ns(i - 1);
        uint64_t bound = redlock_histogram_bound_ns(i);
        assert_true((bound - before) * 8 <= before);
    }
}

static void test_the_ends_have_buckets(void **state) {
    (void)state;
    static const uint64_t shortest[] = {0, 1, 2, 1000, 1023, 1024, 1025, 1152};
    static const uint64_t longest[] = {UINT64_C(1) << 42, (UINT64_C(1) << 42) + 1, INT64_MAX,
                                       (uint64_t)INT64_MAX + 1, UINT64_MAX};

    for (size_t i = 0; i < COUNT_OF(shortest); i++) {
        assert_int_equal(histogram_bucket(shortest[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(longest); i++) {
        assert_int_equal(histogram_bucket(longest[i]), LAST);
    }
}

static redlock_histogram of(const uint64_t *durations, size_t count) {
    redlock_histogram histogram = {0};

    for (size_t i = 0; i < count; i++) {
        histogram_record(&histogram, durations[i]);
    }
    histogram_count(&histogram);
    return histogram;
}

static void test_durations_are_counted(void **state) {
    (void)state;
    const uint64_t durations[] = {MS(1), MS(1), MS(5), 0};
    redlock_histogram histogram = of(durations, COUNT_OF(durations));

    assert_int_equal(histogram.count, 4);
    assert_int_equal(histogram.sum_ns, MS(7));
    assert_int_equal(histogram.buckets[histogram_bucket(MS(1))], 2);
    histogram_count(&histogram); /* sets, does not add */
    assert_int_equal(histogram.count, 4);
}

static uint64_t bound_above(uint64_t nanos) {
    return redlock_histogram_bound_ns(histogram_bucket(nanos));
}

static void test_quantiles(void **state) {
    (void)state;
    uint64_t durations[100];
    redlock_histogram none = {0};

    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        durations[i] = MS(i + 1);
    }
    redlock_histogram histogram = of(durations, COUNT_OF(durations));
    static const struct {
        double quantile;
        unsigned ms; /* the duration of this rank */
    } rows[] = {{0, 1},    {-1, 1},     {NAN, 1},   {0.01, 1}, {0.011, 2},
                {0.5, 50}, {0.501, 51}, {0.99, 99}, {1, 100},  {7, 100}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(redlock_histogram_quantile_ns(&histogram, rows[i].quantile),
                         bound_above(MS(rows[i].ms)));
    }
    assert_int_equal(redlock_histogram_quantile_ns(&none, 0.5), 0);
    assert_int_equal(redlock_histogram_quantile_ns(NULL, 0.5), 0);
}

static void test_a_quantile_may_have_no_bound(void **state) {
    (void)state;
    const uint64_t durations[] = {1, UINT64_C(1) << 50};
    redlock_histogram histogram = of(durations, COUNT_OF(durations));

    assert_true(redlock_histogram_quantile_ns(&histogram, 1) == UINT64_MAX);
    assert_int_equal(redlock_histogram_quantile_ns(&histogram, 0.5), bound_above(1));
}

static void test_a_sum_is_of_all_durations(void **state) {
    (void)state;
    const uint64_t durations[] = {MS(1), MS(2), MS(3), MS(4), MS(40)};
    redlock_histogram all = of(durations, 5);
    redlock_histogram sum = of(durations, 2);
    redlock_histogram rest = of(durations + 2, 3);

    redlock_histogram_merge(&sum, &rest);
    assert_memory_equal(&sum, &all, sizeof(all));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_part_buckets),
        cmocka_unit_test(test_buckets_are_narrow),
        cmocka_unit_test(test_the_ends_have_buckets),
        cmocka_unit_test(test_durations_are_counted),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_a_quantile_may_have_no_bound),
        cmocka_unit_test(test_a_sum_is_of_all_durations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
