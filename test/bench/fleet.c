/* redlock-bench with many clients: its output and its refusals. */
#include "bench.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Such a long TTL that even a machine in trouble loses no lock. */
#define FLEET "--spawn 3" PATIENT "--fleet 5 --ttl 60000 --duration 0.5"

static const char *const states[] = {"idle", "working", "holding", "waiting", "waited"};

static void check_connecting(const json_t *cost) {
    static const char *const names[] = {"seconds", "commands", "bytes_in", "bytes_out", "cpu_us"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(bench_real(cost, names[i]) > 0);
    }
}

/* Two of three masters answer within the time that they have: no request fails. */
static void check_bystander(const json_t *counts) {
    assert_true(bench_integer(counts, "cycles") > 0);
    assert_int_equal(bench_integer(counts, "failed"), 0);
    assert_int_equal(bench_integer(counts, "timeouts"), 0);
}

static void test_each_state_has_its_cost(void **state) {
    json_t *object = bench_measure(FLEET " --json");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(object, "kind")), "fleet");
    assert_int_equal(bench_integer(object, "clients"), 5);
    assert_int_equal(bench_integer(object, "working_percent"), 100);
    assert_int_equal(bench_integer(object, "rate"), 1);
    assert_int_equal(bench_integer(object, "lost"), 0);
    assert_int_equal(bench_integer(object, "errors"), 0);
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const json_t *cost = json_object_get(object, states[i]);

        assert_true(bench_real(cost, "commands_per_s") > 0);
        assert_true(bench_real(cost, "bytes_in_per_s") > 0);
        assert_true(bench_real(cost, "bytes_out_per_s") > 0);
        assert_true(bench_real(cost, "cpu_us_per_s") >= 0);
        assert_true(bench_real(cost, "connection_bytes") > 0);
        /* Each client has one connection, and a second one while it waits. */
        bool is_waiting = strcmp(states[i], "waiting") == 0;
        assert_true(bench_real(cost, "connections") >= (is_waiting ? 10 : 5));
        assert_true(bench_real(cost, "connections") <= (is_waiting ? 12 : 6));
    }
    check_connecting(json_object_get(object, "connect"));
    check_connecting(json_object_get(object, "restart_waiting"));
    check_connecting(json_object_get(object, "restart"));
    check_bystander(json_object_get(object, "bystander_waiting"));
    check_bystander(json_object_get(object, "bystander"));
    json_decref(object);
}

/* More cycles are due than a client can run: 10,000 a second. That is no error. */
static void test_cycles_that_are_due_too_early_are_skipped(void **state) {
    json_t *object = bench_measure("--spawn 3" PATIENT
                                   "--fleet 4 --working 50 --rate 10000 --duration 0.5 --json");

    (void)state;
    assert_int_equal(bench_integer(object, "working_percent"), 50);
    assert_true(bench_integer(object, "cycles") > 0);
    assert_true(bench_integer(object, "skipped") > 0);
    assert_int_equal(bench_integer(object, "errors"), 0);
    json_decref(object);
}

static void test_the_text_has_the_same_names(void **state) {
    static const char *const names[] = {"connect bytes_in",
                                        "idle commands_per_s",
                                        "working cpu_us_per_s",
                                        "holding bytes_out_per_s",
                                        "waiting connections",
                                        "waited connection_bytes",
                                        "restart_waiting seconds",
                                        "bystander_waiting cycles",
                                        "restart seconds",
                                        "bystander failed",
                                        "bystander timeouts",
                                        "cycles",
                                        "skipped",
                                        "lost",
                                        "errors"};
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run(FLEET, output), EXIT_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
    }
}

static void test_a_terminal_shows_the_progress(void **state) {
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run_on_terminal(FLEET, output), EXIT_SUCCESS);
    assert_non_null(strstr(output, "5 clients: "));
    assert_non_null(strstr(output, "Results"));
}

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const struct bench_refusal refusals[] = {
        {"--nodes redis://127.0.0.1 --fleet 1", "--nodes does not go with --fleet"},
        {"--spawn 3 --fleet 1 --mixed 1", "--mixed does not go with --fleet"},
        {"--spawn 3 --fleet 1 --fenced", "--fenced does not go with --fleet"},
        {"--spawn 3 --fleet 1 --in-flight 2", "--in-flight does not go with --fleet"},
        {"--spawn 3 --fleet 1 --late 1", "--rtt, --jitter or --late does not go with --fleet"},
        {"--spawn 3 --working 10", "--working goes with --fleet alone"},
        {"--spawn 3 --fleet 1 --working 101", "--working: \"101\" is not a number from 1 to 100"},
        {"--spawn 3 --fleet 0", "--fleet: \"0\" is not a number from 1 to 10000"},
    };

    (void)state;
    bench_refuses(refusals, COUNT_OF(refusals));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_state_has_its_cost),
        cmocka_unit_test(test_cycles_that_are_due_too_early_are_skipped),
        cmocka_unit_test(test_the_text_has_the_same_names),
        cmocka_unit_test(test_a_terminal_shows_the_progress),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
