/*
 * Job control: a shell on a terminal of its own runs `redlock run`, as users do. The terminal's
 * keys act on the command.
 */
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#define CTRL_C "\003"
#define CTRL_Z "\032"

struct terminal {
    int fd;
    pid_t shell;
    char text[65536]; /* everything that was shown */
    size_t length;
};

/* Starts a program as the leader of the terminal's session. */
static void start_on_terminal(struct terminal *terminal, const char *name, const char *option,
                              const char *argument) {
    *terminal = (struct terminal){0};
    terminal->shell = forkpty(&terminal->fd, NULL, NULL, NULL);
    assert_true(terminal->shell >= 0);
    if (terminal->shell == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("PS1", "ready> ", 1);
        execlp(name, name, option, argument, (char *)NULL);
        _exit(127);
    }
    fcntl(terminal->fd, F_SETFL, O_NONBLOCK);
}

static bool shows(struct terminal *terminal, const char *text) {
    ssize_t length = read(terminal->fd, terminal->text + terminal->length,
                          sizeof(terminal->text) - terminal->length - 1);

    terminal->length += length > 0 ? (size_t)length : 0;
    terminal->text[terminal->length] = '\0';
    return strstr(terminal->text, text) != NULL;
}

/* Waits until the text is shown, and discards what was shown up to there. */
static void expect(struct terminal *terminal, const char *text) {
    size_t used;

    RIG_WAIT_UNTIL(shows(terminal, text));
    used = (size_t)(strstr(terminal->text, text) - terminal->text) + strlen(text);
    terminal->length -= used;
    memmove(terminal->text, terminal->text + used, terminal->length + 1);
}

static void type(const struct terminal *terminal, const char *text) {
    assert_int_equal(write(terminal->fd, text, strlen(text)), strlen(text));
}

/* Opens a terminal with a shell, and types a command at its prompt. */
static void open_terminal(struct terminal *terminal, const char *command) {
    start_on_terminal(terminal, "sh", "-c", "exec bash --norc --noprofile --noediting -i");
    expect(terminal, "ready> ");
    type(terminal, command);
}

/* Ends the job of the shell, which then shows its prompt. */
static void type_ctrl_c(struct terminal *terminal) {
    type(terminal, CTRL_C);
    expect(terminal, "ready> ");
}

/* Stops the job of the shell, which then shows its prompt. */
static void type_ctrl_z(struct terminal *terminal) {
    type(terminal, CTRL_Z);
    expect(terminal, "Stopped");
    expect(terminal, "ready> ");
}

static void close_terminal(struct terminal *terminal) {
    int status;

    close(terminal->fd);
    kill(terminal->shell, SIGHUP);
    assert_int_equal(waitpid(terminal->shell, &status, 0), terminal->shell);
}

/* Types a command that says "begun" and does not end, and ends it by Ctrl-C with the code 130. */
static void begin_and_interrupt(const char *command) {
    struct terminal terminal;

    open_terminal(&terminal, command);
    expect(&terminal, "begun");
    type_ctrl_c(&terminal);
    type(&terminal, "echo code $?\n");
    expect(&terminal, "code 130");
    close_terminal(&terminal);
}

static void ctrl_c_ends_the_command(void **state) {
    (void)state;
    begin_and_interrupt("\"$REDLOCK\" run key -- sh -c 'echo be\"\"gun; exec sleep 1000'\n");
}

/* A second iteration of the shell's loop would not end. */
static void ctrl_c_ends_a_loop(void **state) {
    (void)state;
    begin_and_interrupt("bash -c 'for i in 1 2; do \"$REDLOCK\" run key -- "
                        "sh -c \"echo be\\\"\\\"gun; exec sleep 1000\"; done'\n");
}

static void the_command_reads_the_terminal(void **state) {
    struct terminal terminal;

    (void)state;
    open_terminal(&terminal,
                  "\"$REDLOCK\" run key -- sh -c 'echo be\"\"gun; read word; echo got=$word'\n");
    expect(&terminal, "begun");
    type(&terminal, "this\n");
    expect(&terminal, "got=this");
    expect(&terminal, "ready> ");
    close_terminal(&terminal);
}

/* The lock is kept while the job is stopped, for longer than its TTL. */
static void ctrl_z_stops_the_job(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    open_terminal(&terminal, "\"$REDLOCK\" run --ttl 1s key -- sh -c "
                             "'echo be\"\"gun; while read word; do echo got=$word; done'\n");
    expect(&terminal, "begun");
    for (int i = 0; i < 2; i++) {
        type_ctrl_z(&terminal);
        assert_int_equal(RIG_RUN(rig, "run", "--wait", "2s", "key", "--", "true"), 75);
        type(&terminal, "fg\n");
        expect(&terminal, "run --ttl");
        type(&terminal, "this\n");
        expect(&terminal, "got=this");
    }
    type_ctrl_c(&terminal);
    close_terminal(&terminal);
}

/* A job that is stopped before it has the lock leaves the queue, and the lock to others. */
static void ctrl_z_stops_the_waiting(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    rig_start(rig, "run", "key", "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; echo alive >&9; exec sleep 1000", NULL);
    rig_wait_for_life(rig);
    open_terminal(&terminal, "\"$REDLOCK\" run key -- sh -c 'echo be\"\"gun'\n");
    expect(&terminal, "position 1 of 1 in the queue");
    type_ctrl_z(&terminal);
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        RIG_WAIT_UNTIL(masters_query_integer(rig->masters, i, "ZCARD key::queue") == 0);
    }
    kill(rig->pid, SIGTERM);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "true"), 0);
    assert_false(shows(&terminal, "begun"));
    type(&terminal, "fg\n");
    expect(&terminal, "begun");
    expect(&terminal, "ready> ");
    close_terminal(&terminal);
}

static void a_job_in_the_background(void **state) {
    struct terminal terminal;

    (void)state;
    open_terminal(&terminal,
                  "\"$REDLOCK\" run key -- sh -c 'echo be\"\"gun; read word; echo got=$word' &\n");
    expect(&terminal, "begun");
    type(&terminal, "\n");
    expect(&terminal, "ready> ");
    type(&terminal, "fg\n");
    expect(&terminal, "run key");
    type(&terminal, "this\n");
    expect(&terminal, "got=this");
    expect(&terminal, "ready> ");
    close_terminal(&terminal);
}

/* A pipeline's other end keeps the terminal. */
static void a_pipeline(void **state) {
    struct terminal terminal;

    (void)state;
    open_terminal(&terminal,
                  "\"$REDLOCK\" run key -- sh -c 'echo be\"\"gun; exec sleep 1000' | cat\n");
    expect(&terminal, "begun");
    type_ctrl_c(&terminal);
    close_terminal(&terminal);
}

/* The command gets the terminal when it reads from it, and Ctrl-Z stops the whole job. */
static void a_pipeline_that_reads(void **state) {
    struct terminal terminal;

    (void)state;
    open_terminal(&terminal, "\"$REDLOCK\" run key -- sh -c "
                             "'echo be\"\"gun; while read word; do echo got=$word; done' | cat\n");
    expect(&terminal, "begun");
    type(&terminal, "this\n");
    expect(&terminal, "got=this");
    type_ctrl_z(&terminal);
    type(&terminal, "fg\n");
    expect(&terminal, "run key");
    type(&terminal, "that\n");
    expect(&terminal, "got=that");
    type_ctrl_c(&terminal);
    close_terminal(&terminal);
}

/* No shell could continue what Ctrl-Z stops. */
static void no_job_control(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    start_on_terminal(&terminal, "sh", "-c",
                      "\"$REDLOCK\" run key -- sh -c 'echo begun; "
                      "while ! [ -e \"$FOLDER/over\" ]; do sleep 0.02; done; echo farewell' | cat");
    expect(&terminal, "begun");
    type(&terminal, CTRL_Z);
    expect(&terminal, "^Z");
    assert_int_equal(RIG_RUN(rig, "run", "--wait", "500ms", "key", "--", "true"), 75);
    assert_int_equal(system("touch \"$FOLDER/over\""), 0);
    expect(&terminal, "farewell");
    close_terminal(&terminal);
}

static void the_terminal_is_closed(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    open_terminal(&terminal,
                  "\"$REDLOCK\" run key -- sh -c 'exec 9>\"$ALIVE\"; "
                  "setsid -f sh -c \"echo alive >&9; exec sleep 1000\"; exec sleep 1000'\n");
    rig_wait_for_life(rig);
    close_terminal(&terminal);
    rig_wait_for_death(rig);
    assert_int_equal(RIG_RUN(rig, "run", "key", "--", "true"), 0);
}

static void the_waiting_is_shown(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    rig_start(rig, "run", "--owner", "somebody", "key", "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; echo alive >&9; exec sleep 1000", NULL);
    rig_wait_for_life(rig);
    open_terminal(&terminal, "\"$REDLOCK\" run key -- true\n");
    expect(&terminal, "held by somebody, position 1 of 1 in the queue");
    type_ctrl_c(&terminal);
    type(&terminal, "echo code $?\n");
    expect(&terminal, "code 130");
    close_terminal(&terminal);
    kill(rig->pid, SIGTERM);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
}

/* Returns whether a text is shown at least twice. */
static bool shows_twice(struct terminal *terminal, const char *text) {
    const char *first = shows(terminal, text) ? strstr(terminal->text, text) : NULL;

    return first != NULL && strstr(first + 1, text) != NULL;
}

/* Of two waiting jobs, the one in the background leaves the terminal to the other. */
static void the_waiting_is_shown_in_the_foreground(void **state) {
    struct rig *rig = *state;
    struct terminal terminal;

    rig_start(rig, "run", "key", "--", "sh", "-c",
              "exec 9>\"$ALIVE\"; echo alive >&9; exec sleep 1000", NULL);
    rig_wait_for_life(rig);
    open_terminal(&terminal, "\"$REDLOCK\" run --wait 10m key -- true\n");
    expect(&terminal, "position 1 of 1 in the queue");
    type_ctrl_z(&terminal);
    type(&terminal, "bg\n");
    expect(&terminal, "ready> ");
    for (size_t i = 0; i < RIG_MASTERS; i++) {
        RIG_WAIT_UNTIL(masters_query_integer(rig->masters, i, "ZCARD key::queue") == 1);
    }
    type(&terminal, "\"$REDLOCK\" run key -- true\n");
    RIG_WAIT_UNTIL(shows_twice(&terminal, "position 2 of 2 in the queue"));
    assert_false(shows(&terminal, "place 1 of"));
    type_ctrl_c(&terminal);
    type(&terminal, "fg\n");
    expect(&terminal, "position 1 of 1 in the queue");
    type_ctrl_c(&terminal);
    close_terminal(&terminal);
    kill(rig->pid, SIGTERM);
    assert_int_equal(rig_wait(rig), 128 + SIGTERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ctrl_c_ends_the_command),
        TEST(ctrl_c_ends_a_loop),
        TEST(the_command_reads_the_terminal),
        TEST(ctrl_z_stops_the_job),
        TEST(ctrl_z_stops_the_waiting),
        TEST(a_job_in_the_background),
        TEST(a_pipeline),
        TEST(a_pipeline_that_reads),
        TEST(no_job_control),
        TEST(the_terminal_is_closed),
        TEST(the_waiting_is_shown),
        TEST(the_waiting_is_shown_in_the_foreground),
    };

    return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
