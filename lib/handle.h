/* The creation of handles, and their mirror; the calls on a handle are declared in redlock.h. */
#ifndef REDLOCK_HANDLE_H
#define REDLOCK_HANDLE_H

#include "lock/locks.h"

#include <redlock.h>

/*
 * Carries out redlock_acquire, after context_check has returned REDLOCK_OK. `handle` may be NULL.
 * After a failure there is no handle, and context->refusal has the error.
 */
redlock_status handle_acquire(struct locks *locks, const redlock_request *request,
                              redlock_cb *on_acquired, void *arg, redlock_lock **handle);

/* Mirrors the locks of a client from now on; it has none yet. */
void client_mirror(redlock_client *client, const struct mirror *mirror);

#endif
