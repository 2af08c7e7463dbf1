/* The counters of a client and its nodes, as the structs of the API. */
#ifndef REDLOCK_STATS_H
#define REDLOCK_STATS_H

#include "lock/counts.h"
#include "node/node.h"

#include <redlock.h>

/*
 * Fill in a struct of the application, of stats->size bytes. Return REDLOCK_EINVAL if `stats` is
 * NULL or too small for its `size`, or REDLOCK_OK.
 */
redlock_status stats_read(const struct counts *counts, redlock_stats *stats);
redlock_status stats_read_node(const struct node *node, redlock_node_stats *stats);

#endif
