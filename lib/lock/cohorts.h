/*
 * The cohorts of a client: its requests that wait for the same lock, and share its place in the
 * nodes' wait queues. One of them, the leader, waits there for all; and a lock that is released
 * goes to the next of the cohort by itself (core/handover.h; Dice, Marathe and Shavit, "Lock
 * Cohorting", PPoPP 2012). Permits, shares and locks that stay when they are released cannot go on
 * like that: their cohorts have several leaders at the same time, and each that acquires its lock
 * makes room for the next, so that thousands of requests are no more work for the nodes, and a
 * client that hangs delays others as little as one with a few.
 *
 * When the leader acquires the lock, the hand-offs are granted: to the requests that are waiting
 * then, at most max_local_handoffs of them, before the nodes pass the key on. A request that comes
 * later waits for the next acquisition. So a client keeps others waiting for no longer than its
 * hand-offs take. The first request that is left becomes the next leader when the holder leaves the
 * cohort, so that its request for a place can travel with the release (round/batches.h); its ticket
 * is of the time at which it came.
 */
#ifndef REDLOCK_LOCK_COHORTS_H
#define REDLOCK_LOCK_COHORTS_H

#include "base/pool.h"

#include <redlock.h>
#include <stdbool.h>
#include <sys/queue.h>

struct context;
struct cohort;
LIST_HEAD(cohort_list, cohort);

/* Power of two. */
#define COHORTS_LISTS 1024

struct cohorts {
    struct context *context;
    struct pool pool;
    struct cohort_list lists[COHORTS_LISTS];
};

void cohorts_init(struct cohorts *cohorts, struct context *context);
void cohorts_finish(struct cohorts *cohorts);

/*
 * Puts a new request in the cohort of its key. Returns whether it leads: it is to ask the nodes
 * now; otherwise it waits.
 */
bool cohorts_join(struct cohorts *cohorts, redlock_lock *lock);

/* Records that a leader has acquired the lock. Returns the next leader, or NULL. */
redlock_lock *cohorts_acquired(redlock_lock *lock);

/* Returns whether a lock of a cohort can be handed over: then its release serves the next leader.
 */
bool cohorts_can_hand_over(const redlock_lock *lock);

/* Returns the next that a holder is to hand its lock over to, or NULL. */
redlock_lock *cohorts_next(const redlock_lock *lock);

/* Makes the next the holder, which must exist; the holder of before is in no cohort any more. */
void cohorts_hand_over(redlock_lock *lock);

/* Takes a lock out of its cohort, if any. Returns the next leader, or NULL. */
redlock_lock *cohorts_leave(redlock_lock *lock);

#endif
