/*
 * libredlock for threads: locks that any thread may take. Not included by redlock.h. See
 * lib/doc/threads.md.
 *
 * A redlock_mt is a client on a thread of the library's own, which all threads share:
 *
 *     redlock_mt_create(&options, &mt, &error);
 *     redlock_mt_acquire(mt, &request, &lock, &error);
 *     ...
 *     redlock_mt_release(lock, &error);
 *     redlock_mt_close(mt, NULL);
 *     redlock_mt_free(mt);
 *
 * Locks and requests of all kinds work as redlock.h says, but for this:
 *
 *  - Threads. Every function may be called from any thread, at the same time as any other, also
 *    with the same arguments. But no call may begin with a lock once it is released, nor with a
 *    redlock_mt once it is freed; calls with a lock that are under way then end as usual.
 *  - Blocking calls return when the request has ended; redlock_request.wait_ms is the deadline.
 *    They go on after a signal, and are no cancellation points. redlock_mt_cancel and
 *    redlock_mt_close end them.
 *  - Callbacks run on the library's thread, one at a time, and may run before the call that began
 *    the request has returned. They must not wait: while one runs, no lock of this redlock_mt is
 *    renewed or granted. Inside them, and inside the hooks of the options, blocking calls are
 *    refused with REDLOCK_EINVAL.
 *  - Hooks of the options (log, trace, allocator) are called on the library's thread only. The
 *    allocator serves the client; what this header adds to it is of malloc.
 *  - Signals. The library's thread blocks all of them. redlock_mt_cancel and the functions that
 *    read a lock may be called in a signal handler, no other.
 *  - After fork(), calls in the child are refused with REDLOCK_EINVAL, the validity is 0, and
 *    redlock_mt_free does nothing. The child may create a redlock_mt of its own.
 *  - `error` may be NULL; otherwise, unless the status is REDLOCK_OK, it receives the status and a
 *    sentence, such as that of redlock_explain.
 */
#ifndef REDLOCK_MT_H
#define REDLOCK_MT_H

#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlock_mt redlock_mt;           /* a client for all threads */
typedef struct redlock_mt_lock redlock_mt_lock; /* the handle of one lock */

/*
 * Creates a client with these options, and its thread, which is named "redlock". Statuses as of
 * redlock_client_create; REDLOCK_ESYSTEM also if there is no thread or descriptor left.
 */
REDLOCK_EXPORT redlock_status redlock_mt_create(const redlock_options *options, redlock_mt **mt,
                                                redlock_error *error);

/*
 * Closes the client as redlock_client_drain does: requests end with REDLOCK_ECLOSED, which wakes
 * the threads that they block, and locks are released. Returns when that is done and the thread has
 * ended, after close_timeout_ms at the latest if no callback waits. Later calls are refused with
 * REDLOCK_ECLOSED. A second close waits for the first.
 *
 * `unreleased` may be NULL; otherwise it receives the number of releases that were not confirmed
 * (redlock_drained_cb). Refused with REDLOCK_EINVAL inside a callback.
 */
REDLOCK_EXPORT redlock_status redlock_mt_close(redlock_mt *mt, uint64_t *unreleased);

/*
 * Frees `mt`, which it closes if need be, so not inside a callback. Threads that make calls with
 * `mt` must have ended; handles that are not released yet stay valid. NULL is allowed.
 */
REDLOCK_EXPORT void redlock_mt_free(redlock_mt *mt);

/* ---------------------------------------------------------------------------------------- locks */

/*
 * Acquires as redlock_acquire does, and waits until that has ended. *lock is the caller's until
 * redlock_mt_release; unless the status is REDLOCK_OK, it is NULL. request->on_lost must be NULL:
 * see redlock_mt_on_lost.
 */
REDLOCK_EXPORT redlock_status redlock_mt_acquire(redlock_mt *mt, const redlock_request *request,
                                                 redlock_mt_lock **lock, redlock_error *error);

/* Extends a held lock as redlock_extend does, and waits until that has ended. */
REDLOCK_EXPORT redlock_status redlock_mt_extend(redlock_mt_lock *lock, uint64_t ttl_ms,
                                                redlock_error *error);

/*
 * Releases as redlock_release does, waits until that has ended, and consumes the handle, which may
 * be in any state. Of a lock that is being acquired, the acquisition is canceled; the status is
 * then REDLOCK_ECANCELED. Of a request that has failed, it is the status of that failure; after
 * redlock_mt_close, which releases all locks, REDLOCK_ECLOSED.
 *
 * Refused with REDLOCK_EINVAL inside a callback, or after fork(); only then the handle is not
 * consumed.
 */
REDLOCK_EXPORT redlock_status redlock_mt_release(redlock_mt_lock *lock, redlock_error *error);

/*
 * Reports on the library's thread how a request ended, or that a lock is lost. `why` is one
 * sentence, valid during the call, and "" with REDLOCK_OK.
 */
typedef void redlock_mt_cb(redlock_mt_lock *lock, redlock_status status, const char *why,
                           void *arg);

/*
 * Begins what redlock_mt_acquire does, and does not wait. If the status is REDLOCK_OK,
 * `on_acquired` (may be NULL) is called once, also with refusals of the client, such as
 * REDLOCK_EBUSY; otherwise it is not called.
 *
 * *lock is set before the callback can run. It must be released once, whatever becomes of the
 * request. `lock` may be NULL if there is a callback, which gets the handle too.
 */
REDLOCK_EXPORT redlock_status redlock_mt_begin_acquire(redlock_mt *mt,
                                                       const redlock_request *request,
                                                       redlock_mt_cb *on_acquired, void *arg,
                                                       redlock_mt_lock **lock,
                                                       redlock_error *error);

/*
 * Waits until the acquisition of the lock has ended, and its callback has returned. Returns its
 * status, at once if it has ended before.
 */
REDLOCK_EXPORT redlock_status redlock_mt_wait(redlock_mt_lock *lock, redlock_error *error);

/*
 * Cancels the acquisition of the lock, which ends with REDLOCK_ECANCELED unless it has ended
 * already: then nothing happens. Does not wait.
 */
REDLOCK_EXPORT redlock_status redlock_mt_cancel(redlock_mt_lock *lock);

/*
 * Begins what redlock_mt_extend does, and does not wait. If the status is REDLOCK_OK, `on_extended`
 * (may be NULL) is called once.
 */
REDLOCK_EXPORT redlock_status redlock_mt_begin_extend(redlock_mt_lock *lock, uint64_t ttl_ms,
                                                      redlock_mt_cb *on_extended, void *arg,
                                                      redlock_error *error);

/*
 * Begins what redlock_mt_release does, and does not wait. Needs no memory. If the status is
 * REDLOCK_OK, `on_released` (may be NULL) is called once, after the callbacks of all other requests
 * of the handle, which it may still read. After redlock_mt_close the handle is consumed without a
 * callback, and the status is REDLOCK_ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_mt_begin_release(redlock_mt_lock *lock,
                                                       redlock_mt_cb *on_released, void *arg);

/*
 * Has `on_lost` (required) called, once, when the lock is lost, with the statuses of
 * redlock_request.on_lost; soon, if it is lost already. Once redlock_mt_release has returned, or
 * on_released was called, it is neither called nor running.
 *
 * Refused with REDLOCK_EBUSY if the lock has such a callback.
 */
REDLOCK_EXPORT redlock_status redlock_mt_on_lost(redlock_mt_lock *lock, redlock_mt_cb *on_lost,
                                                 void *arg);

/* ----------------------------------------------------------------------------------- in passing */

/*
 * Returns the validity as redlock_validity_ms does; 0 from the calls of
 * redlock_mt_release and redlock_mt_close on. Reads two numbers and the clock.
 */
REDLOCK_EXPORT uint64_t redlock_mt_validity_ms(const redlock_mt_lock *lock);

/*
 * Returns REDLOCK_EBUSY while the lock is being acquired, then REDLOCK_OK until its loss is
 * reported, then the status of the failure or loss. The validity may have ended before.
 */
REDLOCK_EXPORT redlock_status redlock_mt_state(const redlock_mt_lock *lock);

/* Returns the fence of the lock as redlock_fence does; 0 before its acquisition. */
REDLOCK_EXPORT uint64_t redlock_mt_fence(const redlock_mt_lock *lock);

/*
 * Returns the lock's key as redlock_key does, valid as long as the handle. Of a permit that is not
 * acquired yet, the key of the semaphore.
 */
REDLOCK_EXPORT const char *redlock_mt_key(const redlock_mt_lock *lock, size_t *length);

/* ----------------------------------------------------------------------------------- more calls */

/*
 * Asks who holds a key as redlock_inspect does, and waits until `on_view` (required), which runs on
 * the library's thread, has returned. Returns the status that it got.
 */
REDLOCK_EXPORT redlock_status redlock_mt_inspect(redlock_mt *mt, const char *key, size_t key_length,
                                                 redlock_inspect_cb *on_view, void *arg,
                                                 redlock_error *error);

/*
 * Begins what redlock_mt_inspect does, and does not wait. If the status is REDLOCK_OK, `on_view` is
 * called once; with a refusal of the client, `view` has no nodes.
 */
REDLOCK_EXPORT redlock_status redlock_mt_begin_inspect(redlock_mt *mt, const char *key,
                                                       size_t key_length,
                                                       redlock_inspect_cb *on_view, void *arg,
                                                       redlock_error *error);

/* Work on the client itself: see redlock_mt_run. */
typedef void redlock_mt_work_cb(redlock_client *client, void *arg);

/*
 * Calls `work` on the library's thread and waits until it has returned: for all other calls of
 * redlock.h, such as statistics. It must not close the client.
 */
REDLOCK_EXPORT redlock_status redlock_mt_run(redlock_mt *mt, redlock_mt_work_cb *work, void *arg,
                                             redlock_error *error);

#ifdef __cplusplus
}
#endif

#endif
