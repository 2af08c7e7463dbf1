/*
 * Two pipes carry the orders. Nobody writes to them: closing the write end is the order, which all
 * workers see.
 */
#include "workers.h"

#include "memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum order { BEGIN, END, ORDERS };

struct workers {
    pid_t owner; /* the process that may end the workers, not a fork of it */
    workers_work *work;
    void *arg;
    int readers[ORDERS]; /* -1: closed */
    int writers[ORDERS];
    size_t count;
    size_t running;
    pid_t pids[]; /* 0: ended */
};

/* The workers that exit() must end; NULL: none. */
static struct workers *unfinished;

static void close_end(int *end) {
    if (*end >= 0) {
        close(*end);
        *end = -1;
    }
}

static void end_at_exit(void) {
    if (unfinished != NULL && unfinished->owner == getpid()) {
        workers_destroy(unfinished);
    }
}

/* Runs in the child. */
static _Noreturn void become_worker(struct workers *workers, size_t index) {
    const struct workers_orders orders = {workers->readers[BEGIN], workers->readers[END]};

    /* The handlers of the parent's event loop would notify the parent, which would end the run. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    close_end(&workers->writers[BEGIN]);
    close_end(&workers->writers[END]);
    /* The parent may have ended before the death signal was set. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != workers->owner) {
        exit(EXIT_FAILURE);
    }
    exit(workers->work(index, orders, workers->arg));
}

static int start_one(struct workers *workers, size_t index) {
    pid_t pid = fork();

    if (pid == 0) {
        become_worker(workers, index);
    }
    if (pid < 0) {
        return -1;
    }
    workers->pids[index] = pid;
    workers->running++;
    return 0;
}

static int make_pipes(struct workers *workers) {
    for (int order = 0; order < ORDERS; order++) {
        int ends[2];

        if (pipe(ends) != 0) {
            return -1;
        }
        workers->readers[order] = ends[0];
        workers->writers[order] = ends[1];
    }
    return 0;
}

static int start_all(struct workers *workers) {
    static bool registered;

    if (!registered && atexit(end_at_exit) != 0) {
        return -1;
    }
    registered = true;
    unfinished = workers;
    if (make_pipes(workers) != 0) {
        return -1;
    }
    for (size_t i = 0; i < workers->count; i++) {
        if (start_one(workers, i) != 0) {
            return -1;
        }
    }
    return 0;
}

struct workers *workers_start(size_t count, workers_work *work, void *arg) {
    struct workers *workers = memory_take(1, sizeof(*workers) + count * sizeof(workers->pids[0]));

    workers->owner = getpid();
    workers->work = work;
    workers->arg = arg;
    workers->count = count;
    for (int order = 0; order < ORDERS; order++) {
        workers->readers[order] = workers->writers[order] = -1;
    }
    if (start_all(workers) != 0) {
        fprintf(stderr, "redlock-bench: cannot start processes: %s\n", strerror(errno));
        workers_destroy(workers);
        return NULL;
    }
    return workers;
}

static void wait_for(pid_t pid) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

void workers_destroy(struct workers *workers) {
    if (workers == NULL) {
        return;
    }
    for (size_t i = 0; i < workers->count; i++) {
        if (workers->pids[i] != 0) {
            kill(workers->pids[i], SIGKILL);
            wait_for(workers->pids[i]);
        }
    }
    for (int order = 0; order < ORDERS; order++) {
        close_end(&workers->readers[order]);
        close_end(&workers->writers[order]);
    }
    unfinished = NULL;
    free(workers);
}

void workers_begin(struct workers *workers) {
    close_end(&workers->writers[BEGIN]);
}

void workers_end(struct workers *workers) {
    close_end(&workers->writers[END]);
}

static bool is_good_end(const struct workers *workers, int status) {
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "redlock-bench: a process ended by signal %d\n", WTERMSIG(status));
        return false;
    }
    if (WEXITSTATUS(status) != EXIT_SUCCESS || workers->writers[END] >= 0) {
        fputs("redlock-bench: a process gave up\n", stderr);
        return false;
    }
    return true;
}

bool workers_reap(struct workers *workers) {
    bool is_well = true;

    for (size_t i = 0; i < workers->count; i++) {
        int status;

        if (workers->pids[i] != 0 && waitpid(workers->pids[i], &status, WNOHANG) > 0) {
            workers->pids[i] = 0;
            workers->running--;
            is_well = is_good_end(workers, status) && is_well;
        }
    }
    return is_well;
}

size_t workers_running(const struct workers *workers) {
    return workers->running;
}
