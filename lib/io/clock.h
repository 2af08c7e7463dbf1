/*
 * The library's clock, read only here: CLOCK_BOOTTIME, which never jumps, and counts the time
 * during which the machine was suspended, as the servers' clocks do. (The wall clock only serves to
 * make a number that is probably larger than the last one.)
 */
#ifndef REDLOCK_IO_CLOCK_H
#define REDLOCK_IO_CLOCK_H

#include <stdint.h>

/* Returns nanoseconds since an arbitrary instant. */
uint64_t clock_now(void);

/*
 * Returns the reading of clock_now, for the log, on which no decision depends: the simulator
 * preempts nobody here, so that a world is the same with a log and without.
 */
uint64_t clock_glance(void);

/* Returns microseconds since 1970, as the wall clock shows them. */
uint64_t clock_wall_us(void);

/* Returns by how much the wall clock is ahead of clock_now, in nanoseconds. */
int64_t clock_wall_ahead(void);

#endif
