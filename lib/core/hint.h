/*
 * Hints that the key may have changed at a node, for a lease that waits in the queue, or whose key
 * is watched: the lease asks all nodes at once instead of at its next poll or renewal. A hint
 * decides nothing. Where hints follow each other the pauses between two such rounds double, up to a
 * bound, so that no server can keep a client busy by hints.
 *
 * A hint that comes in such a pause is followed when the pause is over. A holder asks all nodes
 * then; a waiter has the key looked at again, since it may long be another's by then: the next hint
 * finds the pause over, and the key free.
 */
#ifndef REDLOCK_CORE_HINT_H
#define REDLOCK_CORE_HINT_H

#include "core/backoff.h"
#include "core/lease_state.h"

/* The least pause behind a round before one that follows a hint, and the longest. */
#define HINT_PAUSE (10 * NANOS_PER_MS)
#define HINT_PAUSE_MAX (250 * NANOS_PER_MS)

/* Notes that a round is sent now, which asks all nodes; `hints` such in a row followed hints. */
static inline void hint_asked(struct lease *lease, uint64_t now, unsigned hints) {
    lease->hints = (uint16_t)hints;
    lease->is_hinted = false;
    lease->asked_at = now;
}

/* Returns the instant from which a hint is followed at once. */
static inline uint64_t hint_pause_end(const struct lease *lease) {
    return nanos_add(lease->asked_at, backoff_bound(HINT_PAUSE, HINT_PAUSE_MAX, lease->hints));
}

/* Returns when something is due that was planned for `at`: earlier after a hint. */
static inline uint64_t hint_due(const struct lease *lease, uint64_t at) {
    return lease->is_hinted ? nanos_min(at, hint_pause_end(lease)) : at;
}

#endif
