/*
 * The only place that reads a clock. Decisions use CLOCK_BOOTTIME, which never jumps, and which,
 * like the servers' clocks, counts the time during which the machine was suspended. The wall clock
 * only serves for numbers that should grow, and for comparison with clock_now.
 */
#ifndef REDLOCK_IO_CLOCK_H
#define REDLOCK_IO_CLOCK_H

#include <stdint.h>

/* Returns the nanoseconds since an arbitrary instant. */
uint64_t clock_now(void);

/*
 * Returns the same as clock_now, for the log only: no decision may depend on it. The simulator
 * preempts nobody here, so that a world runs the same with and without a log.
 */
uint64_t clock_glance(void);

/* Returns the wall clock in microseconds since 1970. */
uint64_t clock_wall_us(void);

/* Returns the wall clock minus clock_now, in nanoseconds. */
int64_t clock_wall_ahead(void);

#endif
