/* A client for all threads: what its calls and the handles of its locks have in common. */
#ifndef REDLOCK_THREADS_MT_H
#define REDLOCK_THREADS_MT_H

#include "io/latch.h"
#include "threads/worker.h"

#include <redlock.h>
#include <redlock/mt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

struct redlock_mt {
    struct worker worker;
    redlock_options options; /* checked, to check requests; numbers only */
    unsigned generation;     /* of the process that created it (io/fork.h) */
    _Atomic unsigned users;  /* the owner, and handles */
    atomic_bool is_closing;
    struct latch closed; /* opened when the worker has ended */

    /* The worker's own: the handles whose locks the client knows. */
    LIST_HEAD(, redlock_mt_lock) locks;
};

/* Removes a user; the last one frees `mt`. */
void mt_drop(struct redlock_mt *mt);

/* Returns whether this process is a child (fork) of the one that created `mt`. */
bool mt_is_inherited(const struct redlock_mt *mt);

/* Returns REDLOCK_OK if calls may be made with `mt`: it is not NULL, and not inherited. */
redlock_status mt_check(const struct redlock_mt *mt, redlock_error *error);

/* Returns what mt_check does, and REDLOCK_EINVAL also inside a callback. */
redlock_status mt_check_blocking(const struct redlock_mt *mt, redlock_error *error);

/* Refuses a call, because the client has closed. */
redlock_status mt_refuse_closed(redlock_error *error);

#endif
