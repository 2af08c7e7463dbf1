/* The releases of tokens, and those that are pending at a node. */
#ifndef REDLOCK_ROUND_RELEASE_H
#define REDLOCK_ROUND_RELEASE_H

#include "node/node.h"
#include "round/rounds.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes a release that there was no memory to send a pending release of `nodes`, a mask. */
void release_defer(const struct rounds *rounds, const struct release *release, uint32_t nodes);

/*
 * Sends the release of a token to `nodes`, a mask. A release that does not get through becomes a
 * pending release of the node, until the key has expired. Returns false when out of memory; the
 * release is then pending at all of `nodes`.
 */
bool release_send(struct rounds *rounds, struct operation_listener listener,
                  const struct release *release, uint32_t nodes, uint64_t now);

/*
 * Sends a node its pending releases, the oldest first, as many as half of its free room can carry.
 * A release that fails again is pending again; node_retried is called for each outcome.
 */
void release_retry(struct rounds *rounds, struct node *node);

#endif
