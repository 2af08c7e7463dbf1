/*
 * The masters are a program of their own, so that tools under which the benchmark runs (valgrind,
 * strace) do not affect them. The program is in the same folder as this one in a build, and in
 * NULL_MASTERS_FOLDER after an installation.
 */
#include "nulls.h"

#include "child.h"
#include "memory.h"

#include <errno.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "redlock-null-masters"

struct nulls {
    struct child child;
    char uris[REDLOCK_MAX_NODES][40];
    const char *list[REDLOCK_MAX_NODES];
};

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

/* Runs in the child. Returns only on failure. */
static int become_masters(void *arg) {
    const size_t *count = arg;
    char path[4096] = PROGRAM;
    char number[24];

    snprintf(number, sizeof(number), "%zu", *count);
    if (find_program(path, sizeof(path))) {
        execl(path, PROGRAM, number, (char *)NULL);
    }
    fprintf(stderr, "redlock-bench: cannot start %s: %s\n", path, strerror(errno));
    return 127;
}

struct nulls *nulls_start(size_t count) {
    struct nulls *nulls = memory_take(1, sizeof(*nulls));
    int ports[REDLOCK_MAX_NODES];

    if (!child_start(&nulls->child, become_masters, &count, count, ports)) {
        fputs("redlock-bench: cannot start null masters\n", stderr);
        nulls_finish(nulls);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(nulls->uris[i], sizeof(nulls->uris[i]), "redis://127.0.0.1:%d", ports[i]);
        nulls->list[i] = nulls->uris[i];
    }
    return nulls;
}

void nulls_finish(struct nulls *nulls) {
    if (nulls != NULL) {
        child_finish(&nulls->child);
        free(nulls);
    }
}

const char *const *nulls_uris(const struct nulls *nulls) {
    return nulls->list;
}

pid_t nulls_pid(const struct nulls *nulls) {
    return nulls->child.pid;
}
