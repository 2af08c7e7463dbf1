/*
 * The events of a client as probes for system tracers (USDT, <sys/sdt.h>): redlock:vote_cast for
 * the event vote_cast, and so on. The arguments are the client; the number of the request, if the
 * event has one; the name of the node, if it has one; and the other fields in order, as texts or
 * numbers. There are always six, the maximum that all tracers can read.
 *
 * A tracer that attaches increments a semaphore, one for all probes. A client reads it once a turn,
 * so that nothing else is spent while nobody traces.
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

/* Initializes a sink that wants all events while a tracer is attached, and none otherwise. */
void probes_init(struct probes *probes, const redlock_client *client);

/* Checks for tracers. Returns whether the set of wanted events has changed. */
bool probes_look(struct probes *probes);

#endif
