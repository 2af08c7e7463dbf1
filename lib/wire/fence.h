/* Bounds of fences, and of the counters behind them. */
#ifndef REDLOCK_WIRE_FENCE_H
#define REDLOCK_WIRE_FENCE_H

#include <stdint.h>

/* The largest fence: whole numbers up to 2^53 are exact in Lua, and can be counted by one. */
#define FENCE_MAX ((UINT64_C(1) << 53) - 1)

/* The largest hint: a trillion acquisitions can come after it. */
#define FENCE_FROM_CLOCK_MAX (FENCE_MAX + 1 - (UINT64_C(1) << 40))

/*
 * Counters follow the clock: a hint is the time in microseconds, and a key is not acquired a
 * million times a second. So a counter that is far ahead of the nodes' clocks was ruined, or is a
 * lie. Nobody is raised by the word of one node to more than FENCE_SLACK ahead of the clocks that a
 * minority of the nodes cannot set, and an answer further ahead by FENCE_MARGIN does not count at
 * all. Clients know the clocks more or less well: the margin keeps what one client has raised from
 * being beyond the bound of another one. Scripts take a hint up to FENCE_AHEAD ahead of their
 * server's clock (scripts/parts/counters.lua).
 */
#define FENCE_DAY UINT64_C(86400000000)
#define FENCE_SLACK (2 * FENCE_DAY)
#define FENCE_MARGIN FENCE_DAY

/*
 * Returns the hint that lets lost counters begin above their past: the client's wall clock in
 * microseconds, from 1 (a fence of 0 stands for none) to FENCE_FROM_CLOCK_MAX. Unbounded, the clock
 * of one machine that is centuries ahead would use up a key's numbers for everybody.
 */
static inline uint64_t fence_from_clock(uint64_t wall_us) {
    return wall_us == 0 ? 1 : wall_us < FENCE_FROM_CLOCK_MAX ? wall_us : FENCE_FROM_CLOCK_MAX;
}

#endif
