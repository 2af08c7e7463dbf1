/* How a call reports its end: to a callback, or to the thread that it blocks. */
#ifndef REDLOCK_THREADS_LISTENER_H
#define REDLOCK_THREADS_LISTENER_H

#include "io/latch.h"

#include <redlock.h>
#include <redlock/mt.h>

/* On the stack of a thread that waits. */
struct answer {
    redlock_status status;
    redlock_error *error; /* may be NULL */
    struct latch latch;   /* opened when the fields above are set */
};

/* One of the two, or none. */
struct listener {
    redlock_mt_cb *call;
    void *arg; /* of `call` */
    struct answer *answer;
};

/* Gives the answer, and wakes its thread. The answer may be gone afterwards. */
void answer_give(struct answer *answer, redlock_status status, const char *why);

/* Waits for the answer, and returns its status. */
redlock_status answer_await(struct answer *answer);

/* Reports the end of a call on `lock`, and touches neither afterwards. */
void listener_report(const struct listener *listener, redlock_mt_lock *lock, redlock_status status,
                     const char *why);

#endif
