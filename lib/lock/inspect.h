/* Questions of the application to the nodes about a key, which is neither taken nor changed. */
#ifndef REDLOCK_LOCK_INSPECT_H
#define REDLOCK_LOCK_INSPECT_H

#include "node/context.h"
#include "node/members.h"

#include <redlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct inspection;
TAILQ_HEAD(inspection_list, inspection);

/* The inspections of a client that have not been told yet. */
struct inspections {
    struct context *context;
    const struct members *members;
    struct inspection_list all;
    unsigned out; /* number of inspections that wait for a reply, or were not told */
};

/* The callback of the application: one of the two. */
struct inspection_listener {
    redlock_inspect_cb *on_view;
    redlock_fence_cb *on_fence;
    void *arg;
};

void inspections_init(struct inspections *inspections, struct context *context,
                      const struct members *members);

/*
 * Asks all nodes about a key, which is copied; `fence` is for on_fence. The callback is called from
 * a later turn, once. Returns REDLOCK_ENOMEM when out of memory: then the callback is not called.
 */
redlock_status inspections_ask(struct inspections *inspections, const char *key, size_t key_length,
                               uint64_t fence, const struct inspection_listener *listener);

/* Tells the inspections that are answered, or out of time; all while the client is closing. */
void inspections_turn(struct inspections *inspections);

#endif
