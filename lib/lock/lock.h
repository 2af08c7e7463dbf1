/* One lock: carries out the decisions of its lease, and deals with its events. */
#ifndef REDLOCK_LOCK_LOCK_H
#define REDLOCK_LOCK_LOCK_H

#include "core/lease.h"
#include "lock/locks.h"

#include <stdint.h>

/* Carries out an update of the lease, whose state was `before` when the event came. */
void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now);

/* Begins the lease of a new lock: it asks the nodes, or waits in its cohort after others of ours.
 */
void lock_begin(redlock_lock *lock, uint64_t now);

/*
 * Has the lock's next turn hand it over to the next of its cohort, or else release it. Returns
 * false if nobody is next, or the lock is not fit for that.
 */
bool lock_part(redlock_lock *lock, uint64_t now);

/*
 * Returns whether the closing client has released a lock by itself, or is releasing it: its holder
 * may not know yet.
 */
bool lock_is_closed_for_holder(const redlock_lock *lock);

/* Has on_ended called with the outcome of such a release, which may be over by now. */
void lock_notify_release(redlock_lock *lock);

/*
 * Deals with the events of a lock, and tells its news; the lock may have ended afterwards. While
 * the client closes, a lock that is not closed yet is closed first.
 */
void lock_turn(redlock_lock *lock);

/* Sets the alarm to the instant at which the lease is to be woken. */
void lock_set_alarm(redlock_lock *lock);

#endif
