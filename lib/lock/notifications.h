/* The notifications of a lock: the application's callbacks, called in the lock's turn alone. */
#ifndef REDLOCK_LOCK_NOTIFICATIONS_H
#define REDLOCK_LOCK_NOTIFICATIONS_H

#include "core/lease.h"
#include "lock/lock_state.h"
#include "lock/locks.h"

#include <stdbool.h>

/* Records the notifications of an update, at least one, for delivery in the lock's next turn. */
void notifications_add(redlock_lock *lock, const struct lease_update *update);

/*
 * Delivers the notifications that are due. Returns true when the handle has ended: its last
 * callback has returned. A callback may do anything with the lock and the client.
 */
bool notifications_deliver(redlock_lock *lock);

/*
 * Counts the end of a release, emits its event and calls the application, at most once for a lock.
 * Called ahead of notifications_deliver for a lock that is handed over: its release is reported
 * before its end.
 */
void notifications_deliver_release(redlock_lock *lock, redlock_status status);

#endif
