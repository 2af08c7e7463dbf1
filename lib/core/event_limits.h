/*
 * Limits on the lines of the log, so that no class of them floods it. Each kind of event, and each
 * node of a kind, has a burst of lines, and one line a second after that. Lines left out are
 * counted.
 */
#ifndef REDLOCK_CORE_EVENT_LIMITS_H
#define REDLOCK_CORE_EVENT_LIMITS_H

#include "core/event.h"

#include <stdbool.h>
#include <stdint.h>

#define EVENT_LIMIT_BURST 20                        /* lines at once */
#define EVENT_LIMIT_STEP_NANOS UINT64_C(1000000000) /* time until one more line is allowed */
#define EVENT_LIMIT_NODES 64 /* pairs of kind and node that have a limit of their own */

struct event_limit {
    uint64_t of;       /* hash of kind and node */
    uint64_t full_at;  /* instant from which the whole burst is free again */
    uint64_t left_out; /* number of lines since the last one that was written */
};

/* The initial state is all zeros. */
struct event_limits {
    struct event_limit kinds[EVENT_COUNT];
    struct event_limit nodes[EVENT_LIMIT_NODES];
};

/*
 * Returns whether a line about this kind and node ("": none) may be written now, and stores in
 * `left_out` how many lines were left out before it. Pairs beyond EVENT_LIMIT_NODES that were
 * active in the last EVENT_LIMIT_BURST steps share the limit of their kind.
 */
bool event_limits_take(struct event_limits *limits, enum event_kind kind, const char *node,
                       uint64_t now, uint64_t *left_out);

#endif
