/*
 * Majorities: any two quorums of one list of nodes share at least one node. Quorums of two
 * different lists need not, so while a list is changed to another one, a quorum of each is needed
 * ("In Search of an Understandable Consensus Algorithm", section 6, joint consensus).
 */
#ifndef REDLOCK_CORE_QUORUM_H
#define REDLOCK_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* Two lists of nodes, as masks with one bit for each node. */
struct quorum_lists {
    uint32_t now;
    uint32_t next; /* the list that `now` is being changed to; 0: no change is under way */
};

/* Returns the size of a quorum of `nodes` configured nodes, reachable or not. */
static inline uint32_t quorum_of(uint32_t nodes) {
    return nodes / 2 + 1;
}

/* Returns whether `votes` votes are a quorum of a list of `size` nodes. */
static inline bool quorum_is_reached(uint32_t size, uint32_t votes) {
    return votes >= quorum_of(size);
}

/* Returns whether, with `against` nodes against, the rest cannot be a quorum. */
static inline bool quorum_is_blocked(uint32_t size, uint32_t against) {
    return size - against < quorum_of(size);
}

/* Returns whether `nodes` include a quorum of `list`; both are masks. An empty list needs none. */
static inline bool quorum_is_met(uint32_t list, uint32_t nodes) {
    return list == 0 || quorum_is_reached((uint32_t)__builtin_popcount(list),
                                          (uint32_t)__builtin_popcount(list & nodes));
}

#endif
