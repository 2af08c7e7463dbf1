/* redlock-bench where cycles run beside waiters: its output and its refusals. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIX "--spawn 3" PATIENT "--mixed 3 --in-flight 8 --ttl 60000 --duration 0.5"

/* So few that a process can have 14 clients of three masters. */
#define DESCRIPTORS 220

static void check_stretches(const json_t *object, const char *name) {
    static const char *const stretches[] = {"before", "waiting", "after"};
    const json_t *numbers = json_object_get(object, name);

    assert_int_equal(json_object_size(numbers), COUNT_OF(stretches));
    for (size_t i = 0; i < COUNT_OF(stretches); i++) {
        assert_true(bench_real(numbers, stretches[i]) > 0);
    }
}

static void test_cycles_are_measured_around_the_waiting(void **state) {
    json_t *object = bench_measure(MIX " --json");
    const json_t *ratio = json_object_get(object, "ratio");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(object, "kind")), "mixed");
    assert_int_equal(bench_integer(object, "waiters"), 3);
    assert_int_equal(bench_integer(object, "in_flight"), 8);
    assert_int_equal(bench_integer(object, "errors"), 0);
    check_stretches(object, "cycles_per_s");
    check_stretches(object, "masters_cpu_us_per_cycle");
    assert_true(bench_real(ratio, "waiting") > 0);
    assert_true(bench_real(ratio, "after") > 0);
    json_decref(object);
}

static void test_the_text_has_the_same_names(void **state) {
    static const char *const names[] = {
        "waiters",       "cycles_per_s before", "cycles_per_s after",
        "ratio waiting", "ratio after",         "errors"};
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run(MIX " --fenced", output), EXIT_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
    }
}

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const struct bench_refusal refusals[] = {
        {"--nodes redis://127.0.0.1 --mixed 1", "--nodes does not go with --mixed"},
        {"--spawn 3 --mixed 1 --null-masters", "--null-masters does not go with --mixed"},
        {"--spawn 3 --mixed 1 --rate 10", "--rate does not go with --mixed"},
        {"--spawn 3 --mixed 1 --cycles 10", "--cycles does not go with --mixed"},
        {"--spawn 3 --mixed 1 --rtt 2", "--rtt, --jitter or --late does not go with --mixed"},
        {"--spawn 3 --mixed 1 --hold-us 2", "--hold-us does not go with --mixed"},
        {"--spawn 3 --mixed 1 --held 2", "--mixed does not go with --held"},
        {"--spawn 3 --mixed 1 --contend", "--mixed does not go with --contend"},
        {"--spawn 3 --mixed 0", "--mixed: \"0\" is not a number from 1 to 10000"},
    };

    (void)state;
    bench_refuses(refusals, COUNT_OF(refusals));
}

/* The last test: a limit that was lowered stays. */
static void test_few_descriptors_need_several_processes(void **state) {
    const struct rlimit limit = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
    char output[BENCH_OUTPUT_SIZE];
    json_t *object;

    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    object = bench_measure("--spawn 3" PATIENT "--mixed 25 --in-flight 2 --duration 0.1 --json");
    assert_int_equal(bench_integer(object, "waiters"), 25);
    assert_int_equal(bench_integer(object, "errors"), 0);
    json_decref(object);

    assert_int_equal(bench_run("--spawn 3 --mixed 100", output), EXIT_FAILURE);
    assert_non_null(strstr(output, "--mixed: a master needs"));
    assert_non_null(strstr(output, "the limit is 220"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles_are_measured_around_the_waiting),
        cmocka_unit_test(test_the_text_has_the_same_names),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
        cmocka_unit_test(test_few_descriptors_need_several_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
