/*
 * The library's thread: it runs a loop with one client, and carries out the tasks that other
 * threads post.
 */
#ifndef REDLOCK_THREADS_WORKER_H
#define REDLOCK_THREADS_WORKER_H

#include "handle.h"
#include "io/latch.h"
#include "threads/tasks.h"

#include <pthread.h>
#include <redlock.h>
#include <redlock/loop.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct worker {
    struct tasks tasks;
    redlock_loop *loop;
    _Atomic unsigned loop_users; /* the worker, and threads that may be about to wake the loop */
    struct latch unused;         /* opened by the last user of the loop */
    pthread_t thread;
    struct task close;

    /* The thread's own, until it has ended. */
    redlock_client *client; /* NULL: closed */
    uint64_t unreleased;    /* releases that the closed client left over */
    void (*on_closed)(void *arg);
    void *arg;
};

/*
 * Starts the thread, with a client of `options`, whose locks are mirrored (handle.h). `on_closed`
 * is called on the thread, with `arg`, once the client has closed, before the tasks that are then
 * left are begun without a client. The worker must be all zeros. Returns a status, with a sentence
 * in `error`; after a failure nothing is left.
 */
redlock_status worker_start(struct worker *worker, const redlock_options *options,
                            const struct mirror *mirror, void (*on_closed)(void *arg), void *arg,
                            redlock_error *error);

/*
 * Posts a task, from any thread. Returns false if the worker does not take it, because it has
 * ended, or is about to.
 */
bool worker_post(struct worker *worker, struct task *task);

/* Closes the client, and waits until the thread has ended. Call it once. */
void worker_end(struct worker *worker);

/* Returns whether this thread is that of a worker, which may not wait. */
bool worker_is_current(void);

#endif
