/*
 * The cohorts of a client. A cohort is the requests of one client that wait for the same lock and
 * share one entry in the nodes' wait queues. Its leader waits there for all of them, and a lock
 * that is released goes straight to the next waiter of the cohort (core/handover.h; Dice, Marathe
 * and Shavit, "Lock Cohorting", PPoPP 2012).
 *
 * When the leader acquires the lock, hand-offs are granted to the requests that wait at that time,
 * to max_local_handoffs of them at most; after these the nodes pass the key on. Requests that come
 * later wait for the next acquisition. So a client delays others for no longer than its hand-offs
 * take. When the holder leaves the cohort, the first waiter becomes the leader: its QUEUE can
 * travel with the release (round/rounds.h), and its ticket is from the time of its arrival.
 *
 * Permits, shares, and locks that stay after their release cannot be handed over. In their cohorts
 * each leader that acquires its lock makes room for the next; of permits and shares there are
 * several leaders. So thousands of requests cost the nodes no more than a few do, and a client that
 * hangs with thousands delays others no longer than one with a few.
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
 * Adds a new request to the cohort of its key. Returns true if the request must ask the nodes now,
 * as a leader or, without memory, outside any cohort; false if it must wait.
 */
bool cohorts_join(struct cohorts *cohorts, redlock_lock *lock);

/* Records that a leader has acquired the lock. Returns the next leader, or NULL. */
redlock_lock *cohorts_acquired(redlock_lock *lock);

/*
 * Returns whether a lock can be handed over within its cohort. The release of such a lock also
 * serves the next leader.
 */
bool cohorts_can_hand_over(const redlock_lock *lock);

/* Returns the waiter that a holder must hand its lock over to, or NULL. */
redlock_lock *cohorts_next(const redlock_lock *lock);

/*
 * Returns a request that asks the nodes for the cohort of `lock`, which is itself if it is in none;
 * NULL: one of the cohort has the key.
 */
const redlock_lock *cohorts_leader(const redlock_lock *lock);

/* Makes cohorts_next, which must exist, the holder; the old holder leaves the cohort. */
void cohorts_hand_over(redlock_lock *lock);

/* Removes a lock from its cohort, if any. Returns the next leader, or NULL. */
redlock_lock *cohorts_leave(redlock_lock *lock);

#endif
