/* Tests when a held lock renews: at its own instants, and after a failed renewal. */
#include "core/renewal.h"

#include "base/nanos.h"
#include "unit.h"

#define START UINT64_C(1000000000000)

static const uint64_t ttls[] = {MS(1), MS(30), MS(240), MS(1000), MS(10000), MS(3600000)};

static uint64_t grain_of(uint64_t ttl) {
    return ttl / 24 < MS(10) ? ttl / 24 : MS(10);
}

static void test_an_interval_is_a_third_of_the_ttl_or_a_grain_less(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t interval = renewal_interval(ttls[i]);
        assert_int_in_range(interval, ttls[i] / 3 - grain_of(ttls[i]) + 1, ttls[i] / 3);
        assert_int_equal(interval % grain_of(ttls[i]), 0);
    }
    assert_int_equal(renewal_interval(1), 1);
}

static void test_phases_are_spread_over_an_interval(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t quarter = renewal_interval(ttls[i]) / 4;
        unsigned quarters = 0;
        for (uint64_t seed = 0; seed < 100; seed++) {
            uint64_t drawn = seed;
            uint64_t phase = renewal_draw_phase(START, ttls[i], &drawn);
            assert_int_equal(phase % grain_of(ttls[i]), 0);
            assert_true(phase + grain_of(ttls[i]) > START);
            assert_true(phase < START + renewal_interval(ttls[i]));
            quarters |= phase < START ? 1 : 1u << (phase - START) / quarter;
        }
        assert_int_equal(quarters & 0xf, 0xf);
    }
}

static void test_a_lock_keeps_to_its_phase(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        uint64_t interval = renewal_interval(ttls[i]);
        for (uint64_t step = 0; step < 50; step++) {
            uint64_t start = START + step * (interval / 7 + 1);
            uint64_t next = renewal_next(START, ttls[i], start);
            assert_int_in_range(next, start + 1, start + interval);
            assert_int_equal((next - START) % interval, 0);
        }
        assert_int_equal(renewal_next(START + 1, ttls[i], START), START + 1);
    }
}

static void test_a_failed_renewal_is_tried_again_after_nearly_half(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t drawn = seed;
        uint64_t at = renewal_retry(START, MS(8000), MS(10000), &drawn);
        assert_int_in_range(at - START, MS(3000), MS(4000) + MS(10));
        assert_int_equal(at % MS(10), 0);
    }
    uint64_t seed = 1;
    assert_true(renewal_retry(START, 0, MS(10000), &seed) - START >= MS(500));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_interval_is_a_third_of_the_ttl_or_a_grain_less),
        cmocka_unit_test(test_phases_are_spread_over_an_interval),
        cmocka_unit_test(test_a_lock_keeps_to_its_phase),
        cmocka_unit_test(test_a_failed_renewal_is_tried_again_after_nearly_half),
    };
    return cmocka_run_group_tests_name("renewal", tests, NULL, NULL);
}
