/*
 * A semaphore of K permits is K locks, of which a request takes any one: permit i of the key "name"
 * is the lock of the key "name:i". No permit has two holders, so there are never more than K; what
 * is said here only helps to find one that is free.
 *
 * A node that cannot grant the permit that was asked for tells which are free there. When the try
 * has failed, the permit that is free at most nodes comes next.
 */
#ifndef REDLOCK_CORE_PERMITS_H
#define REDLOCK_CORE_PERMITS_H

#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* What the nodes said in one try. */
struct permits {
    uint32_t count;
    uint32_t free_at[REDLOCK_MAX_PERMITS]; /* masks: the nodes at which each is free */
};

struct permit_choice {
    uint32_t permit;
    bool is_promising; /* as far as it is known, a quorum may grant it now */
};

void permits_begin(struct permits *permits, uint32_t count);

/* The permit is free at the node. */
void permits_note(struct permits *permits, uint32_t node, uint32_t permit);

/*
 * Which permit to try after `tried`, which the round did not get: one that is free at most nodes,
 * any of several, so that those who compete do not meet again. A node that has not answered, and
 * one that granted what was tried, have not said what else is free: it is taken to be. Of a round
 * that is not about permits: `tried`.
 */
struct permit_choice permits_choose(const struct round *round, uint32_t tried, uint64_t *seed);

#endif
