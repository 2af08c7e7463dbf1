/*
 * Hints that the key may have changed at a node, for a lease that waits in line, or whose key is
 * watched: the lease asks all nodes at once instead of at its next poll or renewal. A hint decides
 * nothing. Where hints follow each other the pauses between two such rounds double, up to a bound,
 * so that no server can keep a client busy by hints.
 */
#ifndef REDLOCK_CORE_HINT_H
#define REDLOCK_CORE_HINT_H

#include "core/backoff.h"
#include "core/lease_state.h"

/* The least pause behind a round before one that follows a hint, and the longest. */
#define HINT_PAUSE (10 * NANOS_PER_MS)
#define HINT_PAUSE_MAX (250 * NANOS_PER_MS)

/* Notes that a round is sent now, which asks all nodes. */
static inline void hint_asked(struct lease *lease, uint64_t now) {
    lease->hints = (uint16_t)(lease->is_hinted ? lease->hints + 1 : 0);
    lease->is_hinted = false;
    lease->asked_at = now;
}

/* Returns when the next round is due that was planned for `at`: earlier after a hint. */
static inline uint64_t hint_due(const struct lease *lease, uint64_t at) {
    uint64_t pause = backoff_bound(HINT_PAUSE, HINT_PAUSE_MAX, lease->hints);
    return lease->is_hinted ? nanos_min(at, nanos_add(lease->asked_at, pause)) : at;
}

#endif
