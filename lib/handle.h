/* The creation of a handle; the calls on a handle are declared in redlock.h. */
#ifndef REDLOCK_HANDLE_H
#define REDLOCK_HANDLE_H

#include "lock/locks.h"

#include <redlock.h>

/*
 * Carries out redlock_acquire, once context_check has found that the client may begin requests.
 * `handle` may be NULL. After a failure, whose sentence is in the context, no handle exists.
 */
redlock_status handle_acquire(struct locks *locks, const redlock_request *request,
                              redlock_cb *on_acquired, void *arg, redlock_lock **handle);

#endif
