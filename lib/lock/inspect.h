/* Inspections: the application's questions to the nodes about a key, which is not changed. */
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

/* The inspections of a client. */
struct inspections {
    struct context *context;
    struct members *members;
    struct inspection_list all; /* not reported yet */
    unsigned out;               /* number of inspections not reported, or with replies to come */
};

/* The application's callback: one of the two. */
struct inspection_listener {
    redlock_inspect_cb *on_view;
    redlock_fence_cb *on_fence;
    void *arg;
};

void inspections_init(struct inspections *inspections, struct context *context,
                      struct members *members);

/*
 * Asks all nodes about a key, which is copied, once they are known (members.h); `fence` is the one
 * to check, for on_fence. Calls back once, from a later turn; never after REDLOCK_ENOMEM, which is
 * returned without memory.
 */
redlock_status inspections_ask(struct inspections *inspections, const char *key, size_t key_length,
                               uint64_t fence, const struct inspection_listener *listener);

/*
 * Asks what waited for the nodes to connect, and reports the inspections that are answered or have
 * timed out; all while the client is closing.
 */
void inspections_turn(struct inspections *inspections);

#endif
