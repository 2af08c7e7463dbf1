/*
 * The masters are a program of their own, so that tools under which the benchmark runs (valgrind,
 * strace) do not affect them. The program is in the same folder as this one in a build, and in
 * NULL_MASTERS_FOLDER after an installation. It ends when its standard input does: with
 * nulls_finish, or with the benchmark, however that ends.
 */
#include "nulls.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "redlock-null-masters"

struct nulls {
    pid_t pid;
    int input; /* end of the pipe that is the process's standard input */
    char uris[REDLOCK_MAX_NODES][40];
    const char *list[REDLOCK_MAX_NODES];
};

enum { READER, WRITER };

/* Runs in the child. Returns only on failure, with errno set. */
static void become_masters(const char *path, size_t count, const int input[2],
                           const int output[2]) {
    char number[24];

    snprintf(number, sizeof(number), "%zu", count);
    if (dup2(input[READER], STDIN_FILENO) < 0 || dup2(output[WRITER], STDOUT_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
        return;
    }
    /* The handlers of the parent's event loop would notify the parent, which would end the run. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    execl(path, PROGRAM, number, (char *)NULL);
}

static bool find_program(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - sizeof("/" PROGRAM));

    if (length < 0) {
        return false;
    }
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/" PROGRAM);
    if (access(path, X_OK) != 0) {
        snprintf(path, size, "%s", NULL_MASTERS_FOLDER "/" PROGRAM);
    }
    return true;
}

static bool start_process(struct nulls *nulls, size_t count, const int input[2],
                          const int output[2]) {
    char path[4096];

    if (!find_program(path, sizeof(path))) {
        return false;
    }
    nulls->pid = fork();
    if (nulls->pid == 0) {
        become_masters(path, count, input, output);
        fprintf(stderr, "redlock-bench: cannot start %s: %s\n", path, strerror(errno));
        _exit(127);
    }
    return nulls->pid > 0;
}

/* Waits for the line of ports, which comes when all masters listen. */
static bool read_ports(struct nulls *nulls, size_t count, int output) {
    FILE *lines = fdopen(output, "re");
    size_t known = 0;
    int port;

    if (lines == NULL) {
        close(output);
        return false;
    }
    while (known < count && fscanf(lines, "%d", &port) == 1) {
        snprintf(nulls->uris[known], sizeof(nulls->uris[known]), "redis://127.0.0.1:%d", port);
        nulls->list[known] = nulls->uris[known];
        known++;
    }
    fclose(lines);
    return known == count;
}

static bool start(struct nulls *nulls, size_t count) {
    int input[2];
    int output[2];
    bool is_started;

    if (pipe2(input, O_CLOEXEC) != 0) {
        return false;
    }
    nulls->input = input[WRITER];
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(input[READER]);
        return false;
    }
    is_started = start_process(nulls, count, input, output);
    close(input[READER]);
    close(output[WRITER]);
    if (!is_started) {
        close(output[READER]);
        return false;
    }
    return read_ports(nulls, count, output[READER]);
}

struct nulls *nulls_start(size_t count) {
    struct nulls *nulls = memory_take(1, sizeof(*nulls));

    nulls->input = -1;
    if (!start(nulls, count)) {
        fputs("redlock-bench: cannot start null masters\n", stderr);
        nulls_finish(nulls);
        return NULL;
    }
    return nulls;
}

void nulls_finish(struct nulls *nulls) {
    if (nulls == NULL) {
        return;
    }
    if (nulls->input >= 0) {
        close(nulls->input);
    }
    while (nulls->pid > 0 && waitpid(nulls->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(nulls);
}

const char *const *nulls_uris(const struct nulls *nulls) {
    return nulls->list;
}

pid_t nulls_pid(const struct nulls *nulls) {
    return nulls->pid;
}
