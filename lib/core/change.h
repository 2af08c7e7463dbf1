/*
 * Change notifications: the key may have changed at a node. A lease that waits in the queue, or
 * whose key is watched, then asks all nodes at once instead of at its next poll or renewal. A
 * notification decides nothing by itself. If notifications follow each other, the pauses between
 * these rounds double, up to a bound, so that no server can keep a client busy.
 *
 * A notification that arrives in such a pause takes effect when the pause is over. A holder asks
 * all nodes then. A waiter has the nodes watch the key again, because another client may have taken
 * it long since: the next notification finds the pause over and the key free.
 */
#ifndef REDLOCK_CORE_CHANGE_H
#define REDLOCK_CORE_CHANGE_H

#include "core/backoff.h"
#include "core/lease_state.h"

/* The bounds of the pause between a round and the next one that follows a change notification. */
#define CHANGE_PAUSE (10 * NANOS_PER_MS)
#define CHANGE_PAUSE_MAX (250 * NANOS_PER_MS)

/* Records a number of rounds in a row that followed change notifications. */
static inline void change_count_rounds(struct lease *lease, unsigned rounds) {
    /* The pause stops growing long before. */
    lease->change_rounds = (uint8_t)nanos_min(rounds, UINT8_MAX);
}

/*
 * Records that a round that asks all nodes is sent now. `changes` is the number of rounds in a row,
 * this one included, that followed change notifications.
 */
static inline void change_round_sent(struct lease *lease, uint64_t now, unsigned changes) {
    change_count_rounds(lease, changes);
    lease->may_have_changed = false;
    lease->asked_at = now;
}

/* Returns the instant from which a change notification takes effect at once. */
static inline uint64_t change_pause_end(const struct lease *lease) {
    /* The pause doubles with each round in a row that followed a change notification. */
    return nanos_add(lease->asked_at,
                     backoff_bound(CHANGE_PAUSE, CHANGE_PAUSE_MAX, lease->change_rounds));
}

/* Returns when something planned for `at` is due: earlier after a change notification. */
static inline uint64_t change_due(const struct lease *lease, uint64_t at) {
    return lease->may_have_changed ? nanos_min(at, change_pause_end(lease)) : at;
}

#endif
