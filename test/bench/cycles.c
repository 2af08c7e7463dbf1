/* redlock-bench where it runs cycles: its output and its refusals. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_cycles(const char *arguments, const char *kind) {
    json_t *object = bench_measure(arguments);

    assert_string_equal(json_string_value(json_object_get(object, "kind")), kind);
    assert_int_equal(bench_integer(object, "errors"), 0);
    assert_int_equal(bench_integer(object, "cycles"), 500);
    assert_true(bench_real(object, "cycles_per_s") > 0);
    assert_true(bench_real(object, "masters_cpu_us_per_cycle") > 0);
    json_decref(object);
}

static void test_a_number_of_cycles_is_run(void **state) {
    (void)state;
    check_cycles("--spawn 3" PATIENT "--cycles 500 --json", "redlock");
    check_cycles("--spawn 3 --cycles 500 --floor --json", "floor");
    check_cycles("--spawn 3 --cycles 500 --floor stock --json", "floor");
    check_cycles("--spawn 3 --cycles 500 --floor epoll --json", "epoll");
}

/* Each loop that the benchmark was built with, which its message names otherwise. */
static void test_the_library_runs_on_other_loops(void **state) {
    static const char *const loops[] = {"uv", "ev", "glib", "sd", "epoll"};

    (void)state;
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        char arguments[128];
        char output[BENCH_OUTPUT_SIZE];

        snprintf(arguments, sizeof(arguments), "--spawn 3" PATIENT "--cycles 500 --json --loop %s",
                 loops[i]);
        if (bench_run(arguments, output) == 2) {
            assert_non_null(strstr(output, "redlock-bench was built without "));
        } else {
            check_cycles(arguments, "redlock");
        }
    }
    json_t *object =
        bench_measure("--spawn 3" PATIENT "--threads 2 --duration 0.2 --json --loop epoll");
    assert_string_equal(json_string_value(json_object_get(object, "loop")), "epoll");
    assert_int_equal(bench_integer(object, "errors"), 0);
    json_decref(object);
}

static void test_threads_share_a_client(void **state) {
    static const struct {
        const char *arguments;
        int in_flight;
        int threads;
    } cases[] = {
        {"--mt 1", 1, 1},
        {"--mt 3 --fenced", 1, 3},
        {"--mt 0 --in-flight 8", 8, 1},
        {"--mt 0 --mode reader", 64, 1},
        {"--mt 2 --null-masters", 1, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char arguments[128];

        snprintf(arguments, sizeof(arguments), "--spawn 3" PATIENT "--duration 0.3 --json %s",
                 cases[i].arguments);
        json_t *object = bench_measure(arguments);
        assert_string_equal(json_string_value(json_object_get(object, "kind")), "redlock_mt");
        assert_int_equal(bench_integer(object, "in_flight"), cases[i].in_flight);
        assert_int_equal(bench_integer(object, "threads"), cases[i].threads);
        assert_int_equal(bench_integer(object, "errors"), 0);
        assert_true(bench_integer(object, "cycles") > 0);
        assert_true(bench_real(object, "client_cpu_us_per_cycle") > 0);
        json_decref(object);
    }
}

/* A TTL of 1 ms leaves no validity: in both ways a failure is counted, and is no busy loop. */
static void test_failures_of_a_shared_client_are_counted(void **state) {
    static const char *const arguments[] = {
        "--spawn 3 --mt 2 --ttl 1 --duration 0.3 --json",
        "--spawn 3 --mt 0 --in-flight 4 --ttl 1 --duration 0.3 --json",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(arguments); i++) {
        char output[BENCH_OUTPUT_SIZE];

        assert_int_equal(bench_run(arguments[i], output), EXIT_FAILURE);
        assert_non_null(strstr(output, "--ttl: 1 ms leaves 0 ms of validity"));
        assert_non_null(strstr(output, "\"cycles\": 0"));
    }
    char output[BENCH_OUTPUT_SIZE];
    assert_int_equal(bench_run("--nodes unix:///nowhere --mt 3 --duration 1", output),
                     EXIT_FAILURE);
    assert_non_null(strstr(output, "is not connected"));
}

static void test_null_masters_grant_everything(void **state) {
    (void)state;
    check_cycles("--spawn 5" PATIENT "--null-masters --cycles 500 --json", "redlock");
    check_cycles("--spawn 5 --null-masters --cycles 500 --floor --json", "floor");
    check_cycles("--spawn 5 --null-masters --cycles 500 --floor=epoll --json", "epoll");
}

static void check_texts(const json_t *object, const char *keys, const char *mode) {
    assert_string_equal(json_string_value(json_object_get(object, "keys")), keys);
    assert_string_equal(json_string_value(json_object_get(object, "mode")), mode);
}

/* Runs so many cycles, with further arguments, and checks that all of them succeed. */
static json_t *measure_cycles(unsigned in_flight, unsigned cycles, const char *more) {
    char arguments[256];
    json_t *object;

    snprintf(arguments, sizeof(arguments), "--spawn 3%s--in-flight %u --cycles %u --json %s",
             strstr(more, "--floor") == NULL ? PATIENT : " ", in_flight, cycles, more);
    object = bench_measure(arguments);
    assert_int_equal(bench_integer(object, "cycles"), cycles);
    assert_int_equal(bench_integer(object, "errors"), 0);
    return object;
}

/* Only lower bounds: a busy machine is slower. */
static void test_a_relay_adds_round_trips(void **state) {
    static const struct {
        const char *arguments;
        double least_us;
    } rows[] = {
        {"--rtt 20", 20000},
        {"--rtt 0.5,20,20", 20000}, /* a quorum has one of the slow masters */
        {"--late 100:10", 20000},   /* in each direction */
        {"--rtt 10 --jitter 1 --late 100:5 --floor", 20000},
        {"--rtt 20 --null-masters --floor epoll", 20000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        double least_us = rows[i].least_us * 0.99; /* percentiles are exact to 0.4 % */
        json_t *object = measure_cycles(1, 20, rows[i].arguments);

        assert_true(bench_real(json_object_get(object, "acquire_us"), "p50") >= least_us);
        assert_true(bench_real(json_object_get(object, "release_us"), "p50") >= least_us);
        json_decref(object);
    }
}

static void test_the_delays_are_among_the_settings(void **state) {
    static const char *const names[] = {"rtt_ms 1", "rtt_ms 3", "jitter_ms", "late_percent",
                                        "late_ms"};
    json_t *object = bench_measure("--spawn 3" PATIENT "--cycles 20 --jitter 0.5 --late 1 --json");
    char output[BENCH_OUTPUT_SIZE];
    const char *results;

    (void)state;
    assert_true(bench_real(object, "rtt_ms") < 0.01);
    assert_true(bench_real(object, "jitter_ms") > 0.49);
    assert_true(bench_real(object, "late_percent") > 0.99);
    assert_true(bench_real(object, "late_ms") > 199);
    json_decref(object);

    assert_int_equal(bench_run("--spawn 3" PATIENT "--cycles 20 --rtt 1,0,.5", output),
                     EXIT_SUCCESS);
    results = strstr(output, "\n\nResults\n");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
        assert_true(strstr(output, names[i]) < results);
    }

    object = bench_measure("--spawn 3" PATIENT "--cycles 20 --json");
    assert_null(json_object_get(object, "rtt_ms"));
    assert_null(json_object_get(object, "late_ms"));
    json_decref(object);
}

static void test_kinds_of_locks_and_keys_are_run(void **state) {
    static const struct {
        const char *arguments;
        const char *keys;
        const char *mode;
    } cases[] = {
        {"--fenced --ttl 20000", "unique", "exclusive"},
        {"--mode reader --keys uniform:10", "uniform:10", "reader"},
        {"--mode writer --fenced --keys zipf:100 --hold-us 10", "zipf:100", "writer"},
        {"--keys zipf:100:1.5", "zipf:100:1.5", "exclusive"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *object = measure_cycles(8, 100, cases[i].arguments);

        check_texts(object, cases[i].keys, cases[i].mode);
        json_decref(object);
    }
}

/* A TTL of 1 ms leaves no validity, so each acquisition fails. */
static void test_cycles_that_fail_are_cycles_run(void **state) {
    static const char *const arguments[] = {
        "--spawn 3 --in-flight 4 --ttl 1 --cycles 20 --json",
        "--spawn 3 --in-flight 4 --ttl 1 --cycles 20 --rate 1000 --json",
    };
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(arguments); i++) {
        assert_int_equal(bench_run(arguments[i], output), 1);
        assert_non_null(strstr(output, "the first: --ttl: 1 ms leaves 0 ms of validity"));
        assert_non_null(strstr(output, "\"cycles\": 0,"));
        assert_non_null(strstr(output, "\"failures\": {\"refused\": 2"));
    }
}

/* Round trips take longer than the TTL. */
static void test_failures_are_counted_by_status(void **state) {
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(
        bench_run("--spawn 3 --rtt 30 --ttl 20 --in-flight 4 --cycles 20 --json", output), 1);
    assert_non_null(strstr(output, "\"failures\": {\"REDLOCK_E"));
}

/* If a lock is held for 20 ms, no slot runs more than 50 cycles a second. */
static void test_locks_are_held_for_the_time_asked(void **state) {
    json_t *object =
        bench_measure("--spawn 3" PATIENT "--in-flight 4 --hold-us 20000 --cycles 100 --json");

    (void)state;
    assert_true(bench_real(object, "cycles_per_s") <= 4 * 50);
    json_decref(object);
}

/* Latencies count from the instant at which a cycle was due. */
static void test_an_open_loop_shows_the_waiting(void **state) {
    json_t *object = bench_measure(
        "--spawn 3" PATIENT "--in-flight 1 --hold-us 10000 --rate 10000 --duration 0.5 --json");
    const json_t *latency = json_object_get(object, "acquire_us");

    (void)state;
    assert_int_equal(bench_integer(object, "rate"), 10000);
    assert_true((double)bench_integer(object, "cycles") <=
                bench_real(object, "duration_s") * 100 + 1);
    assert_true(bench_integer(object, "backlog") > 4000);
    /* 1/2 of the cycles that were due had waited for 1/4 s by the end. */
    assert_true(bench_real(latency, "p50") > 250000);
    json_decref(object);
}

static void test_an_open_loop_keeps_its_rate(void **state) {
    json_t *object = bench_measure("--spawn 3" PATIENT "--rate 500 --cycles 100 --json");

    (void)state;
    assert_true(bench_real(object, "cycles_per_s") <= 550);
    json_decref(object);
}

static void test_threads_run_cycles_of_their_own(void **state) {
    static const char *const arguments[] = {
        "--spawn 3" PATIENT "--threads 3 --in-flight 8 --duration 0.3 --json",
        "--spawn 3 --threads 2 --in-flight 8 --duration 0.3 --floor --json",
        "--spawn 3 --threads 2 --in-flight 8 --duration 0.3 --floor epoll --rate 1000 --json",
        "--spawn 3" PATIENT "--threads 2 --in-flight 8 --duration 0.3 --keys uniform:20 --json",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(arguments); i++) {
        json_t *object = bench_measure(arguments[i]);

        assert_int_equal(bench_integer(object, "errors"), 0);
        assert_true(bench_integer(object, "cycles") > 0);
        assert_true(bench_integer(object, "threads") > 1);
        json_decref(object);
    }
}

static void test_all_threads_give_up_together(void **state) {
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run("--nodes unix:///nowhere --threads 3 --duration 1", output),
                     EXIT_FAILURE);
    assert_non_null(strstr(output, "is not connected"));
}

static void test_a_terminal_shows_the_progress(void **state) {
    static const struct {
        const char *arguments;
        const char *line;
    } cases[] = {
        {"--spawn 3" PATIENT "--duration 1.5 --json", " cycles/s"},
        {"--spawn 3 --held 10 --duration 1.5 --json", "10 held for "},
        {"--spawn 3" PATIENT "--contend --duration 1.5 --json", "16 contenders, "},
        {"--spawn 3" PATIENT "--mt 2 --duration 1.5 --json", " cycles/s"},
        {"--spawn 3" PATIENT "--mt 0 --duration 1.5 --json", " cycles/s"},
    };
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(bench_run_on_terminal(cases[i].arguments, output), EXIT_SUCCESS);
        assert_non_null(strstr(output, cases[i].line));
        assert_non_null(strstr(output, "{\"kind\""));
    }
    assert_int_equal(bench_run(cases[0].arguments, output), EXIT_SUCCESS);
    assert_int_equal(output[0], '{');
}

/* More than one call combines, and more than a socket takes at once. */
static void test_thousands_are_in_flight(void **state) {
    (void)state;
    check_cycles("--spawn 3 --in-flight 4000 --cycles 500 --floor epoll --json", "epoll");
    check_cycles("--spawn 3" PATIENT "--null-masters --in-flight 4000 --cycles 500 --json",
                 "redlock");
}

/* The library refuses it, and names the field of its struct. */
static void test_an_option_is_named_as_it_is_written(void **state) {
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run("--spawn 1 --ttl 1 --duration 0.1 --json", output), EXIT_FAILURE);
    assert_non_null(strstr(output, "--ttl: 1 ms leaves 0 ms of validity"));
}

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const struct bench_refusal refusals[] = {
        {"--spawn 3 --cycles 10 --duration 3", "--cycles does not go with --duration"},
        {"--spawn 3 --contend --cycles 10", "--cycles does not go with --contend"},
        {"--spawn 3 --floor fast", "--floor: \"fast\" is neither stock nor epoll"},
        {"--spawn 3 --loop select", "--loop: \"select\" is neither uv, ev, glib, sd nor epoll"},
        {"--spawn 3 --loop epoll --floor", "--floor does not go with --loop"},
        {"--spawn 3 --loop epoll --rate 10", "--rate does not go with --loop"},
        {"--spawn 3 --loop epoll --hold-us 10", "--hold-us does not go with --loop"},
        {"--spawn 3 --loop epoll --contend", "--loop does not go with --contend"},
        {"--spawn 3 --mt 2 --loop epoll", "--loop does not go with --mt"},
        {"--spawn 3 --mt 2 --in-flight 2", "--in-flight does not go with --mt of 1 or more"},
        {"--spawn 3 --mt 2 --threads 2", "--threads does not go with --mt"},
        {"--spawn 3 --mt 0 --cycles 10", "--cycles does not go with --mt"},
        {"--spawn 3 --mt 0 --keys uniform:10", "--keys with a distribution does not go with --mt"},
        {"--spawn 3 --mt some", "--mt: \"some\" is not a number from 0 to 256"},
        {"--spawn 3 --held 10 --null-masters", "--null-masters does not go with --held"},
        {"--nodes redis://127.0.0.1 --null-masters", "--null-masters goes with --spawn"},
        {"--spawn 3 --cycles 10 --threads 2", "--cycles does not go with --threads"},
        {"--spawn 3 --floor --fenced", "--fenced does not go with --floor"},
        {"--spawn 3 --floor --node-timeout 10", "--node-timeout does not go with --floor"},
        {"--spawn 3 --floor epoll --mode reader", "--mode does not go with --floor"},
        {"--spawn 3 --floor --keys uniform:10", "--keys does not go with --floor"},
        {"--spawn 3 --null-masters --keys zipf:10", "--keys does not go with --null-masters"},
        {"--spawn 3 --null-masters --fenced", "--fenced does not go with --null-masters"},
        {"--spawn 3 --mode reader --fenced", "--fenced does not go with --mode reader"},
        {"--spawn 3 --mode own", "--mode: \"own\" is neither exclusive, reader nor writer"},
        {"--spawn 3 --keys zipf:10:x", "--keys: \"zipf:10:x\" has no exponent from 0 to 10"},
        {"--spawn 3 --keys even:10", "--keys: \"even:10\" is neither unique, uniform:K nor zipf:K"},
        {"--spawn 3 --keys uniform:0", "--keys: \"0\" is not a number from 1"},
        {"--spawn 3 --hold-us 1000000 --ttl 1000", "--hold-us: 1000000 us are not below the TTL"},
        {"--spawn 3 --rate 1 --threads 2", "--rate: 1 per second are less than one for each of 2"},
        {"--spawn 3 --cycles 0", "--cycles: \"0\" is not a number"},
        {"--spawn 3 --rtt 1,2,3,4", "--rtt: \"1,2,3,4\" has 4 values, but there are 3 masters"},
        {"--nodes redis://127.0.0.1 --rtt 1,2", "--rtt: \"1,2\" has 2 values, but there are 1"},
        {"--spawn 3 --rtt -1", "--rtt: \"-1\" is not a number of ms from 0 to 60000"},
        {"--spawn 3 --rtt fast", "--rtt: \"fast\" is not a number of ms"},
        {"--spawn 3 --rtt 1,", "--rtt: \"1,\" is not a number of ms"},
        {"--spawn 3 --rtt 1,nan,1", "--rtt: \"1,nan,1\" is not a number of ms"},
        {"--spawn 3 --jitter 60001", "--jitter: \"60001\" is not a number of ms from 0 to 60000"},
        {"--spawn 3 --late 101", "--late: \"101\" does not begin with a percentage"},
        {"--spawn 3 --late 1:", "--late: \"\" is not a number of ms"},
        {"--spawn 3 --late 1:2:3", "--late: \"2:3\" is not a number of ms"},
    };

    (void)state;
    bench_refuses(refusals, COUNT_OF(refusals));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_of_cycles_is_run),
        cmocka_unit_test(test_the_library_runs_on_other_loops),
        cmocka_unit_test(test_threads_share_a_client),
        cmocka_unit_test(test_failures_of_a_shared_client_are_counted),
        cmocka_unit_test(test_null_masters_grant_everything),
        cmocka_unit_test(test_a_relay_adds_round_trips),
        cmocka_unit_test(test_the_delays_are_among_the_settings),
        cmocka_unit_test(test_kinds_of_locks_and_keys_are_run),
        cmocka_unit_test(test_cycles_that_fail_are_cycles_run),
        cmocka_unit_test(test_failures_are_counted_by_status),
        cmocka_unit_test(test_locks_are_held_for_the_time_asked),
        cmocka_unit_test(test_an_open_loop_shows_the_waiting),
        cmocka_unit_test(test_an_open_loop_keeps_its_rate),
        cmocka_unit_test(test_threads_run_cycles_of_their_own),
        cmocka_unit_test(test_all_threads_give_up_together),
        cmocka_unit_test(test_a_terminal_shows_the_progress),
        cmocka_unit_test(test_thousands_are_in_flight),
        cmocka_unit_test(test_an_option_is_named_as_it_is_written),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
