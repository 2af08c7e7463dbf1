/* The application's trace hook, as a sink of events. */
#ifndef REDLOCK_NODE_TRACE_H
#define REDLOCK_NODE_TRACE_H

#include "core/event.h"

#include <redlock.h>

struct trace {
    struct event_sink sink; /* the first member */
    const redlock_client *client;
    redlock_trace_cb *take; /* the hook; NULL: none */
    void *arg;
};

/* Makes a sink that wants all events, or none without a hook. */
void trace_init(struct trace *trace, const redlock_client *client, redlock_trace_cb *take,
                void *arg);

#endif
