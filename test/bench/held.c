/* redlock-bench where it holds locks: its output and its refusals. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

/* Such a long TTL that even a machine in trouble loses no lock. */
#define HOLD "--spawn 3" PATIENT "--held 300 --ttl 60000 --duration 1"

static void test_locks_are_held_and_counted(void **state) {
    static const char *const reals[] = {"duration_s", "seconds_to_acquire", "client_cores",
                                        "rss_mb"};
    static const char *const quantiles[] = {"p50", "p99", "max"};
    json_t *object = bench_measure(HOLD " --json");
    const json_t *late = json_object_get(object, "timer_late_ms");

    (void)state;
    assert_int_equal(bench_integer(object, "held"), 300);
    assert_int_equal(bench_integer(object, "lost"), 0);
    assert_int_equal(bench_integer(object, "errors"), 0);
    assert_int_equal(bench_integer(object, "ttl_ms"), 60000);
    assert_true(bench_integer(object, "left") >= 0);
    assert_true(bench_real(object, "timer_late_work_ms") >= 0);
    assert_true(bench_real(object, "renewals_per_s") >= 0);
    assert_true(bench_real(object, "script_calls_per_s") >= 0);
    assert_true(bench_real(object, "script_us_per_s") >= 0);
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        assert_true(bench_real(object, reals[i]) > 0);
    }
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        assert_true(bench_real(late, quantiles[i]) > 0);
    }
    json_decref(object);
}

static void test_a_busy_loop_is_reported_apart(void **state) {
    json_t *object = bench_measure(HOLD " --fenced --busy 200 --json");

    (void)state;
    assert_int_equal(bench_integer(object, "held"), 300);
    assert_int_equal(bench_integer(object, "lost"), 0);
    assert_true(bench_real(object, "busy_late_ms") > 0);
    json_decref(object);
}

static void test_stopped_masters_are_compared_with_before(void **state) {
    static const char *const names[] = {"client_cores_before", "client_cores_stopped",
                                        "script_calls_per_s_before", "script_calls_per_s_stopped"};
    json_t *object = bench_measure(HOLD " --stop 2 --json");

    (void)state;
    assert_int_equal(bench_integer(object, "held"), 300);
    assert_int_equal(bench_integer(object, "lost"), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(bench_real(object, names[i]) >= 0);
    }
    json_decref(object);
}

static void test_locks_are_held_by_way_of_the_relay(void **state) {
    json_t *object = bench_measure(HOLD " --rtt 1 --json");

    (void)state;
    assert_true(bench_real(object, "rtt_ms") > 0.99);
    assert_int_equal(bench_integer(object, "held"), 300);
    /* Windows of 500 acquisitions: the last one took a round trip. */
    assert_true(bench_real(object, "seconds_to_acquire") >= 0.001);
    json_decref(object);
}

static void test_the_text_has_the_same_names(void **state) {
    static const char *const names[] = {"held",
                                        "lost",
                                        "renewals_per_s",
                                        "client_cores",
                                        "rss_mb",
                                        "script_calls_per_s",
                                        "script_us_per_s",
                                        "ttl_ms",
                                        "left",
                                        "timer_late_ms p50",
                                        "timer_late_ms p99",
                                        "timer_late_ms max",
                                        "duration_s",
                                        "errors",
                                        "seconds_to_acquire"};
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run(HOLD, output), EXIT_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
    }
}

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const struct bench_refusal refusals[] = {
        {"--spawn 3 --busy 100", "--busy goes with --held alone"},
        {"--spawn 3 --stop 1", "--stop goes with --held alone"},
        {"--nodes redis://127.0.0.1 --held 10", "--nodes does not go with --held"},
        {"--spawn 3 --held 10 --in-flight 64", "--in-flight does not go with --held"},
        {"--spawn 3 --held 10 --floor", "--floor does not go with --held"},
        {"--spawn 3 --held 10 --keys 2", "--keys K does not go with --held"},
        {"--spawn 3 --held 10 --keys uniform:2", "--keys with a distribution does not go with"},
        {"--spawn 3 --held 10 --hold-us 2", "--hold-us does not go with --held"},
        {"--spawn 3 --held 10 --hold-us 0", "--hold-us does not go with --held"},
        {"--spawn 3 --held 10 --mode reader", "--mode does not go with --held"},
        {"--spawn 3 --held 10 --busy 100 --stop 1", "--busy does not go with --stop"},
        {"--spawn 3 --held 10 --stop 3", "--stop: 3 of 3 masters leave none"},
        {"--spawn 3 --held 10 --duration 3 --busy 2000", "--busy: 2000 ms are not over"},
        {"--spawn 3 --held 10 --rtt 1,2", "--rtt: \"1,2\" has 2 values, but there are 3 masters"},
        {"--spawn 3 --held 0", "--held: \"0\" is not a number"},
    };

    (void)state;
    bench_refuses(refusals, COUNT_OF(refusals));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_are_held_and_counted),
        cmocka_unit_test(test_a_busy_loop_is_reported_apart),
        cmocka_unit_test(test_stopped_masters_are_compared_with_before),
        cmocka_unit_test(test_locks_are_held_by_way_of_the_relay),
        cmocka_unit_test(test_the_text_has_the_same_names),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
