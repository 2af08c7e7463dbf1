/* One lock: carries out the decisions of its lease, and handles its events. */
#ifndef REDLOCK_LOCK_LOCK_H
#define REDLOCK_LOCK_LOCK_H

#include "core/lease.h"
#include "lock/locks.h"

#include <stdint.h>

/* Carries out an update of the lease, whose state was `before` when the event came. */
void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now);

/* Returns whether the next request need not wait: the nodes are known and have room. */
bool lock_may_begin(struct locks *locks);

/*
 * Begins the lease of a new lock: asks the nodes, waits until they are known and have room, or
 * waits in its cohort for another request of this client.
 */
void lock_begin(redlock_lock *lock, uint64_t now);

/*
 * Makes the lock's next turn hand the lock over to the next waiter of its cohort; that turn
 * releases the lock if the handover is no longer possible. Returns false, and changes nothing, if
 * no handover is possible now.
 */
bool lock_part(redlock_lock *lock, uint64_t now);

/*
 * Returns whether the closing client has released, or is releasing, a lock that was acquired: its
 * holder may not know yet.
 */
bool lock_is_closed_for_holder(const redlock_lock *lock);

/* Reports the outcome of such a release to on_ended, in a later turn, even if it is over by now. */
void lock_notify_release(redlock_lock *lock);

/*
 * Handles the events of a lock, and delivers its notifications. The lock may have been freed
 * afterwards. While the client closes, closes the lock first, unless it is closed already.
 */
void lock_turn(redlock_lock *lock);

/* Sends the lock's top-up that waits for room at `node`, a mask of one node: there is room now. */
void lock_has_room(redlock_lock *lock, uint32_t node);

/* Sets the alarm to the instant at which the lease must be woken. */
void lock_set_alarm(redlock_lock *lock);

#endif
