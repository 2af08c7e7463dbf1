/*
 * Limits on lines of the log, so that no class of them floods it: for each kind of event, and each
 * node of the kind, a burst, and then so many in a second. Lines left out are counted.
 */
#ifndef REDLOCK_CORE_EVENT_LIMITS_H
#define REDLOCK_CORE_EVENT_LIMITS_H

#include "core/event.h"

#include <stdbool.h>
#include <stdint.h>

#define EVENT_LIMIT_BURST 20                        /* lines at once */
#define EVENT_LIMIT_STEP_NANOS UINT64_C(1000000000) /* for one more line */
#define EVENT_LIMIT_NODES 64 /* pairs of a kind and a node with a limit of their own */

struct event_limit {
    uint64_t of;       /* hash of a kind and a node */
    uint64_t full_at;  /* instant from which the whole burst is free again */
    uint64_t left_out; /* number of lines since the last one that was written */
};

/* Zeroed: nothing has been written. */
struct event_limits {
    struct event_limit kinds[EVENT_COUNT];
    struct event_limit nodes[EVENT_LIMIT_NODES];
};

/*
 * Returns whether a line about this kind and node ("": none) may be written now, and in `left_out`
 * how many were left out before it. Pairs beyond EVENT_LIMIT_NODES that were active in the last
 * EVENT_LIMIT_BURST steps share the limit of their kind.
 */
bool event_limits_take(struct event_limits *limits, enum event_kind kind, const char *node,
                       uint64_t now, uint64_t *left_out);

#endif
