/*
 * Notifications that the key may have changed at a node, for a lease that waits in the queue, or
 * whose key is watched: the lease asks all nodes at once instead of at its next poll or renewal. A
 * change notification decides nothing. Where change notifications follow each other the pauses
 * between two such rounds double, up to a bound, so that no server can keep a client busy by change
 * notifications.
 *
 * A change notification that comes in such a pause is followed when the pause is over. A holder
 * asks all nodes then; a waiter has the key looked at again, since it may long be another's by
 * then: the next change notification finds the pause over, and the key free.
 */
#ifndef REDLOCK_CORE_CHANGE_H
#define REDLOCK_CORE_CHANGE_H

#include "core/backoff.h"
#include "core/lease_state.h"

/* The least pause behind a round before one that follows a change notification, and the longest. */
#define CHANGE_PAUSE (10 * NANOS_PER_MS)
#define CHANGE_PAUSE_MAX (250 * NANOS_PER_MS)

/*
 * Records that a round is sent now, which asks all nodes; `changes` such in a row followed change
 * notifications.
 */
static inline void change_round_sent(struct lease *lease, uint64_t now, unsigned changes) {
    lease->change_rounds = (uint16_t)changes;
    lease->may_have_changed = false;
    lease->asked_at = now;
}

/* Returns the instant from which a change notification is followed at once. */
static inline uint64_t change_pause_end(const struct lease *lease) {
    return nanos_add(lease->asked_at,
                     backoff_bound(CHANGE_PAUSE, CHANGE_PAUSE_MAX, lease->change_rounds));
}

/* Returns when something is due that was planned for `at`: earlier after a change notification. */
static inline uint64_t change_due(const struct lease *lease, uint64_t at) {
    return lease->may_have_changed ? nanos_min(at, change_pause_end(lease)) : at;
}

#endif
