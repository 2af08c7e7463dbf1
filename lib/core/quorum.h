/*
 * Majorities: any two quorums of the same list of nodes share at least one node. Quorums of two
 * lists need not: so while a list is being changed to another one, both count, and a quorum of each
 * is needed ("In Search of an Understandable Consensus Algorithm", section 6, joint consensus).
 */
#ifndef REDLOCK_CORE_QUORUM_H
#define REDLOCK_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* Masks of nodes, a bit each. */
struct quorum_lists {
    uint32_t now;
    uint32_t next; /* what it is being changed to; 0: it is not being changed */
};

/* Of all configured nodes, whether reachable or not. */
static inline uint32_t quorum_of(uint32_t nodes) {
    return nodes / 2 + 1;
}

/* Whether so many nodes are against that the rest is no quorum, however it votes. */
static inline bool quorum_is_blocked(uint32_t nodes, uint32_t against) {
    return nodes - against < quorum_of(nodes);
}

#endif
