/* The locks of a client in a turn of the loop, and events that concern all of them at once. */
#ifndef REDLOCK_LOCK_TURN_H
#define REDLOCK_LOCK_TURN_H

#include "lock/locks.h"

#include <stdbool.h>

/*
 * Deals with as many locks of each queue as are in it at the beginning, TURN_LOCKS_MAX at the most;
 * of those that are overdue, TURN_OVERDUE_MAX. While the client closes, also closes up to
 * TURN_LOCKS_MAX locks. All callbacks of locks are called here and nowhere else.
 */
void turn_locks(struct locks *locks);

/* Returns whether locks wait for another turn. */
bool turn_has_more(const struct locks *locks);

/* Counts the deadlines of rounds from now: the commands of this turn have been written. */
void turn_sent(struct locks *locks);

/* Wakes all locks that wait for an instant: the loop was away, and its timers may be late. */
void turn_wake(struct locks *locks);

/* Renews the locks that could not be renewed, in the next turn: a node counts again. */
void turn_renew_now(struct locks *locks);

/* Has the locks whose first try is held back look whether it may begin now. */
void turn_start(struct locks *locks);

/* Has the locks that wait in the queue ask for their entries again: a server can push from now on.
 */
void turn_ask_again(struct locks *locks);

/* Tells all locks that the nodes of the client have changed. */
void turn_move(struct locks *locks);

#endif
