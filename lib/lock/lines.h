/*
 * The lines of a client: its requests that wait for the same lock. One of them, the contender,
 * stands in line at the nodes for all; and a lock that is released goes to the next of the line by
 * itself (core/handover.h; Dice, Marathe and Shavit, "Lock Cohorting", PPoPP 2012). Permits, shares
 * and locks that stay when they are released cannot go on like that: of these requests a few
 * contend at the same time, and each that acquires its lock makes room for the next, so that
 * thousands of them are no more work for the nodes, and a client that hangs delays others as little
 * as one with a few.
 *
 * When the contender acquires the lock, a gate closes over the requests that are waiting then: at
 * most max_local_handoffs of them are served before the nodes pass the key on. Who comes later
 * waits for the next gate. So no client keeps others waiting for longer than its gate takes. The
 * first of those who wait becomes the next contender when the holder leaves the line, so that its
 * request for an entry can travel with the release (round/batches.h); its ticket is of the time at
 * which it came.
 */
#ifndef REDLOCK_LOCK_LINES_H
#define REDLOCK_LOCK_LINES_H

#include "base/pool.h"

#include <redlock.h>
#include <stdbool.h>
#include <sys/queue.h>

struct context;
struct line;
LIST_HEAD(line_list, line);

/* Power of two. */
#define LINES_LISTS 1024

struct lines {
    struct context *context;
    struct pool pool;
    struct line_list lists[LINES_LISTS];
};

void lines_init(struct lines *lines, struct context *context);
void lines_finish(struct lines *lines);

/*
 * Puts a new request in the line for its key. Returns whether it is to contend for the key now;
 * otherwise it waits.
 */
bool lines_join(struct lines *lines, redlock_lock *lock);

/* Notes that a contender has acquired the lock. Returns the next contender, or NULL. */
redlock_lock *lines_acquired(redlock_lock *lock);

/* Returns whether a lock in line can be handed over: then its release serves the next contender. */
bool lines_can_hand_over(const redlock_lock *lock);

/* Returns the next of the gate that a holder is to hand its lock over to, or NULL. */
redlock_lock *lines_next(const redlock_lock *lock);

/* Makes the next the holder, which must exist; the holder of before is in no line any more. */
void lines_hand_over(redlock_lock *lock);

/* Takes a lock out of its line, if any. Returns the next contender, or NULL. */
redlock_lock *lines_leave(redlock_lock *lock);

#endif
