/* One lock: carries out the decisions of its lease, and deals with its events. */
#ifndef REDLOCK_LOCK_LOCK_H
#define REDLOCK_LOCK_LOCK_H

#include "core/lease.h"
#include "lock/locks.h"

#include <stdint.h>

/* Carries out an update of the lease, whose state was `before` when the event came. */
void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now);

/*
 * Deals with the events of a lock, and tells its news; the lock may have ended afterwards. While
 * the client closes, a lock that is not closed yet is closed first.
 */
void lock_turn(redlock_lock *lock);

/* Sets the timer to the instant at which the lease is to be woken. */
void lock_set_timer(redlock_lock *lock);

#endif
