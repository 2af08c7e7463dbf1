/*
 * libredlock on any event loop, or without one. Part of the API of redlock.h, but not included by
 * it.
 *
 * A redlock_loop runs clients over one descriptor. A program with an event loop of any kind watches
 * redlock_loop_fd for reading, and calls redlock_loop_run(loop, 0) whenever it is readable:
 * redlock/uv.h, redlock/ev.h, redlock/glib.h and redlock/sdevent.h do this for their loops. A
 * program without a loop calls redlock_loop_run(loop, -1) again and again.
 *
 *     redlock_loop *loop = redlock_loop_pollable();
 *     redlock_client_create_on(loop, &options, &client, &error);
 *     while (!is_done) {
 *         redlock_loop_run(loop, -1);
 *     }
 *
 * Everything in redlock.h holds, with this loop in place of the event_base: callbacks run inside
 * redlock_loop_run, and nowhere else. A loop and its clients belong to one thread; several clients
 * may share a loop. Programs with libevent need none of this: redlock_client_create.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlock_loop redlock_loop; /* runs clients over one descriptor */

/*
 * Creates a loop, which holds three descriptors (epoll, timerfd, eventfd; all close-on-exec) and
 * memory of malloc. Returns NULL, with errno, on failure.
 */
REDLOCK_EXPORT redlock_loop *redlock_loop_pollable(void);

/*
 * Gives the loop up. It ends, and its descriptors are closed, when its last client has closed too;
 * until then it must be run, and an outer loop must go on watching its descriptor. So the simple
 * order is: close the clients, then, in or after the last on_closed, stop watching the descriptor
 * and free the loop. NULL is allowed.
 */
REDLOCK_EXPORT void redlock_loop_free(redlock_loop *loop);

/*
 * Creates a client as redlock_client_create does, on a loop, which must be run until on_closed.
 * Returns REDLOCK_EINVAL also in a fork() child of the process that made the loop.
 */
REDLOCK_EXPORT redlock_status redlock_client_create_on(redlock_loop *loop,
                                                       const redlock_options *options,
                                                       redlock_client **client,
                                                       redlock_error *error);

/*
 * Returns the descriptor to watch. It is readable, level-triggered, while redlock_loop_run has
 * something to do. Do not read it, and do not close it. -1 if loop is NULL.
 */
REDLOCK_EXPORT int redlock_loop_fd(const redlock_loop *loop);

/*
 * Waits up to `timeout_ms` (0: not at all; -1: without limit) until there is something to do, does
 * it, which runs callbacks, and returns. A signal ends the wait.
 *
 * Returns 0; or -1 with errno: EINVAL (loop is NULL, or the process is a fork() child of the one
 * that made it), EBUSY (called inside a callback: nothing is done until that returns).
 */
REDLOCK_EXPORT int redlock_loop_run(redlock_loop *loop, int timeout_ms);

/*
 * Makes the redlock_loop_run that waits, or else the next one, return. May be called from any
 * thread and from a signal handler, as long as the loop has not ended. Has no effect in a fork()
 * child.
 */
REDLOCK_EXPORT void redlock_loop_wake(redlock_loop *loop);

#ifdef __cplusplus
}
#endif

#endif
