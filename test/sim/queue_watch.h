/*
 * Checks from time to time whether queued requests have an entry wherever they can have one: a
 * client requests entries from a node as soon as the node's messages arrive, also after a restart.
 */
#ifndef REDLOCK_SIM_QUEUE_WATCH_H
#define REDLOCK_SIM_QUEUE_WATCH_H

#include "app.h"

/* Time between two checks. */
#define QUEUE_WATCH_MS 50

/* A node whose channel a worker's request has not sent to it to get an entry. */
struct unasked {
    uint32_t token; /* NO_TOKEN: the last check found no such node */
    uint32_t channel;
    uint64_t since; /* true time of the first check that found it */
};

struct queue_watch {
    struct unasked unasked[PROCESSES_MAX][WORKERS_MAX];
};

void queue_watch_init(struct queue_watch *watch);

void queue_watch_look(struct queue_watch *watch, const struct app *app);

#endif
