/*
 * The tries of an acquisition: whether another one follows, after which delay, and why one failed.
 * Retries and time bound them. Permit retries, which go to another permit at once, use up no retry.
 */
#ifndef REDLOCK_CORE_TRIES_H
#define REDLOCK_CORE_TRIES_H

#include "core/lease_state.h"
#include "core/round.h"

/* Returns whether retries and time are left for another try. */
bool tries_may_go_on(const struct lease *lease, uint64_t now);

/* Returns whether all tries that the request allows were made, if it allows more than one. */
bool tries_are_used_up(const struct lease *lease);

/* Returns the longest delay before the next try, if there is one. */
uint64_t tries_longest_delay(const struct lease *lease, uint64_t now);

/* Draws the delay before the next try. Returns false if none follows, or it would be too late. */
bool tries_draw_delay(struct lease *lease, uint64_t now, uint64_t *delay);

/*
 * Returns why a try, by its round, did not acquire the lock: REDLOCK_EEXPIRED after a quorum;
 * REDLOCK_EACCESS if nodes that refuse the client could alone have prevented one; REDLOCK_EHELD if
 * nodes denied, and the failed nodes alone could not have prevented a quorum; otherwise
 * REDLOCK_ENOQUORUM.
 */
redlock_status tries_failure(const struct round *round);

#endif
