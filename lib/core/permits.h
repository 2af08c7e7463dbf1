/*
 * A semaphore of K permits is K locks, of which a request takes any one: permit i of the key "name"
 * is the lock of the key "name:i". No permit has two holders, so there are never more than K
 * holders. This module only helps to find a permit that is free.
 *
 * A node that cannot grant the requested permit reports which permits are free there. After a
 * failed try, the permit that is free at most nodes comes next. Nodes notify the waiters in the
 * queue of a permit that has become free, and reserve one for them (scripts/parts/permits.lua).
 */
#ifndef REDLOCK_CORE_PERMITS_H
#define REDLOCK_CORE_PERMITS_H

#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The free permits that nodes have reported in one try. */
struct permits {
    uint32_t count;
    uint32_t offered; /* mask: the nodes that have offered a permit since, and reserve one */
    uint32_t free_at[REDLOCK_MAX_PERMITS]; /* for each permit, the mask of the nodes at which it is
                                              free */
};

struct permit_choice {
    uint32_t permit;
    bool is_promising; /* as far as is known, a quorum may grant the permit now */
};

/* Begins a try for one of `count` permits, none of which is reported free yet. */
void permits_begin(struct permits *permits, uint32_t count);

/* Records that a permit is free at a node. */
void permits_record(struct permits *permits, uint32_t node, uint32_t permit);

/* Records that a node offers the waiter a permit that has become free there. */
void permits_add_offer(struct permits *permits, uint32_t node, uint32_t permit);

/*
 * Returns whether to ask again for the permit that was tried, under its token: nodes that denied it
 * have offered permits since, and together with those that granted it they are a quorum. A node
 * reserves any permit for the waiter, so no grant need be given up. Without a grant, the permit
 * that most nodes have offered is better.
 */
bool permits_is_offered(const struct round *round, uint32_t tried);

/*
 * Returns the permit to try after `tried`, which the round did not get: the one that is free at
 * most nodes, drawn at random if there are several, so that competing requests do not meet again.
 * Nodes that granted `tried`, or that have offered a permit, are taken to have any permit free,
 * because they have not reported which; so are nodes that have not answered, except in a QUEUE.
 * Returns `tried` for a round without permits, and if a QUEUE that only entered finds it free.
 */
struct permit_choice permits_choose(const struct round *round, uint32_t tried, uint64_t *seed);

#endif
