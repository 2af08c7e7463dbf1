/* The locks of a client in a turn of the loop, and the events that concern all of them. */
#ifndef REDLOCK_LOCK_TURN_H
#define REDLOCK_LOCK_TURN_H

#include "lock/locks.h"

#include <stdbool.h>

/*
 * Handles the locks that are in each queue at the beginning: at most TURN_LOCKS_MAX of a queue, and
 * TURN_OVERDUE_MAX of the overdue ones. While the client closes, open locks are closed in place of
 * the ready ones that are fewer than that. All callbacks of locks are called here and nowhere else.
 */
void turn_locks(struct locks *locks);

/* Returns whether locks wait for another turn. */
bool turn_has_more(const struct locks *locks);

/* Starts the deadlines of this turn's rounds now: their commands have just been written. */
void turn_sent(struct locks *locks);

/* Wakes all locks that wait for an instant: the loop was away, so timers may be late. */
void turn_wake(struct locks *locks);

/* Makes the next turn renew the locks whose renewal failed: a node's votes count again. */
void turn_renew_now(struct locks *locks);

/* Makes the next turn begin the first tries that are held back, if they may begin now. */
void turn_start(struct locks *locks);

/*
 * Makes the next turn ask for queue entries again, and for watches that may have lapsed: the server
 * of `node`, a mask, can push from now on, and entries that it has from before are void.
 */
void turn_ask_again(struct locks *locks, uint32_t node);

/* Passes a change of the client's nodes on to all locks. */
void turn_move(struct locks *locks);

#endif
