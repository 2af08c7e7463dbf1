/* The network of a distant world: long round trips, even or uneven, with jitter and late messages.
 */
#ifndef REDLOCK_SIM_DISTANCE_H
#define REDLOCK_SIM_DISTANCE_H

#include "network.h"
#include "rng.h"

#include <stdbool.h>
#include <stdint.h>

struct distance {
    uint64_t near, far; /* round trips without jitter; ns; equal: the network is even */
    uint64_t jitter;    /* maximum for each way; ns */
    unsigned late;      /* per mille of the messages that are late */
    bool has_far_nodes; /* whether a node is near, or far, for all clients */
};

struct distance distance_draw(struct rng *rng);

/* Returns the longest round trip, in ns: with a late message each way. */
uint64_t distance_round_trip(const struct distance *distance);

/* Sets the paths of so many processes to all servers. */
void distance_set(const struct distance *distance, struct network *network, unsigned processes);

#endif
