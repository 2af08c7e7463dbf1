/*
 * The one clock of the library: CLOCK_BOOTTIME, which counts the time that the machine was
 * suspended, as the servers' clocks do, and never jumps. The only place where it is read. (What the
 * wall clock shows is good for a number that is probably larger than the last one, and no more.)
 */
#ifndef REDLOCK_IO_CLOCK_H
#define REDLOCK_IO_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary instant. */
uint64_t clock_now(void);

/* Microseconds since 1970, by whatever the wall clock shows. */
uint64_t clock_wall_us(void);

#endif
