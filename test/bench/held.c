/* redlock-bench where it holds locks: what it prints, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* Expects those above. */
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define OUTPUT_SIZE 8192

/* So long a TTL that a machine in trouble loses no lock either. */
#define HOLD "--spawn 3 --held 300 --ttl 60000 --duration 1"

/* Runs redlock-bench and returns its exit code. */
static int run(const char *arguments, char output[OUTPUT_SIZE]) {
    char command[1024];
    FILE *pipe;
    size_t length;
    int status;

    assert_true(snprintf(command, sizeof(command), "exec '%s' %s 2>&1", REDLOCK_BENCH, arguments) <
                (int)sizeof(command));
    pipe = popen(command, "re");
    assert_non_null(pipe);
    length = fread(output, 1, OUTPUT_SIZE - 1, pipe);
    output[length] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Runs, and parses what has to be one JSON object and nothing else. */
static json_t *measure(const char *arguments) {
    char output[OUTPUT_SIZE];
    json_error_t error;
    json_t *object;

    if (run(arguments, output) != EXIT_SUCCESS) {
        fail_msg("redlock-bench %s failed: %s", arguments, output);
    }
    object = json_loads(output, 0, &error);
    if (object == NULL) {
        fail_msg("no JSON: %s: %s", error.text, output);
    }
    assert_true(json_is_object(object));
    return object;
}

static json_int_t integer_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value)) {
        fail_msg("%s is no integer", name);
    }
    return json_integer_value(value);
}

static double real_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    if (!json_is_real(value)) {
        fail_msg("%s is no real number", name);
    }
    return json_real_value(value);
}

static void test_locks_are_held_and_counted(void **state) {
    static const char *const reals[] = {"duration_s", "seconds_to_acquire", "client_cores",
                                        "rss_mb"};
    static const char *const quantiles[] = {"p50", "p99", "max"};
    json_t *object = measure(HOLD " --json");
    const json_t *late = json_object_get(object, "timer_late_ms");

    (void)state;
    assert_int_equal(integer_of(object, "held"), 300);
    assert_int_equal(integer_of(object, "lost"), 0);
    assert_int_equal(integer_of(object, "errors"), 0);
    assert_int_equal(integer_of(object, "ttl_ms"), 60000);
    assert_true(integer_of(object, "left") >= 0);
    assert_true(real_of(object, "timer_late_work_ms") >= 0);
    assert_true(real_of(object, "renewals_per_s") >= 0);
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        assert_true(real_of(object, reals[i]) > 0);
    }
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        assert_true(real_of(late, quantiles[i]) > 0);
    }
    json_decref(object);
}

static void test_a_busy_loop_is_reported_apart(void **state) {
    json_t *object = measure(HOLD " --fenced --busy 200 --json");

    (void)state;
    assert_int_equal(integer_of(object, "held"), 300);
    assert_int_equal(integer_of(object, "lost"), 0);
    assert_true(real_of(object, "busy_late_ms") > 0);
    json_decref(object);
}

static void test_stopped_masters_are_compared_with_before(void **state) {
    static const char *const names[] = {"client_cores_before", "client_cores_stopped",
                                        "script_calls_per_s_before", "script_calls_per_s_stopped"};
    json_t *object = measure(HOLD " --stop 2 --json");

    (void)state;
    assert_int_equal(integer_of(object, "held"), 300);
    assert_int_equal(integer_of(object, "lost"), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(real_of(object, names[i]) >= 0);
    }
    json_decref(object);
}

static void test_the_text_has_the_same_names(void **state) {
    static const char *const names[] = {
        "held",       "lost",   "renewals_per_s",    "client_cores",      "rss_mb",
        "ttl_ms",     "left",   "timer_late_ms p50", "timer_late_ms p99", "timer_late_ms max",
        "duration_s", "errors", "seconds_to_acquire"};
    char output[OUTPUT_SIZE];

    (void)state;
    assert_int_equal(run(HOLD, output), EXIT_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
    }
}

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const char *const rows[][2] = {
        {"--spawn 3 --ttl 1000", "--ttl goes with --held alone"},
        {"--spawn 3 --busy 100", "--busy goes with --held alone"},
        {"--spawn 3 --stop 1", "--stop goes with --held alone"},
        {"--spawn 3 --fenced", "--fenced goes with --held alone"},
        {"--nodes redis://127.0.0.1 --held 10", "--nodes does not go with --held"},
        {"--spawn 3 --held 10 --in-flight 64", "--in-flight does not go with --held"},
        {"--spawn 3 --held 10 --floor", "--floor does not go with --held"},
        {"--spawn 3 --held 10 --busy 100 --stop 1", "--busy does not go with --stop"},
        {"--spawn 3 --held 10 --stop 3", "--stop: 3 of 3 masters leave none"},
        {"--spawn 3 --held 10 --duration 3 --busy 2000", "--busy: 2000 ms are not over"},
        {"--spawn 3 --held 0", "--held: \"0\" is not a number"},
    };
    char output[OUTPUT_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(run(rows[i][0], output), 2);
        if (strstr(output, rows[i][1]) == NULL) {
            fail_msg("%s: %s", rows[i][0], output);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_are_held_and_counted),
        cmocka_unit_test(test_a_busy_loop_is_reported_apart),
        cmocka_unit_test(test_stopped_masters_are_compared_with_before),
        cmocka_unit_test(test_the_text_has_the_same_names),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
