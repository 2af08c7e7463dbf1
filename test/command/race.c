/*
 * Exclusion: processes of `redlock run` want one key, beside a client that knows nothing of queues.
 * Each command creates a file that must not exist, and removes it.
 *
 * REDLOCK_TEST_RUNS is the number of runs of each of the processes; 2 by default.
 */
#include "rig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CONTENDERS 50
#define RUNS 2
#define PLAIN_RUNS 10

/* `set -C` creates a file with O_EXCL. */
#define EXCLUSIVE                                                                                  \
    "set -C; : >\"$FOLDER/held\" || { echo overlap; exit 1; }; "                                   \
    "echo x >>\"$FOLDER/runs\"; rm \"$FOLDER/held\""

/*
 * Half a minute is longer than any holder waits for its turn to renew: what is tested is who holds
 * the key, not what follows if a machine stands still.
 */
#define RUN "redlock", "run", "--wait", "5m", "--ttl", "30s"

static const char *const one_holder[] = {RUN, "race", "--", "sh", "-c", EXCLUSIVE, NULL};

static size_t count_runs(void) {
    const char *runs = getenv("REDLOCK_TEST_RUNS");

    return runs != NULL ? strtoul(runs, NULL, 10) : RUNS;
}

static size_t count_lines(const struct rig *rig) {
    char path[RIG_PATH];
    size_t lines = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/runs", rig->folder);
    file = fopen(path, "re");
    while (file != NULL && !feof(file)) {
        lines += fgetc(file) == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

static void start_contenders(struct rig *rig, pid_t *pids, const char *const *argv) {
    for (size_t i = 0; i < CONTENDERS; i++) {
        rig_start_with(rig, argv);
        pids[i] = rig->pid;
    }
}

static void wait_for_all(struct rig *rig, const pid_t *pids) {
    for (size_t i = 0; i < CONTENDERS; i++) {
        rig->pid = pids[i];
        int status = rig_wait(rig);
        if (status != 0) {
            fail_msg("a command exited with %d; all of them printed:\n%s", status, rig_output(rig));
        }
    }
}

static void one_at_a_time(void **state) {
    struct rig *rig = *state;
    size_t runs = count_runs();
    pid_t pids[CONTENDERS];

    for (size_t i = 0; i < runs; i++) {
        start_contenders(rig, pids, one_holder);
        wait_for_all(rig, pids);
    }
    assert_false(rig_has_said(rig, "overlap"));
    assert_int_equal(count_lines(rig), CONTENDERS * runs);
}

/* Acquires the key at one master after the other, as foreign clients do. */
static bool take_plainly(struct rig *rig) {
    size_t granted = 0;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        char *answer = masters_query(rig->masters, i, "SET race plain NX PX 60000");

        granted += answer != NULL && answer[0] == 'O';
        free(answer);
    }
    return granted >= RIG_MASTERS / 2 + 1;
}

static void release_plainly(struct rig *rig) {
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(
            rig->masters, i, "EVAL %s 1 race",
            "if redis.call('get', KEYS[1]) == 'plain' then redis.call('del', KEYS[1]) end"));
    }
}

static void work_plainly(struct rig *rig) {
    char path[RIG_PATH];
    FILE *file;

    snprintf(path, sizeof(path), "%s/held", rig->folder);
    file = fopen(path, "wxe");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(remove(path), 0);
}

static void a_plain_client_takes_part(void **state) {
    struct rig *rig = *state;
    pid_t pids[CONTENDERS];
    struct poll_timeout timeout = {0};

    start_contenders(rig, pids, one_holder);
    for (size_t done = 0; done < PLAIN_RUNS;) {
        if (take_plainly(rig)) {
            work_plainly(rig);
            done++;
            timeout = (struct poll_timeout){0};
        }
        release_plainly(rig);
        rig_wait_a_moment(&timeout, "the plain client has another turn");
    }
    wait_for_all(rig, pids);
    assert_false(rig_has_said(rig, "overlap"));
    assert_int_equal(count_lines(rig), CONTENDERS);
}

static void permits_are_as_many(void **state) {
    static const char *const argv[] = {
        RUN,
        "--permits",
        "3",
        "race",
        "--",
        "sh",
        "-c",
        "set -C; : >\"$FOLDER/$REDLOCK_KEY\" || { echo overlap; exit 1; }; "
        "echo x >>\"$FOLDER/runs\"; rm \"$FOLDER/$REDLOCK_KEY\"",
        NULL};
    struct rig *rig = *state;
    pid_t pids[CONTENDERS];

    start_contenders(rig, pids, argv);
    wait_for_all(rig, pids);
    assert_false(rig_has_said(rig, "overlap"));
    assert_int_equal(count_lines(rig), CONTENDERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_at_a_time),
        TEST(a_plain_client_takes_part),
        TEST(permits_are_as_many),
    };

    return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
