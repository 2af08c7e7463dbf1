/* The application's waits until its client can acquire locks: redlock_client_ready. */
#ifndef REDLOCK_READY_H
#define REDLOCK_READY_H

#include "io/loop.h"
#include "node/context.h"
#include "node/members.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The most waits of a client at one time. */
#define READY_WAITS_MAX 1024

struct ready_wait;
TAILQ_HEAD(ready_list, ready_wait);

/* The waits of a client that have not ended, in order of the calls. */
struct ready {
    struct context *context;
    struct members *members;
    struct ready_list waits;
    unsigned count;
    struct timer timer; /* the next instant at which a wait may end without an event */
};

/* Begins without waits. */
void ready_init(struct ready *ready, struct context *context, struct members *members);

/* Frees the timer, when no wait is left; accepts a struct of zeros. */
void ready_finish(struct ready *ready);

/*
 * Begins a wait of at most `timeout` nanoseconds. Calls `on_ready` once, from a later turn. Begins
 * none and returns REDLOCK_ENOMEM when out of memory, or REDLOCK_EBUSY with READY_WAITS_MAX waits.
 */
redlock_status ready_ask(struct ready *ready, uint64_t timeout, redlock_ready_cb *on_ready,
                         void *arg);

/* Makes the next turn check the waits, if there are any: a node has changed. */
void ready_look(const struct ready *ready);

/* Calls back for the waits that have ended; for all waits while the client is closing. */
void ready_turn(struct ready *ready);

/* Returns whether there are waits. */
static inline bool ready_has_any(const struct ready *ready) {
    return !TAILQ_EMPTY(&ready->waits);
}

#endif
