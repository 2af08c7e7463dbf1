/* Exit codes of `redlock run`, the environment of its command, and signals. */
#include "rig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "command"

static void the_code_is_the_commands(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "true"), 0);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "exit 7"), 7);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "kill -KILL $$"), 137);
}

static void what_cannot_be_executed(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "./no-such-command"), 127);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "/"), 126);
    assert_true(rig_has_said(rig, "cannot execute ./no-such-command"));
}

static void what_others_hold(void **state) {
    struct rig *rig = *state;

    assert_int_equal(
        RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "\"$REDLOCK\" run --no-wait command -- true"),
        75);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c",
                             "\"$REDLOCK\" run --wait 50ms -E 9 command -- true"),
                     9);
    assert_true(rig_has_said(rig, "held by another"));
}

static void no_quorum(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < 3; i++) {
        masters_kill(rig->masters, i);
    }
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", KEY, "--", "true"), 69);
    assert_int_equal(RIG_RUN(rig, "run", "--wait", "100ms", KEY, "--", "true"), 69);
    assert_true(rig_has_said(rig, "check the nodes' addresses"));
}

static void no_rights(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "ACL SETUSER default -set"));
    }
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", KEY, "--", "true"), 77);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "true"), 77); /* waiting would not help */
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "ACL SETUSER default resetpass >secret"));
    }
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "true"), 77);
    assert_true(rig_has_said(rig, "check login and database"));
}

/* Reported by the masters at once: waiting would not help. */
static void logins_and_databases_that_are_refused(void **state) {
    static const char *const forms[] = {"redis://:secret@127.0.0.1:%d", "redis://127.0.0.1:%d/999"};
    struct rig *rig = *state;

    for (size_t form = 0; form < 2; form++) {
        char list[256] = "";
        size_t length = 0;

        for (size_t i = 0; i < RIG_MASTERS; i++) {
            length += (size_t)snprintf(list + length, sizeof(list) - length, i > 0 ? "," : "");
            length += (size_t)snprintf(list + length, sizeof(list) - length, forms[form],
                                       masters_port(rig->masters, i));
        }
        assert_int_equal(RIG_RUN(rig, "run", "--no-wait", "-n", list, KEY, "--", "true"), 77);
        assert_int_equal(RIG_RUN(rig, "run", "-n", list, KEY, "--", "true"), 77);
    }
    assert_true(rig_has_said(rig, "refused: ERR AUTH"));
    assert_true(rig_has_said(rig, "refused: ERR DB index"));
}

/* Grants of a server whose clock may not be read do not count. */
static void no_right_to_be_trusted(void **state) {
    struct rig *rig = *state;

    for (size_t i = 0; i < RIG_MASTERS; i++) {
        free(masters_query(rig->masters, i, "ACL SETUSER default -time"));
    }
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", KEY, "--", "true"), 77);
    assert_true(rig_has_said(rig, "its user needs +time"));
    assert_true(rig_has_said(rig, "the rights of its user"));
}

/* Reported even if it is not the only cause: the quarantine of a new server ends by itself. */
static void one_server_for_two(void **state) {
    struct rig *rig = *state;
    char list[256];

    free(masters_query(rig->masters, 0, "FLUSHALL"));
    snprintf(list, sizeof(list), "%s,redis://localhost:%d", masters_uri(rig->masters, 0),
             masters_port(rig->masters, 0));
    assert_int_equal(RIG_RUN(rig, "run", "--wait", "2s", "-n", list, KEY, "--", "true"), 69);
    assert_true(rig_has_said(rig, "two of the nodes are one server"));
}

/* The library refuses these, and names the fields of its structs. */
static void options_are_named_as_they_are_written(void **state) {
    static const char *const refused[][6] = {
        {"--ttl", "60s", "k", NULL},
        {"--min-hold", "20s", "k", NULL},
        {"--max-ttl", "0ms", "k", NULL},
        {"--shared", "--fence", "k", NULL},
        {"--shared", "--watch-key", "k", NULL},
        {"--writer", "--permits", "2", "k", NULL},
        {"--owner", "a b", "k", NULL},
        {"k", "k", NULL},
        {"-n", "redis://a,redis:/b", "k", NULL},
    };
    static const char *const messages[] = {
        "--ttl: 60000 ms is not between 1 and --max-ttl, 30000 ms",
        "--min-hold: 20000 ms is more than --ttl, 10000 ms",
        "--max-ttl: 0 ms is not between 1 and ",
        "--fence: readers do not hold the key alone",
        "--watch-key: readers do not hold the key alone",
        "--shared, --writer: readers and writers have one key, neither keys nor permits",
        "--owner: must be at most 64 printable ASCII characters",
        "key 2: the same as key 1",
        "node 1: ",
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        const char *argv[12] = {"redlock", "run"};
        size_t count = 2;

        for (size_t j = 0; refused[i][j] != NULL; j++) {
            argv[count++] = refused[i][j];
        }
        argv[count] = "--";
        argv[count + 1] = "true";
        rig_start_with(rig, argv);
        assert_int_equal(rig_wait(rig), 64);
        if (!rig_has_said(rig, messages[i])) {
            fail_msg("%s is not said", messages[i]);
        }
    }
    assert_false(rig_has_said(rig, "_ms"));
}

/* Keys that look like options; REDLOCK_KEY has one on each line. */
static void keys_with_hyphens(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--key", "-a", KEY, "--key=--", "--", "sh", "-c",
                             "printf '%s,' $REDLOCK_KEY"),
                     0);
    assert_true(rig_has_said(rig, "-a," KEY ",--,"));
    assert_int_equal(RIG_RUN(rig, "run", "-a", "--", "true"), 64);
}

/* A signal that ends the command also ends it while it is stopped. */
static void a_command_that_is_stopped(void **state) {
    struct rig *rig = *state;

    rig_start(rig, "run", KEY, "--", "sh", "-c", "kill -STOP $$; exit 5", NULL);
    rig_wait_for_text(rig, "the command is stopped");
    kill(rig->pid, SIGHUP);
    assert_int_equal(rig_wait(rig), 128 + SIGHUP);
}

/* Closed descriptors do not become the program's own. */
static void closed_descriptors(void **state) {
    struct rig *rig = *state;
    const char *script = "\"$REDLOCK\" run inner -- sh -c "
                         "'for i in 0 1 2; do [ /proc/$$/fd/$i -ef /dev/null ] || exit 9; done; "
                         "exit 7' <&- >&- 2>&-";

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c", script), 7);
}

static void mistakes(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "watch", "--interval", "0", KEY), 64);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "ten", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "10", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "0x10s", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "1e1s", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "2m", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", "--wait", "5s", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "-n", "", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--grace", "9s", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--on-lost", "pray", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--permits", "0", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--shared", "--writer", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "-n", "http://x", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--no-such-option", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "walk"), 64);
    unsetenv("REDLOCK_NODES");
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "true"), 64);
    assert_true(rig_has_said(rig, "no nodes"));
}

/* Options may follow keys, even if POSIXLY_CORRECT is set. */
static void options_stand_anywhere(void **state) {
    struct rig *rig = *state;

    setenv("POSIXLY_CORRECT", "1", 1);
    assert_int_equal(RIG_RUN(rig, "run", "b", "--ttl", "2s", "a", "--no-wait", "--", "sh", "-c",
                             "test \"$(echo $REDLOCK_KEY)\" = 'b a' && test \"$1\" = --ttl", "sh",
                             "--ttl"),
                     0);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--no-such-option", "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "inspect", "a", "--json", "--", "--json", "-b"), 0);
    unsetenv("POSIXLY_CORRECT");
    assert_true(rig_has_said(rig, "\"key\":\"a\""));
    assert_true(rig_has_said(rig, "\"key\":\"--json\""));
    assert_true(rig_has_said(rig, "\"key\":\"-b\""));
    assert_int_equal(RIG_RUN(rig, "inspect", "--json", "--", "-c"), 0);
    assert_true(rig_has_said(rig, "\"key\":\"-c\""));
    assert_int_equal(RIG_RUN(rig, "nodes", "new", "-n", "redis://127.0.0.1:1", "--yes"), 1);
}

static void the_help_fits_a_screen(void **state) {
    struct rig *rig = *state;
    char *output;
    size_t lines = 0;
    size_t width = 0;

    assert_int_equal(RIG_RUN(rig, "--help"), 0);
    output = rig_output(rig);
    for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        width = strlen(line) > width ? strlen(line) : width;
        lines++;
    }
    free(output);
    assert_int_in_range(lines, 10, 50);
    assert_int_in_range(width, 40, 80);
    assert_int_equal(RIG_RUN(rig, "--version"), 0);
    assert_true(rig_has_said(rig, "redlock " PROJECT_VERSION "\n"));
}

static void output_that_cannot_be_written(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "\"$REDLOCK\" --help >/dev/full"),
                     71);
    assert_int_equal(
        RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "\"$REDLOCK\" --version >/dev/full"), 71);
    assert_true(rig_has_said(rig, "cannot write: No space left on device"));
}

/*
 * Too few descriptors for /proc, for the socket between the processes, for libevent (which begins
 * at 10), for the nodes (at 12), and for the command (at 16). No process waits for more of them.
 */
static void few_descriptors(void **state) {
    struct rig *rig = *state;

    setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* LeakSanitizer, if built in, reads /proc */
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c",
                             "for most in 4 5 6 7 8 9 10 11 12 13 14 15 16; do (ulimit -n $most; "
                             "\"$REDLOCK\" run --wait 10m other -- true; "
                             "test $? -eq 71) || exit 1; done"),
                     0);
    assert_int_equal(
        RIG_RUN(rig, "run", KEY, "--", "sh", "-c", "ulimit -n 8; \"$REDLOCK\" inspect other"), 71);
    unsetenv("LSAN_OPTIONS");
    assert_true(rig_has_said(rig, " of 5 nodes: Too many open files; raise the limit"));
    assert_true(rig_has_said(rig, "/proc or prctl: Too many open files"));
    assert_false(rig_has_said(rig, "[err]"));
}

static void the_environment(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c",
                             "test \"$REDLOCK_KEY\" = command && test -z \"$REDLOCK_FENCE\" && "
                             "test \"$REDLOCK_VALID_UNTIL\" -gt \"$(date +%s000)\""),
                     0);
    assert_int_equal(
        RIG_RUN(rig, "run", "--fence", "fenced", "--", "sh", "-c", "test \"$REDLOCK_FENCE\" -gt 0"),
        0);
    assert_int_equal(RIG_RUN(rig, "run", "--permits", "2", KEY, "--", "sh", "-c",
                             "case $REDLOCK_KEY in command:[01]) ;; *) exit 1 ;; esac"),
                     0);
    assert_int_equal(
        RIG_RUN(rig, "run", "a", "b", "--", "sh", "-c", "test \"$(echo $REDLOCK_KEY)\" = 'a b'"),
        0);
}

static void no_descriptor_is_inherited(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c",
                             "for file in /proc/$$/fd/*; do case ${file##*/} in [012]) ;; "
                             "*) test ! -e \"$file\" || exit 1 ;; esac; done"),
                     0);
}

/*
 * Starts the command with a socket for its stderr, from which one read returns what was written at
 * once.
 */
static int start_on_socket(struct rig *rig, const char *const *argv) {
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    rig->pid = fork();
    assert_true(rig->pid >= 0);
    if (rig->pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        execv(REDLOCK_COMMAND, (char *const *)argv);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    return ends[0];
}

/* The lines of several processes do not mix. */
static void an_event_is_written_at_once(void **state) {
    struct rig *rig = *state;
    const char *const argv[] = {"redlock", "run", "--json", KEY, "--", "./no-such-command", NULL};
    int events = start_on_socket(rig, argv);
    size_t count = 0;
    char line[1024];

    for (ssize_t length; (length = read(events, line, sizeof(line))) > 0; count++) {
        assert_memory_equal(line, "{\"event\":\"", 10);
        assert_memory_equal(line + length - 2, "}\n", 2);
    }
    close(events);
    assert_int_equal(rig_wait(rig), 127);
    assert_int_equal(count, 4); /* acquired, message, gone, ended */
}

/* With --json, in any position, mistakes are events. */
static void mistakes_are_events(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--no-such", "--json", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "-x", KEY, "--json", "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", KEY, "--json", "--ttl", "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "ten", "--json", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--json", KEY, "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--json", "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--json", "--owner", "\n", KEY, "--", "true"), 64);
    assert_int_equal(RIG_RUN(rig, "run", "--json", "-n", "http://x", KEY, "--", "true"), 64);
    rig_assert_events(rig);
    assert_true(rig_has_said(rig, "makes no sense at \\\"--no-such\\\""));
    assert_true(rig_has_said(rig, "makes no sense at \\\"-x\\\""));
    assert_true(rig_has_said(rig, "makes no sense at \\\"--ttl\\\""));
    assert_int_equal(RIG_RUN(rig, "run", "--owner", "--json", KEY, "true"), 64);
    assert_true(rig_has_said(rig, "redlock: run: write the command after"));
}

/* With --json, other messages are events, too. */
static void messages_are_events(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--json", KEY, "--", "./no-such-command"), 127);
    assert_true(rig_has_said(rig, "cannot execute ./no-such-command"));
    rig_start(rig, "run", "--json", KEY, "--", "sh", "-c", "kill -STOP $$", NULL);
    rig_wait_for_text(rig, "the command is stopped");
    kill(rig->pid, SIGHUP);
    assert_int_equal(rig_wait(rig), 128 + SIGHUP);
    rig_assert_events(rig);
}

/* A key may contain any bytes; a terminal must not interpret them as commands. */
static void keys_are_safe_to_print(void **state) {
    struct rig *rig = *state;
    const char *key = "a\033]0;b\007\377";

    setenv("BYTES", key, 1);
    assert_int_equal(
        RIG_RUN(rig, "run", key, "--", "sh", "-c", "\"$REDLOCK\" run --no-wait \"$BYTES\" -- true"),
        75);
    assert_true(rig_has_said(rig, "redlock: a\\x1b]0;b\\x07\\xff: "));
    assert_false(rig_has_said(rig, "\033"));
}

/* Events without a reader do not end the command. */
static void reports_without_a_reader(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", KEY, "--", "sh", "-c",
                             "{ \"$REDLOCK\" run --json other -- sh -c '"
                             "while ! [ -e \"$FOLDER/gone\" ]; do sleep 0.01; done; exit 4"
                             "' 2>&1 >/dev/null; echo $? >\"$FOLDER/code\"; } | "
                             "{ exec <&-; : >\"$FOLDER/gone\"; }; "
                             "exit \"$(cat \"$FOLDER/code\")\""),
                     4);
}

static void readers_share(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--shared", KEY, "--", "sh", "-c",
                             "\"$REDLOCK\" run --shared --no-wait command -- true"),
                     0);
    assert_int_equal(RIG_RUN(rig, "run", "--shared", KEY, "--", "sh", "-c",
                             "\"$REDLOCK\" run --writer --no-wait command -- true"),
                     75);
}

static void a_key_stays_for_min_hold(void **state) {
    struct rig *rig = *state;

    assert_int_equal(RIG_RUN(rig, "run", "--ttl", "30s", "--min-hold", "30s", KEY, "--", "true"),
                     0);
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", KEY, "--", "true"), 75);
}

/* Even if the caller blocks SIGCHLD, its command ends; the command inherits the mask. */
static void signals_that_the_caller_blocks(void **state) {
    struct rig *rig = *state;
    sigset_t blocked;
    sigset_t usual;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &usual);
    rig_start(rig, "run", KEY, "--", "grep", "SigBlk:.0*14000$", "/proc/self/status", NULL);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    assert_int_equal(rig_wait(rig), 0);
}

/* Starts a command that says `alive`, and exits with 3 at the signal. */
static void start_trap(struct rig *rig, const char *name) {
    char script[256];

    snprintf(script, sizeof(script),
             "exec 9>\"$ALIVE\"; trap 'exit 3' %s; echo alive >&9; while :; do sleep 0.1; done",
             name);
    rig_start(rig, "run", KEY, "--", "sh", "-c", script, NULL);
    rig_wait_for_life(rig);
}

static void signals_are_passed_on(void **state) {
    static const struct {
        int number;
        const char *name;
    } signals[] = {{SIGTERM, "TERM"}, {SIGINT, "INT"},   {SIGHUP, "HUP"},
                   {SIGQUIT, "QUIT"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        start_trap(rig, signals[i].name);
        kill(rig->pid, signals[i].number);
        rig_wait_for_death(rig);
        assert_int_equal(rig_wait(rig), 3);
    }
}

static void a_signal_ends_the_command(void **state) {
    struct rig *rig = *state;

    start_trap(rig, "USR1");
    kill(rig->pid, SIGTERM);
    rig_wait_for_death(rig);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
    assert_int_equal(RIG_RUN(rig, "run", "--no-wait", KEY, "--", "true"), 0);
}

static void a_signal_ends_the_waiting(void **state) {
    struct rig *rig = *state;
    pid_t holder;

    start_trap(rig, "USR1");
    holder = rig->pid;
    rig_start(rig, "run", KEY, "--", "true", NULL);
    RIG_WAIT_UNTIL(masters_query_integer(rig->masters, 0, "ZCARD " KEY "::queue") == 1);
    kill(rig->pid, SIGTERM);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
    rig->pid = holder;
    kill(holder, SIGUSR1);
    assert_int_equal(rig_wait(rig), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_code_is_the_commands),
        TEST(what_cannot_be_executed),
        TEST(what_others_hold),
        TEST(no_quorum),
        TEST(no_rights),
        TEST(logins_and_databases_that_are_refused),
        TEST(no_right_to_be_trusted),
        TEST(one_server_for_two),
        TEST(mistakes),
        TEST(options_stand_anywhere),
        TEST(options_are_named_as_they_are_written),
        TEST(keys_with_hyphens),
        TEST(a_command_that_is_stopped),
        TEST(closed_descriptors),
        TEST(the_help_fits_a_screen),
        TEST(output_that_cannot_be_written),
        TEST(few_descriptors),
        TEST(the_environment),
        TEST(no_descriptor_is_inherited),
        TEST(an_event_is_written_at_once),
        TEST(mistakes_are_events),
        TEST(messages_are_events),
        TEST(keys_are_safe_to_print),
        TEST(reports_without_a_reader),
        TEST(readers_share),
        TEST(a_key_stays_for_min_hold),
        TEST(signals_that_the_caller_blocks),
        TEST(signals_are_passed_on),
        TEST(a_signal_ends_the_command),
        TEST(a_signal_ends_the_waiting),
    };

    return cmocka_run_group_tests_name("codes", tests, NULL, NULL);
}
