/* Bounds of fences and of the counters that they come from. */
#ifndef REDLOCK_WIRE_FENCE_H
#define REDLOCK_WIRE_FENCE_H

#include <stdint.h>

/* The largest fence: Lua counts exactly up to 2^53. */
#define FENCE_MAX ((UINT64_C(1) << 53) - 1)

/*
 * The number of fences that an acquisition takes. They end at the counter; the acquirer has the
 * first one, and each request that its client hands the lock on to without a message, the next.
 * FENCE_RANGE of wire/script.h is the same number.
 */
#define FENCES_IN_RANGE 64

/*
 * Returns the first fence of the range that ends at a counter; 0: none. A counter below the length
 * of a range is a lie, and stays as it is: a fence is above 0.
 */
static inline uint64_t fence_first(uint64_t counter) {
    return counter < FENCES_IN_RANGE ? counter : counter - (FENCES_IN_RANGE - 1);
}

/* The largest value taken from a clock: it leaves 2^34 (17 billion) acquisitions to come. */
#define FENCE_FROM_CLOCK_MAX (FENCE_MAX + 1 - (UINT64_C(1) << 40))

/*
 * Counters follow the clock: they start from the time in microseconds, and no key is passed on by
 * its nodes 15,625 times a second (1,000,000 / FENCES_IN_RANGE) for long. A counter far ahead of
 * the nodes' clocks is therefore corrupt, or a lie. Up to FENCE_SLACK ahead of the masters' time,
 * which a minority of the nodes cannot set, others are raised to it; up to FENCE_MARGIN further
 * only if there is no quorum without it; beyond that it is an error. The margin is there because
 * clients estimate that time differently: a value to which one client raised a sound node must not
 * be an error for another. At the very end of the margin it may be one, until the other's estimate
 * has caught up. No bound that moves with the clocks excludes this, because a client cannot
 * distinguish such a node from one that lies.
 *
 * Scripts accept a starting value of up to FENCE_AHEAD ahead of their server's clock
 * (scripts/parts/counters.lua).
 */
#define FENCE_DAY UINT64_C(86400000000)
#define FENCE_SLACK (2 * FENCE_DAY)
#define FENCE_MARGIN FENCE_DAY

/*
 * Returns the value that lets a lost counter restart above its old values: the client's wall clock
 * in microseconds, at least 1 (a fence of 0 means none), at most FENCE_FROM_CLOCK_MAX. Without the
 * bound, a single machine whose clock is centuries ahead would use up a key's numbers for all.
 */
static inline uint64_t fence_from_clock(uint64_t wall_us) {
    return wall_us == 0 ? 1 : wall_us < FENCE_FROM_CLOCK_MAX ? wall_us : FENCE_FROM_CLOCK_MAX;
}

#endif
