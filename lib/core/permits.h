/*
 * A semaphore of K permits is K locks, of which a request takes any one: permit i of the key "name"
 * is the lock of the key "name:i". No permit has two holders, so there are never more than K
 * holders; this module only helps to find a permit that is free.
 *
 * A node that cannot grant the permit asked for tells which permits are free there. After a try
 * that failed, the permit that is free at most nodes comes next. Nodes tell those who wait in the
 * queue of a permit that has come free, and reserve one for them (scripts/parts/permits.lua).
 */
#ifndef REDLOCK_CORE_PERMITS_H
#define REDLOCK_CORE_PERMITS_H

#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The free permits, as the nodes told them in one try. */
struct permits {
    uint32_t count;
    uint32_t offered; /* mask: the nodes that have told of a permit since, and reserve one */
    uint32_t free_at[REDLOCK_MAX_PERMITS]; /* masks: the nodes at which each permit is free */
};

struct permit_choice {
    uint32_t permit;
    bool is_promising; /* a quorum may grant the permit now, as far as is known */
};

/* Begins a try for one of `count` permits, with none of them told to be free. */
void permits_begin(struct permits *permits, uint32_t count);

/* Records that a permit is free at a node. */
void permits_record(struct permits *permits, uint32_t node, uint32_t permit);

/* Records that a node tells the waiter of a permit that has come free there. */
void permits_add_offer(struct permits *permits, uint32_t node, uint32_t permit);

/*
 * Returns whether the permit tried is to be asked for once more, under its token: nodes have told
 * of permits since they denied this one, and with those that granted it are a quorum. A node
 * reserves any permit for the waiter, so that none that was granted need be given up; without a
 * grant the permit that most nodes have told of is better.
 */
bool permits_is_offered(const struct round *round, uint32_t tried);

/* Returns the permit that most nodes know to be free, which may be too few; else `tried`. */
uint32_t permits_guess(const struct round *round, uint32_t tried);

/*
 * Returns the permit to try after `tried`, which the round did not get: the one that is free at
 * most nodes, drawn at random where there are several, so that competing requests do not meet
 * again. Nodes that have not answered, and nodes that granted `tried`, have told nothing about the
 * other permits, which are taken to be free there; so are those of nodes that told the waiter of
 * one. Returns `tried` for a round without permits.
 */
struct permit_choice permits_choose(const struct round *round, uint32_t tried, uint64_t *seed);

#endif
