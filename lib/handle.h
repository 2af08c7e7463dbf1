/* The beginning of a handle; its other calls are redlock.h's. */
#ifndef REDLOCK_HANDLE_H
#define REDLOCK_HANDLE_H

#include "lock/locks.h"

#include <redlock.h>

/* Carries out redlock_acquire, on a client that may begin something: context_check. */
redlock_status handle_acquire(struct locks *locks, const redlock_request *request,
                              redlock_cb *on_acquired, void *arg, redlock_lock **handle);

#endif
