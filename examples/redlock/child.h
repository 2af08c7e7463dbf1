/* The command that runs under the lock: a process group of its own. */
#ifndef CHILD_H
#define CHILD_H

#include "job.h"

#include <redlock.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;   /* also the number of its process group; 0: ended */
    int go;      /* one byte to this pipe lets the child become the command */
    int failure; /* delivers errno if it cannot, otherwise the end of the file */
};

/*
 * Starts a child that waits for child_go. Its environment has `valid_until_ms`, counted from 1970.
 * Returns 0, or -1 with errno set.
 */
int child_start(struct child *child, const struct job *job, const redlock_lock *lock,
                uint64_t valid_until_ms);

void child_go(struct child *child);

/* Closes the pipes. */
void child_finish(struct child *child);

#endif
