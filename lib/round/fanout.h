/*
 * Rounds of a lean fanout (redlock_fanout): a quorum of the nodes is asked for a lock, the others
 * only when that fails, or takes longer than its nodes usually do.
 */
#ifndef REDLOCK_ROUND_FANOUT_H
#define REDLOCK_ROUND_FANOUT_H

#include "io/loop.h"
#include "round/flight.h"

#include <stdbool.h>
#include <stdint.h>

struct fanout {
    struct flights *flights;
    struct timer timer; /* for the first of flights->hedged */
};

/* Begins without a round, for a client with any options. Returns false when out of memory. */
bool fanout_init(struct fanout *fanout, struct flights *flights);
void fanout_finish(struct fanout *fanout);

/*
 * Chooses, from `nodes`, those to send the command of an ACQUIRE to, and leaves the others out;
 * these become due when a quorum of all nodes would usually have answered, at the latest.
 */
uint32_t fanout_choose(struct fanout *fanout, struct flight *flight, uint32_t nodes);

/*
 * Takes a flight out of the queue of those that are due. Returns NULL when no flight is left whose
 * others are to be asked.
 */
struct flight *fanout_next(struct fanout *fanout);

#endif
