/* Timeouts that follow measured answers (core/answer_time.h). */
#include "core/answer_time.h"
#include "unit.h"

#define TIME(...) ((uint64_t[]){__VA_ARGS__, 0})

/* Returns the times after answers that took so many ms each. */
static struct answer_time after(const uint64_t *answers_ms) {
    struct answer_time time = {0};
    for (; *answers_ms != 0; answers_ms++) {
        answer_time_record(&time, MS(*answers_ms));
    }
    return time;
}

static void test_before_any_answer_it_is_a_second(void **state) {
    (void)state;
    const struct answer_time none = {0};
    assert_int_equal(answer_time_timeout(&none, ANSWER_MARGIN), MS(1000));
    assert_int_equal(answer_time_timeout(&none, ANSWER_MARGIN_SPLIT), MS(1000));
    assert_int_equal(answer_time_usual(&none), 0);
}

/* RFC 6298: 2.2 for the first answer, 2.3 for the others. */
static void test_the_estimates_are_those_of_the_rfc(void **state) {
    (void)state;
    static const struct {
        uint64_t answers_ms[4]; /* ended by 0 */
        uint64_t smoothed_us, deviation_us;
    } rows[] = {
        {{80}, 80000, 40000},
        {{80, 80}, 80000, 30000},
        {{80, 160}, 90000, 50000},
        {{80, 160, 10}, 80000, 57500},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct answer_time time = after(rows[i].answers_ms);
        assert_int_equal(time.smoothed, rows[i].smoothed_us * 1000);
        assert_int_equal(time.deviation, rows[i].deviation_us * 1000);
        uint64_t usual = (rows[i].smoothed_us + 4 * rows[i].deviation_us) * 1000;
        assert_int_equal(answer_time_usual(&time), usual);
    }
}

static void test_the_margin_is_the_least_allowance(void **state) {
    (void)state;
    struct answer_time time = after(TIME(2));
    assert_int_equal(answer_time_timeout(&time, ANSWER_MARGIN), MS(252));
    assert_int_equal(answer_time_timeout(&time, ANSWER_MARGIN_SPLIT), MS(52));
    time = after(TIME(300));
    assert_int_equal(answer_time_timeout(&time, ANSWER_MARGIN), MS(900));
    time = after(TIME(4000));
    assert_int_equal(answer_time_timeout(&time, ANSWER_MARGIN), MS(5000));
}

static void test_an_answer_in_no_time_is_an_answer(void **state) {
    (void)state;
    struct answer_time time = {0};
    for (unsigned i = 0; i < 100; i++) {
        answer_time_record(&time, 0);
        assert_true(answer_time_usual(&time) > 0);
    }
    assert_in_range(answer_time_timeout(&time, ANSWER_MARGIN), MS(250), MS(251));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_any_answer_it_is_a_second),
        cmocka_unit_test(test_the_estimates_are_those_of_the_rfc),
        cmocka_unit_test(test_the_margin_is_the_least_allowance),
        cmocka_unit_test(test_an_answer_in_no_time_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
