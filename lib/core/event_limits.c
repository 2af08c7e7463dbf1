#include "core/event_limits.h"

#include "base/nanos.h"

/* Returns the 64-bit FNV-1a of a pair, which identifies it without a copy of the node's name. */
static uint64_t hash_of(enum event_kind kind, const char *node) {
    const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ (uint64_t)kind) * prime;
    for (; *node != '\0'; node++) {
        hash = (hash ^ (unsigned char)*node) * prime;
    }
    return hash;
}

/* Returns the limit of a pair: its own, an idle one that becomes its own, or its kind's. */
static struct event_limit *find_limit(struct event_limits *limits, enum event_kind kind,
                                      const char *node, uint64_t now) {
    const uint64_t of = hash_of(kind, node);
    struct event_limit *idle = NULL;
    for (unsigned i = 0; i < EVENT_LIMIT_NODES; i++) {
        struct event_limit *limit = &limits->nodes[i];
        if (limit->of == of) {
            return limit;
        }
        /* A limit with its whole burst free carries no state, so another pair may take it over. */
        if (limit->full_at <= now) {
            idle = limit;
        }
    }
    /* All 64 are in use: the pair shares the limit of its kind. */
    if (idle == NULL) {
        return &limits->kinds[kind];
    }
    *idle = (struct event_limit){.of = of};
    return idle;
}

bool event_limits_take(struct event_limits *limits, enum event_kind kind, const char *node,
                       uint64_t now, uint64_t *left_out) {
    struct event_limit *limit =
        node[0] == '\0' ? &limits->kinds[kind] : find_limit(limits, kind, node, now);
    /* A token bucket kept as one instant: beyond 19 steps ahead, all 20 lines are used up. */
    if (nanos_sub(limit->full_at, now) > (EVENT_LIMIT_BURST - 1) * EVENT_LIMIT_STEP_NANOS) {
        limit->left_out++;
        return false;
    }
    limit->full_at = nanos_add(nanos_max(limit->full_at, now), EVENT_LIMIT_STEP_NANOS);
    *left_out = limit->left_out;
    limit->left_out = 0;
    return true;
}
