/*
 * However a process dies, it leaves no process of the command, and none outlives the validity. Most
 * commands here ignore SIGTERM, and have a daemon in a session of its own.
 *
 * REDLOCK_TEST_RUNS is the number of runs against the deadline, and of the next holder; 3 by
 * default.
 */
#include "rig.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "deaths"
#define RUNS 3
#define STUBBORN                                                                                   \
    "exec 9>\"$ALIVE\"; trap '' TERM HUP INT; "                                                    \
    "setsid -f sh -c 'setsid -f sh -c \"echo alive >&9; while :; do sleep 0.1; done\"'; "          \
    "while :; do sleep 0.1; done"

static size_t count_runs(void) {
    const char *runs = getenv("REDLOCK_TEST_RUNS");

    return runs != NULL ? strtoul(runs, NULL, 10) : RUNS;
}

static void start_stubborn(struct rig *rig, const char *option) {
    rig_start(rig, "run", "--json", "--ttl", "5s", "--grace", "100ms", option, KEY, "--", "sh",
              "-c", STUBBORN, NULL);
    rig_wait_for_life(rig);
}

/* Starts a pipeline below a shell: none of its processes is the first of the command. */
static pid_t start_pipeline(struct rig *rig) {
    rig_start(
        rig, "run", "--ttl", "5s", KEY, "--", "sh", "-c",
        "exec 9>\"$ALIVE\"; trap '' TERM HUP INT; "
        "{ echo alive >&9; while :; do sleep 0.1; done; } | { while :; do sleep 0.1; done; }; "
        "true",
        NULL);
    rig_wait_for_life(rig);
    return rig_child_of(rig->pid);
}

static void assert_free(struct rig *rig) {
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "true"), 0);
}

static void the_front_is_killed(void **state) {
    struct rig *rig = *state;

    start_stubborn(rig, "--fence");
    kill(rig->pid, SIGKILL);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 128 + SIGKILL);
    assert_free(rig);
}

static void the_keeper_is_killed(void **state) {
    struct rig *rig = *state;

    start_stubborn(rig, "--fence");
    kill(rig_child_of(rig->pid), SIGKILL);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
    assert_free(rig);
}

/* Stopped processes die of SIGKILL without another step. */
static void both_are_killed(void **state) {
    struct rig *rig = *state;
    pid_t keeper = start_pipeline(rig);

    kill(rig->pid, SIGSTOP);
    kill(keeper, SIGSTOP);
    kill(rig->pid, SIGKILL);
    kill(keeper, SIGKILL);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 128 + SIGKILL);
}

/* With the front as the first process of a PID namespace, even daemons die with it. */
static void both_are_killed_in_a_pid_namespace(void **state) {
    struct rig *rig = *state;
    const char *const argv[] = {
        "unshare", "--pid", "--kill-child", "--mount-proc", REDLOCK_COMMAND, "run", "--ttl", "5s",
        KEY,       "--",    "sh",           "-c",           STUBBORN,        NULL};
    pid_t front;
    pid_t keeper;

    if (system("unshare --pid --kill-child --mount-proc true 2>/dev/null") != 0) {
        skip(); /* this requires root, and a kernel or container that allows it */
    }
    rig_start_program(rig, argv[0], argv);
    rig_wait_for_life(rig);
    front = rig_child_of(rig->pid);
    keeper = rig_child_of(front);
    kill(front, SIGSTOP);
    kill(keeper, SIGSTOP);
    kill(front, SIGKILL);
    kill(keeper, SIGKILL);
    rig_wait_for_death(rig);
    assert_int_not_equal(rig_wait(rig), 0);
}

static void the_front_is_killed_while_the_keeper_is_stopped(void **state) {
    struct rig *rig = *state;
    pid_t keeper = start_pipeline(rig);

    kill(keeper, SIGSTOP);
    kill(rig->pid, SIGKILL);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 128 + SIGKILL);
    kill(keeper, SIGCONT);
    assert_free(rig);
}

static void the_keeper_is_killed_while_the_front_is_stopped(void **state) {
    struct rig *rig = *state;
    pid_t keeper = start_pipeline(rig);

    kill(rig->pid, SIGSTOP);
    kill(keeper, SIGKILL);
    rig_wait_for_death(rig);
    kill(rig->pid, SIGCONT);
    assert_int_equal(rig_wait(rig), 76);
}

static void the_keeper_is_stopped(void **state) {
    struct rig *rig = *state;
    uint64_t stopped_ms;

    start_stubborn(rig, "--fence");
    kill(rig_child_of(rig->pid), SIGSTOP);
    stopped_ms = rig_wall_ms();
    rig_wait_for_death(rig);
    assert_int_in_range(rig_wall_ms(), stopped_ms, stopped_ms + 5000);
    assert_int_equal(rig_wait(rig), 76);
    rig_assert_events(rig);
    assert_true(rig_has_said(rig, "\"event\":\"killed\""));
    assert_true(rig_has_said(rig, "\"event\":\"ended\""));
    assert_int_equal(rig_number(rig, "code"), 76);
}

/*
 * The keeper collects zombies while it is stopped. The lines (lines.c) share a file lock, by which
 * the next holder of the key detects that none of them lives. The TTL is the shortest one that
 * leaves the front the most time: 3/4 of 1 s, also on a machine that is busy with other tests.
 */
static void the_keeper_is_stopped_and_the_command_forks(void **state) {
    struct rig *rig = *state;

    for (size_t i = count_runs(); i > 0; i--) {
        pid_t holder;

        rig_start(rig, "run", "--ttl", "10s", KEY, "--", "sh", "-c",
                  "exec 8>\"$FOLDER/held\"; flock 8; exec 9>\"$ALIVE\"; exec \"$LINES_PROGRAM\"",
                  NULL);
        rig_wait_for_life(rig);
        holder = rig->pid;
        kill(rig_child_of(holder), SIGSTOP);
        assert_int_equal(
            RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "flock -n \"$FOLDER/held\" true"), 0);
        rig->pid = holder;
        assert_int_equal(rig_wait(rig), 76);
    }
}

/* The keeper keeps renewing: the deadline that the front knew is long over when it continues. */
static void the_front_is_stopped_for_long(void **state) {
    struct rig *rig = *state;
    uint64_t stopped_ms;

    rig_start(rig, "run", "--ttl", "1s", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; echo alive >&9; "
              "while ! [ -e \"$FOLDER/over\" ]; do sleep 0.02; done; exit 5",
              NULL);
    rig_wait_for_life(rig);
    kill(rig->pid, SIGSTOP);
    stopped_ms = rig_wall_ms();
    RIG_WAIT_UNTIL(rig_wall_ms() > stopped_ms + 2500);
    kill(rig->pid, SIGCONT);
    assert_int_equal(system("touch \"$FOLDER/over\""), 0);
    assert_int_equal(rig_wait(rig), 5);
}

/* Ends the first thread of a process, whose state in /proc is then that of a dead one. */
static void *outlive_first_thread(void *arg) {
    char path[64];
    char state = 0;

    (void)arg;
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)getpid());
    while (state != 'Z') {
        FILE *file = fopen(path, "re");

        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            _exit(EXIT_FAILURE);
        }
        fclose(file);
    }
    (void)!write(9, "alive", 5);
    for (;;) {
        pause();
    }
}

static _Noreturn void be_headless(void) {
    pthread_t thread;

    signal(SIGTERM, SIG_IGN);
    if (pthread_create(&thread, NULL, outlive_first_thread, NULL) != 0) {
        exit(EXIT_FAILURE);
    }
    pthread_exit(NULL);
}

static void a_daemon_without_its_first_thread(void **state) {
    struct rig *rig = *state;

    rig_start(rig, "run", "--ttl", "5s", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; setsid -f \"$SELF\" headless; exec 9>&-; exec sleep 1000", NULL);
    rig_wait_for_life(rig);
    kill(rig_child_of(rig->pid), SIGKILL);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
}

/* Without descriptors /proc cannot be read. */
static void no_descriptors_are_left(void **state) {
    struct rig *rig = *state;
    const struct rlimit few = {.rlim_cur = 3, .rlim_max = 3};

    setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* LeakSanitizer, if built in, reads /proc */
    rig_start(rig, "run", "--on-lost", "kill", "--ttl", "5s", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; trap '' TERM; echo alive >&9; while :; do sleep 0.1; done", NULL);
    unsetenv("LSAN_OPTIONS");
    rig_wait_for_life(rig);
    assert_int_equal(prlimit(rig->pid, RLIMIT_NOFILE, &few, NULL), 0);
    assert_int_equal(prlimit(rig_child_of(rig->pid), RLIMIT_NOFILE, &few, NULL), 0);
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "SET " KEY " another PX 60000"));
    }
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
    assert_true(rig_has_said(rig, "the lock is lost"));
}

static void a_daemon_is_left_behind(void **state) {
    struct rig *rig = *state;

    rig_start(rig, "run", "--grace", "100ms", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; setsid -f sh -c "
              "'trap \"\" TERM; echo alive >&9; : >\"$FOLDER/up\"; while :; do sleep 0.1; done'; "
              "while ! [ -e \"$FOLDER/up\" ]; do sleep 0.01; done; exit 5",
              NULL);
    rig_wait_for_life(rig);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 5);
    assert_free(rig);
}

static void nobody_outlives_the_validity(void **state) {
    struct rig *rig = *state;

    for (size_t i = count_runs(); i > 0; i--) {
        uint64_t died_ms;

        start_stubborn(rig, "--fence");
        masters_stop_range(rig->masters, 0, 3);
        rig_wait_for_death(rig);
        died_ms = rig_wall_ms();
        assert_int_equal(rig_wait(rig), 76);
        assert_true(died_ms < rig_number(rig, "valid_until_ms"));
        masters_continue_range(rig->masters, 0, 3);
    }
}

/* The command has time to end by itself. */
static void sigterm_comes_first(void **state) {
    struct rig *rig = *state;

    rig_start(rig, "run", "--ttl", "2s", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; trap 'echo farewell; exit 0' TERM; echo alive >&9; "
              "while :; do sleep 0.02; done",
              NULL);
    rig_wait_for_life(rig);
    masters_stop_range(rig->masters, 0, 3);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
    assert_true(rig_has_said(rig, "farewell"));
    assert_true(rig_has_said(rig, "the lock is lost"));
    masters_continue_range(rig->masters, 0, 3);
}

static void keys_are_deleted(void **state) {
    struct rig *rig = *state;

    start_stubborn(rig, "--on-lost=kill");
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "SET " KEY " another PX 60000"));
    }
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
    assert_true(rig_has_said(rig, "\"event\":\"lost\""));
}

/*
 * The next renewal, after 1/3 of the TTL, comes after the rig's timeout. The keeper is stopped
 * while the keys are deleted: it would set a key again that other masters still have.
 */
static void a_watched_key_is_deleted(void **state) {
    struct rig *rig = *state;
    pid_t keeper;

    rig_start(rig, "run", "--watch-key", "--ttl", "600s", "--max-ttl", "600s", "--on-lost", "kill",
              KEY, "--", "sh", "-c", STUBBORN, NULL);
    rig_wait_for_life(rig);
    keeper = rig_child_of(rig->pid);
    kill(keeper, SIGSTOP);
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "DEL " KEY));
    }
    kill(keeper, SIGCONT);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 76);
    assert_true(rig_has_said(rig, "the lock is lost"));
}

static void a_warning_ends_nothing(void **state) {
    struct rig *rig = *state;

    rig_start(rig, "run", "--on-lost", "warn", "--ttl", "1s", KEY, "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; echo alive >&9; "
              "while ! [ -e \"$FOLDER/over\" ]; do sleep 0.02; done; echo farewell",
              NULL);
    rig_wait_for_life(rig);
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "SET " KEY " another PX 60000"));
    }
    rig_wait_for_text(rig, "the command goes on without it");
    free(masters_query(rig->masters, 0, "PING"));
    assert_int_equal(system("touch \"$FOLDER/over\""), 0);
    assert_int_equal(rig_wait(rig), 76);
    assert_true(rig_has_said(rig, "farewell"));
}

/* Renewals carry the command over many TTLs. */
static void a_long_command_keeps_its_lock(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "1s", KEY, "--", "sleep", "4"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(the_front_is_killed),
        TEST(the_keeper_is_killed),
        TEST(both_are_killed),
        TEST(both_are_killed_in_a_pid_namespace),
        TEST(the_front_is_killed_while_the_keeper_is_stopped),
        TEST(the_keeper_is_killed_while_the_front_is_stopped),
        TEST(the_keeper_is_stopped),
        TEST(the_keeper_is_stopped_and_the_command_forks),
        TEST(the_front_is_stopped_for_long),
        TEST(a_daemon_without_its_first_thread),
        TEST(no_descriptors_are_left),
        TEST(a_daemon_is_left_behind),
        TEST(nobody_outlives_the_validity),
        TEST(sigterm_comes_first),
        TEST(keys_are_deleted),
        TEST(a_watched_key_is_deleted),
        TEST(a_warning_ends_nothing),
        TEST(a_long_command_keeps_its_lock),
    };

    if (argc > 1 && strcmp(argv[1], "headless") == 0) {
        be_headless();
    }
    setenv("SELF", argv[0], 1);
    setenv("LINES_PROGRAM", LINES_PROGRAM, 1);
    return cmocka_run_group_tests_name("deaths", tests, NULL, NULL);
}
