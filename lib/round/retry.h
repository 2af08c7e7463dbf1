/* Sends a node's pending releases again. */
#ifndef REDLOCK_ROUND_RETRY_H
#define REDLOCK_ROUND_RETRY_H

#include "node/node.h"
#include "round/send.h"

/*
 * Sends a node its pending releases, the oldest first, as many as half of its free room can carry.
 * A release that fails again is pending again; node_retried is called for each outcome.
 */
void retry_send(struct rounds *rounds, struct node *node);

#endif
