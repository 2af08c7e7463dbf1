/*
 * Looks, now and then, whether requests that wait in the queue have an entry wherever they can have
 * one: a client asks a node for entries as soon as the node's messages arrive, also after a
 * restart.
 */
#ifndef REDLOCK_SIM_QUEUE_WATCH_H
#define REDLOCK_SIM_QUEUE_WATCH_H

#include "app.h"

/* Time between two looks. */
#define QUEUE_WATCH_MS 50

/* A node that a worker's request has not asked for an entry on the node's channel. */
struct unasked {
    uint32_t token; /* NO_TOKEN: no such node was seen by the last look */
    uint32_t channel;
    uint64_t since; /* true time of the first look that saw it */
};

struct queue_watch {
    struct unasked unasked[PROCESSES_MAX][WORKERS_MAX];
};

void queue_watch_init(struct queue_watch *watch);

void queue_watch_look(struct queue_watch *watch, const struct app *app);

#endif
