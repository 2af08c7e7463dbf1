/*
 * The clocks of the test's own process, which a test may advance: clock_gettime, gettimeofday and
 * time of this module replace those of libc, for the libraries too. A timeout is then an event that
 * the test triggers after everything else has happened, on a machine of any speed. Servers have
 * clocks of their own, so their keys live on.
 */
#ifndef REDLOCK_TEST_CLOCKS_H
#define REDLOCK_TEST_CLOCKS_H

#include <stdint.h>
#include <time.h>

/*
 * Advances all clocks but the wall clock, which stays in step with the servers' clocks, by `ms`.
 * Timers that became due fire when the loop runs again. The library tolerates one silence of a node
 * that ends with such a jump: see pass_until in harness.h.
 */
void pass_time(uint64_t ms);

/* Sets the wall clock ahead by `seconds` in total. */
void set_wall_clock(time_t seconds);

/* Stop all clocks, so that only pass_time advances them; let them run again. */
void stop_time(void);
void resume_time(void);

/* Simulates `seconds` of suspension in total: the monotonic clock does not count them. */
void set_suspended(time_t seconds);

#endif
