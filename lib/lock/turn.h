/* The locks of a client in a turn of the loop, and what concerns all of them at once. */
#ifndef REDLOCK_LOCK_TURN_H
#define REDLOCK_LOCK_TURN_H

#include "lock/locks.h"

#include <stdbool.h>

/*
 * The most locks of each queue that one turn deals with: some milliseconds of work, after which the
 * loop sees to the timers and sockets of the application. The rest waits for its next iteration.
 */
#define TURN_LOCKS_MAX 1024

/*
 * Deals with locks of both queues; locks that become ready meanwhile stay so. While the client
 * closes, closes as many of its locks. All callbacks of locks are called here and nowhere else.
 */
void turn_locks(struct locks *locks);

/* Whether locks wait for another turn. */
bool turn_has_more(const struct locks *locks);

/* Counts the deadlines of rounds from now: the commands of this turn have been written. */
void turn_sent(struct locks *locks);

/* Has all locks look at the clock: the loop was away, and its timers may have stood still. */
void turn_wake(struct locks *locks);

/* Renews the locks that could not be renewed: a node has come up. */
void turn_hurry(struct locks *locks);

/* Tells all locks that the nodes of the client have changed. */
void turn_move(struct locks *locks);

#endif
