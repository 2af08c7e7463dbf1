/* What the nodes say of a key, for whoever asks: nothing is taken, and nothing changed. */
#ifndef REDLOCK_INSPECT_H
#define REDLOCK_INSPECT_H

#include "context.h"

#include <redlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct inspection;
TAILQ_HEAD(inspection_list, inspection);

/* The inspections of a client that have not been told yet. */
struct inspections {
    struct context *context;
    struct inspection_list all;
};

/* Who is told: one of the two. */
struct inspection_listener {
    redlock_inspect_cb *on_view;
    redlock_fence_cb *on_fence;
    void *arg;
};

void inspections_init(struct inspections *inspections, struct context *context);

/* Asks all nodes. `fence` is for on_fence. REDLOCK_ENOMEM: nobody will be told. */
redlock_status inspections_ask(struct inspections *inspections, const char *key, size_t key_length,
                               uint64_t fence, const struct inspection_listener *listener);

/* Tells those that are answered, or over: all of them, when the client closes. */
void inspections_turn(struct inspections *inspections);

#endif
