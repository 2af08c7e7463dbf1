/* The grants that nodes push to locks of a client that wait in the queue. */
#ifndef REDLOCK_LOCK_PUSHES_H
#define REDLOCK_LOCK_PUSHES_H

#include "lock/locks.h"

#include <stddef.h>

struct node;

/*
 * Handles a message of a node: passes the grant to the lock with its token, whose round counts it.
 * Gives a key that no lock of ours waits for any more back to the node, for the next in the queue.
 */
void pushes_take(struct locks *locks, struct node *node, const char *text, size_t length);

#endif
