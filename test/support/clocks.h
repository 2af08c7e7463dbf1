/*
 * The clocks of the test's own process, which a test may set ahead: clock_gettime, gettimeofday and
 * time of this module stand before those of libc, for the libraries too. A timeout is then an event
 * that the test brings about when all else has happened, on a machine of any speed. Servers have
 * clocks of their own, so that their keys live on.
 */
#ifndef REDLOCK_TEST_CLOCKS_H
#define REDLOCK_TEST_CLOCKS_H

#include <stdint.h>
#include <time.h>

/*
 * Sets all clocks but the wall clock ahead by `ms`: to the servers' clocks the wall clock stays
 * right. Timers that became due fire when the loop runs again. The library excuses one silence of a
 * node that ends with such a jump: see pass_until in harness.h.
 */
void pass_time(uint64_t ms);

/* Sets the wall clock ahead by `seconds`, in all. */
void set_wall_clock(time_t seconds);

/* Has all clocks stand still, but for pass_time, or go on from there. */
void stop_time(void);
void resume_time(void);

/* Suspends the machine for `seconds`, in all: the monotonic clock stands still meanwhile. */
void set_suspended(time_t seconds);

#endif
