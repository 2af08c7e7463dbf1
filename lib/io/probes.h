/*
 * The events of a client as probes for tracers of the system (USDT, <sys/sdt.h>): redlock:vote_cast
 * for the event vote_cast, and so on. The arguments are the client; the number of the request, for
 * an event of one; the name of the node, for an event of one; and the other fields in their order,
 * as texts or numbers. Tracers can read no more than six.
 *
 * A tracer that attaches itself counts up a semaphore, one for all probes. A client reads it once a
 * turn, so that nothing else is spent where nobody traces.
 */
#ifndef REDLOCK_IO_PROBES_H
#define REDLOCK_IO_PROBES_H

#include "core/event.h"

#include <redlock.h>
#include <stdbool.h>

struct probes {
    struct event_sink sink; /* the first member */
    const redlock_client *client;
};

/* Makes a sink that wants all events if a tracer is attached, and none otherwise. */
void probes_init(struct probes *probes, const redlock_client *client);

/* Looks for a tracer. Returns whether the sink wants other events than before. */
bool probes_look(struct probes *probes);

#endif
