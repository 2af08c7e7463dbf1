/* News of a lock: the application's callbacks, called in the lock's turn and nowhere else. */
#ifndef REDLOCK_LOCK_NOTIFICATIONS_H
#define REDLOCK_LOCK_NOTIFICATIONS_H

#include "core/lease.h"
#include "lock/lock_state.h"
#include "lock/locks.h"

#include <stdbool.h>

/* Records the news of an update, of which there are some, to be told in the lock's next turn. */
void notifications_add(redlock_lock *lock, const struct lease_update *update);

/*
 * Tells the news that are due. Returns true when the handle has ended: its last callback has
 * returned. A callback may do anything with the lock and the client.
 */
bool notifications_deliver(redlock_lock *lock);

/*
 * Counts the end of a release, emits its event and calls the application. notifications_deliver
 * does so where nobody has before: the release of a lock that is handed over is told ahead of its
 * end.
 */
void notifications_deliver_release(redlock_lock *lock, redlock_status status);

#endif
