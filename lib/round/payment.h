/* Releases that nodes are owed, on their way. */
#ifndef REDLOCK_ROUND_PAYMENT_H
#define REDLOCK_ROUND_PAYMENT_H

#include "node/node.h"
#include "round/send.h"

/*
 * Sends a node the releases that it is owed, the oldest first, as many as half of its free room
 * carries. A release that fails again is owed again; node_paid is told of each outcome.
 */
void payment_send(struct rounds *rounds, struct node *node);

#endif
