#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define BESIDE_INTERVAL_MS 5
#define COMMAND_SIZE 1024

static void format_command(char command[COMMAND_SIZE], const char *arguments, const char *end) {
    assert_true(snprintf(command, COMMAND_SIZE, "exec '%s' %s%s", REDLOCK_BENCH, arguments, end) <
                COMMAND_SIZE);
}

int bench_run_beside(const char *arguments, char output[BENCH_OUTPUT_SIZE],
                     void (*meanwhile)(void *arg), void *arg) {
    char command[COMMAND_SIZE];
    struct pollfd readable = {.events = POLLIN};
    FILE *pipe;
    size_t length;
    int status;

    format_command(command, arguments, " 2>&1");
    pipe = popen(command, "re");
    assert_non_null(pipe);
    readable.fd = fileno(pipe);
    while (meanwhile != NULL && poll(&readable, 1, BESIDE_INTERVAL_MS) == 0) {
        meanwhile(arg);
    }
    length = fread(output, 1, BENCH_OUTPUT_SIZE - 1, pipe);
    output[length] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int bench_run(const char *arguments, char output[BENCH_OUTPUT_SIZE]) {
    return bench_run_beside(arguments, output, NULL, NULL);
}

/* Reads to the end of a terminal, which Linux reports by EIO. */
static void read_terminal(int terminal, char output[BENCH_OUTPUT_SIZE]) {
    size_t length = 0;
    ssize_t got;

    while (length < BENCH_OUTPUT_SIZE - 1 &&
           (got = read(terminal, output + length, BENCH_OUTPUT_SIZE - 1 - length)) > 0) {
        length += (size_t)got;
    }
    output[length] = '\0';
}

int bench_run_on_terminal(const char *arguments, char output[BENCH_OUTPUT_SIZE]) {
    char command[COMMAND_SIZE];
    int terminal;
    int status;
    pid_t pid;

    format_command(command, arguments, "");
    pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    read_terminal(terminal, output);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

pid_t bench_start(const char *arguments) {
    char command[COMMAND_SIZE];
    pid_t pid;

    format_command(command, arguments, " >/dev/null 2>&1");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid;
}

json_t *bench_measure(const char *arguments) {
    char output[BENCH_OUTPUT_SIZE];
    json_error_t error;
    json_t *object;

    if (bench_run(arguments, output) != EXIT_SUCCESS) {
        fail_msg("redlock-bench %s failed: %s", arguments, output);
    }
    object = json_loads(output, 0, &error);
    if (object == NULL) {
        fail_msg("no JSON: %s: %s", error.text, output);
    }
    assert_true(json_is_object(object));
    return object;
}

json_int_t bench_integer(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value)) {
        fail_msg("%s is no integer", name);
    }
    return json_integer_value(value);
}

double bench_real(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    if (!json_is_real(value)) {
        fail_msg("%s is no real number", name);
    }
    return json_real_value(value);
}

void bench_refuses(const struct bench_refusal *refusals, size_t count) {
    char output[BENCH_OUTPUT_SIZE];

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(bench_run(refusals[i].arguments, output), EXIT_USAGE);
        if (strstr(output, refusals[i].message) == NULL) {
            fail_msg("%s: %s", refusals[i].arguments, output);
        }
    }
}
