/*
 * redlock-bench where contenders want keys: its counts, its end, and its refusals. How fast the
 * contenders are is not tested.
 */
#include "bench.h"

#include "folder.h"
#include "masters.h"
#include "poll_timeout.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Limit of every wait: generous, for busy machines. */
#define LIMIT_MS 60000
#define PROGRAM_SIZE 32

#define CONTEND "--spawn 3 --contend" PATIENT

/* Four contenders that hold for 1 s: within 2 s at least two of them get no lock. */
#define STARVE CONTEND " --clients 4 --hold-us 1000000 --duration 2"

/* Two processes, three masters and the relay, for longer than the test. */
#define LONG_RUN "--spawn 3 --rtt 0 --contend --clients 4 --processes 2 --duration 3600"

static void check_waits(const json_t *object) {
    const json_t *wait = json_object_get(object, "wait_us");
    double ideal = bench_real(wait, "ideal") + (double)bench_integer(object, "hold_us");
    double rate = bench_real(object, "acquisitions_per_s");

    assert_true(bench_real(wait, "p50") > 0);
    assert_true(bench_real(wait, "p50") <= bench_real(wait, "p99"));
    assert_true(bench_real(wait, "p99") <= bench_real(wait, "max"));
    /* The text of the numbers has seven digits. */
    assert_true(ideal * rate > 0.99999e6 * (double)bench_integer(object, "clients"));
    assert_true(ideal * rate < 1.00001e6 * (double)bench_integer(object, "clients"));
}

/*
 * Checks that, within the time measured, each key had one holder at a time, for at least `hold_us`.
 */
static void check_exclusion(const json_t *object) {
    double held_us =
        (double)bench_integer(object, "acquisitions") * (double)bench_integer(object, "hold_us");
    double time_us = bench_real(object, "duration_s") * 1e6 * (double)bench_integer(object, "keys");

    assert_true(bench_integer(object, "acquisitions") > 0);
    assert_true(held_us <= time_us + (double)(bench_integer(object, "hold_us") *
                                              bench_integer(object, "keys")));
    assert_int_equal(bench_integer(object, "errors"), 0);
}

static void test_contenders_are_served_and_counted(void **state) {
    static const struct {
        const char *arguments;
        json_int_t hold_us;
    } rows[] = {
        {"--clients 4 --keys 2", 1000},
        {"--clients 5 --processes 2 --hold-us 500", 500},
        {"--clients 4 --processes 4 --keys 2 --fenced --ttl 60000", 1000},
        {"--clients 4 --processes 2 --poll", 1000},
        {"--clients 4 --hold-us 0", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char arguments[256];
        json_t *object;
        const json_t *fairness;

        snprintf(arguments, sizeof(arguments), CONTEND " --duration 1 --json %s",
                 rows[i].arguments);
        object = bench_measure(arguments);
        fairness = json_object_get(object, "fairness");
        check_waits(object);
        check_exclusion(object);
        assert_int_equal(bench_integer(object, "hold_us"), rows[i].hold_us);
        assert_int_equal(bench_integer(object, "node_timeout_ms"), 5000);
        assert_true(json_is_null(fairness) || json_real_value(fairness) >= 1);
        assert_true(bench_real(object, "commands_per_acquisition") > 0);
        assert_true(bench_real(object, "round_trip_us") > 0);
        assert_true(bench_real(object, "quorum_round_trip_us") > 0);
        assert_true(bench_real(object, "handoff_us") > 0);
        assert_true(bench_real(object, "release_us") > 0);
        assert_true(bench_real(object, "handoff_us") / 1e3 <=
                    bench_real(object, "longest_stall_ms"));
        json_decref(object);
    }
}

static void test_contenders_that_were_never_served_show(void **state) {
    json_t *object = bench_measure(STARVE " --json");

    (void)state;
    check_exclusion(object);
    assert_true(json_is_null(json_object_get(object, "fairness")));
    assert_true(bench_real(json_object_get(object, "wait_us"), "max") >= 2e6);
    json_decref(object);
}

/* Returns the number of digits of the number in a line, up to the last one that is not 0. */
static size_t count_digits(const char *line) {
    size_t digits = 0;
    size_t significant = 0;

    for (const char *c = line; *c != '\n'; c++) {
        if (*c >= '0' && *c <= '9' && (digits > 0 || *c != '0')) {
            digits++;
            significant = *c != '0' ? digits : significant;
        }
    }
    return significant;
}

static void test_the_relay_delays_all_round_trips(void **state) {
    json_t *object =
        bench_measure(CONTEND " --clients 4 --processes 2 --rtt 5 --duration 1 --json");

    (void)state;
    check_exclusion(object);
    assert_true(bench_real(object, "rtt_ms") > 4.99);
    /* Medians are exact to 0.4 %. */
    assert_true(bench_real(object, "round_trip_us") >= 5000 * 0.99);
    assert_true(bench_real(object, "quorum_round_trip_us") >= 5000 * 0.99);
    json_decref(object);
}

static void test_the_text_has_the_same_names(void **state) {
    static const char *const names[] = {
        "acquisitions_per_s", "wait_us p50", "wait_us p99",      "wait_us max",
        "wait_us ideal",      "fairness",    "one got none",     "commands_per_acquisition",
        "handoff_us",         "errors",      "longest_stall_ms", "round_trip_us",
        "release_us"};
    char output[BENCH_OUTPUT_SIZE];
    const char *results;

    (void)state;
    assert_int_equal(bench_run(STARVE, output), EXIT_SUCCESS);
    results = strstr(output, "\n\nResults\n");
    assert_non_null(results);
    assert_int_equal(strncmp(output, "Settings\n", 9), 0);
    assert_true(strstr(output, " ttl_ms ") < results);
    assert_true(strstr(output, " acquisitions_per_s ") > results);
    /* Three digits, and as many zeros as necessary. */
    assert_true(count_digits(strstr(results, " wait_us max ")) <= 3);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_non_null(strstr(output, names[i]));
    }
}

static void empty_masters(void *arg) {
    struct masters *masters = arg;

    for (size_t i = 0; i < masters_count(masters); i++) {
        free(masters_query(masters, i, "FLUSHALL"));
    }
}

/*
 * Such a long TTL that nothing is renewed: the next contender shows first that the masters forgot.
 * In a queue the client's next contender would wait for the release.
 */
static void test_two_holders_at_a_time_are_an_error(void **state) {
    struct masters *masters = masters_start(3, NULL);
    char arguments[512];
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_non_null(masters);
    snprintf(arguments, sizeof(arguments),
             "--nodes %s,%s,%s --contend --poll --clients 4 --hold-us 1000000 --ttl 3600000 "
             "--duration 1",
             masters_uri(masters, 0), masters_uri(masters, 1), masters_uri(masters, 2));
    assert_int_equal(bench_run_beside(arguments, output, empty_masters, masters), EXIT_FAILURE);
    if (strstr(output, "two contenders hold a key at a time") == NULL) {
        fail_msg("no overlap: %s", output);
    }
    masters_finish(masters);
}

/* ----------------------------------------------------------------------------- the end of a run */

/* Returns the parent of a process, and stores its program; 0: it has ended. */
static pid_t parent_of(pid_t pid, char program[PROGRAM_SIZE]) {
    char path[64];
    char line[512] = "";
    const char *rest;
    FILE *file;
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    fclose(file);
    rest = strrchr(line, ')');
    if (rest == NULL || sscanf(line, "%*d (%31[^)])", program) != 1 ||
        sscanf(rest, ") %*c %d", &parent) != 1) {
        return 0;
    }
    return parent;
}

/* Three masters, the relay and two processes, which a long run starts. */
#define CHILDREN (3 + 1 + 2)

struct children {
    size_t count;
    pid_t contender; /* one of those that run redlock-bench */
};

/* Finds the children of a process. */
static void find_children(pid_t parent, struct children *children) {
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    *children = (struct children){0};
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char program[PROGRAM_SIZE];
        pid_t pid = (pid_t)atol(entry->d_name);

        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(pid, program) == parent) {
            assert_true(children->count < CHILDREN);
            children->count++;
            if (strcmp(program, "redlock-bench") == 0) {
                children->contender = pid;
            }
        }
    }
    closedir(folder);
}

/* Starts the long run, and waits until all its processes exist. */
static pid_t start_long_run(struct children *children) {
    struct poll_timeout timeout = {0};
    pid_t bench = bench_start(LONG_RUN);

    for (find_children(bench, children); children->count < CHILDREN;
         find_children(bench, children)) {
        assert_int_equal(waitpid(bench, NULL, WNOHANG), 0);
        assert_true(poll_timeout_wait(&timeout, LIMIT_MS));
    }
    return bench;
}

/* Waits for the end of a process. The processes that it leaves become children of this one. */
static int wait_for(pid_t pid) {
    struct poll_timeout timeout = {0};
    int status;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
        if (!poll_timeout_wait(&timeout, LIMIT_MS)) {
            fail_msg("process %ld does not end", (long)pid);
        }
    }
    assert_int_equal(ended, pid);
    return status;
}

/*
 * Waits until all processes that a killed run has left, now children of this process, have ended by
 * themselves. A worker that LeakSanitizer checks at its end has one more, which may outlive it.
 */
static void wait_for_all(void) {
    struct poll_timeout timeout = {0};
    pid_t ended;

    while ((ended = waitpid(-1, NULL, WNOHANG)) >= 0) {
        if (ended == 0 && !poll_timeout_wait(&timeout, LIMIT_MS)) {
            fail_msg("a process does not end");
        }
    }
    assert_int_equal(errno, ECHILD);
}

static void check_no_process_is_left(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_an_interrupted_run_ends_its_processes(void **state) {
    struct children children;
    pid_t bench = start_long_run(&children);
    int status;

    (void)state;
    assert_int_equal(kill(bench, SIGTERM), 0);
    status = wait_for(bench);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    check_no_process_is_left();
}

static void test_a_process_that_dies_ends_the_run(void **state) {
    struct children children;
    pid_t bench = start_long_run(&children);
    int status;

    (void)state;
    assert_int_equal(kill(children.contender, SIGKILL), 0);
    status = wait_for(bench);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
    check_no_process_is_left();
}

/* Only this test removes the folder of a run that is killed. */
static void test_a_run_that_is_killed_leaves_no_process(void **state) {
    char folder[FOLDER_SIZE];
    struct children children;
    pid_t bench;

    (void)state;
    assert_int_equal(folder_make(folder, "bench"), 0);
    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    bench = start_long_run(&children);
    assert_int_equal(kill(bench, SIGKILL), 0);
    wait_for(bench);
    wait_for_all();
    assert_int_equal(folder_remove(folder), 0);
}

/* ------------------------------------------------------------------------------- the options */

static void test_options_that_do_not_go_together_are_named(void **state) {
    static const struct bench_refusal refusals[] = {
        {"--spawn 3 --clients 4", "--clients goes with --contend alone"},
        {"--spawn 3 --processes 4", "--processes goes with --contend alone"},
        {"--spawn 3 --keys 4", "--keys K goes with --contend alone"},
        {"--spawn 3 --contend --node-timeout 60001",
         "--node-timeout: \"60001\" is not a number from 1 to 60000"},
        {"--spawn 3 --contend --keys zipf:4",
         "--keys with a distribution does not go with --contend"},
        {"--spawn 3 --contend --rate 10", "--rate does not go with --contend"},
        {"--spawn 3 --contend --threads 2", "--threads does not go with --contend"},
        {"--spawn 3 --contend --in-flight 64", "--in-flight does not go with --contend"},
        {"--spawn 3 --contend --floor", "--floor does not go with --contend"},
        {"--spawn 3 --contend --held 10", "--held does not go with --contend"},
        {"--spawn 3 --contend --busy 10", "--busy does not go with --contend"},
        {"--spawn 3 --contend --stop 1", "--stop does not go with --contend"},
        {"--spawn 3 --contend --clients 0", "--clients: \"0\" is not a number"},
        {"--spawn 3 --contend --hold-us 1ms", "--hold-us: \"1ms\" is not a number"},
        {"--spawn 3 --contend --ttl 1", "--hold-us: 1000 us are not below the TTL of 1 ms"},
        {"--spawn 3 --contend --clients 9999 --processes 2049",
         "--processes: \"2049\" is not a number from 1 to 2048"},
        {"--spawn 3 --contend --clients 2 --processes 3", "--processes: 3 are more than the 2"},
        {"--spawn 3 --contend --keys 17", "--keys: 17 are more than the 16 of --clients"},
        {"--contend", "give either --spawn or --nodes"},
        {"--spawn 3 --contend --rtt 1,2", "--rtt: \"1,2\" has 2 values, but there are 3 masters"},
    };

    (void)state;
    bench_refuses(refusals, COUNT_OF(refusals));
}

static void test_a_node_that_cannot_be_measured_is_named(void **state) {
    char output[BENCH_OUTPUT_SIZE];

    (void)state;
    assert_int_equal(bench_run("--nodes redis://user:secret@127.0.0.1 --contend", output),
                     EXIT_FAILURE);
    assert_non_null(strstr(output, "only redis://HOST[:PORT] and unix:///PATH"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contenders_are_served_and_counted),
        cmocka_unit_test(test_contenders_that_were_never_served_show),
        cmocka_unit_test(test_the_relay_delays_all_round_trips),
        cmocka_unit_test(test_the_text_has_the_same_names),
        cmocka_unit_test(test_two_holders_at_a_time_are_an_error),
        cmocka_unit_test(test_an_interrupted_run_ends_its_processes),
        cmocka_unit_test(test_a_process_that_dies_ends_the_run),
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
        cmocka_unit_test(test_a_node_that_cannot_be_measured_is_named),
        /* The last one, since it moves the temporary folder. */
        cmocka_unit_test(test_a_run_that_is_killed_leaves_no_process),
    };

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        perror("prctl");
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
