/*
 * The commands of a lock: the rounds of its lease's updates, with their keys, tokens and tickets,
 * and the releases of tries that were given up. The latest round's votes become the lock's events.
 */
#ifndef REDLOCK_LOCK_OUTBOX_H
#define REDLOCK_LOCK_OUTBOX_H

#include "core/lease.h"
#include "lock/locks.h"

#include <stdbool.h>
#include <stdint.h>

struct key;

/*
 * Draws the ticket of a request that waits in the queue: the masters' time at which the request was
 * made. Drawn once, unless no master's clock is known: then the ticket comes from our own clock,
 * until a later call finds one.
 */
void outbox_draw_ticket(redlock_lock *lock);

/* Sends the operation of an update, if it has one. Without memory, LOCK_NO_MEMORY is raised. */
void outbox_send(redlock_lock *lock, const struct lease_update *update, uint64_t now);

/*
 * Sets the key at the nodes of `update->top_up`, for its remaining time if that is 1 ms or more.
 * The lease awaits the room of nodes that have none, or for which other top-ups wait.
 */
void outbox_top_up(redlock_lock *lock, const struct lease_update *update, uint64_t now);

/*
 * Releases the key and the token of a try that is given up at `nodes`, a mask of nodes that may
 * hold the key, or a queue entry under `entry_ticket` (0: none).
 */
void outbox_undo(redlock_lock *lock, struct key *key, const char *token, uint64_t entry_ticket,
                 uint32_t nodes, uint64_t now);

/* Gives up the queue entries of a permit whose key stays at the nodes. */
void outbox_leave_queue(redlock_lock *lock, uint64_t now);

/* Returns the ticket under which the lock's token may have queue entries; 0: it has none. */
uint64_t outbox_entry_ticket(const redlock_lock *lock);

/*
 * Drops the latest round of a lock in HELD, once all nodes have voted and only their votes are
 * still needed, for the report: a lock may be held for long.
 */
void outbox_rest(redlock_lock *lock);

#endif
