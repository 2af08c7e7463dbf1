/* Majorities: any two quorums of the same nodes share at least one node. */
#ifndef REDLOCK_CORE_QUORUM_H
#define REDLOCK_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* Of all configured nodes, whether reachable or not. */
static inline uint32_t quorum_of(uint32_t nodes) {
    return nodes / 2 + 1;
}

/* Whether so many nodes are against that the rest is no quorum, however it votes. */
static inline bool quorum_is_blocked(uint32_t nodes, uint32_t against) {
    return nodes - against < quorum_of(nodes);
}

#endif
