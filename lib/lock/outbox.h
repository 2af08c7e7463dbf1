/*
 * What a lock sends: the rounds of its lease's updates, with their keys, tokens and tickets, and
 * the releases of tries that were given up. The votes of its latest round become its events.
 */
#ifndef REDLOCK_LOCK_OUTBOX_H
#define REDLOCK_LOCK_OUTBOX_H

#include "core/lease.h"
#include "lock/locks.h"

#include <stdbool.h>
#include <stdint.h>

struct key;

/*
 * Draws the ticket of a request that waits in the queue, once: the masters' time at which it was
 * made. Without a reading of their clocks our own serves, until a try that finds one.
 */
void outbox_draw_ticket(redlock_lock *lock);

/* Begins the round of an update. Returns false when out of memory. */
bool outbox_begin_round(redlock_lock *lock, const struct lease_update *update, uint64_t now);

/* Sets the key at the nodes that lack it, for the rest of its time; in vain below 1 ms. */
void outbox_top_up(redlock_lock *lock, const struct lease_update *update, uint64_t now);

/*
 * Releases a try that is given up, of the given key and token, at the nodes of a mask, which may
 * hold the key, or an entry for it under the ticket `placed`.
 */
void outbox_undo(redlock_lock *lock, struct key *key, const char *token, uint64_t entry_ticket,
                 uint32_t nodes, uint64_t now);

/* Gives up the entry of a permit that stays at the nodes, where the place may be left. */
void outbox_leave_queue(redlock_lock *lock, uint64_t now);

/* Returns the ticket under which the lock's token has entries in the queue; 0: it has none. */
uint64_t outbox_entry_ticket(const redlock_lock *lock);

/*
 * Lets go of the latest round of a lock in HELD, once all nodes have voted and nothing but their
 * votes, for the report, is of use any more: a lock may be held for long.
 */
void outbox_rest(redlock_lock *lock);

#endif
