/* The payment of debts: releases that are owed to a node. */
#ifndef REDLOCK_ROUND_PAYMENT_H
#define REDLOCK_ROUND_PAYMENT_H

#include "node/node.h"
#include "round/send.h"

/*
 * Sends a node the releases that are owed to it, the oldest first, as many as half of its free room
 * carries. A release that fails again is owed again; node_paid is called for each outcome.
 */
void payment_send(struct rounds *rounds, struct node *node);

#endif
