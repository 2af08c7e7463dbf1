/* Grants that nodes push to the locks of a client that wait in the queue. */
#ifndef REDLOCK_LOCK_PUSHES_H
#define REDLOCK_LOCK_PUSHES_H

#include "lock/locks.h"

#include <stddef.h>

struct node;

/*
 * Takes a message of a node: hands the grant to the lock with its token, whose round counts it. A
 * key that no lock of ours waits for any more is given back to the node, for the next in the queue.
 */
void pushes_take(struct locks *locks, struct node *node, const char *text, size_t length);

#endif
