/*
 * A wall clock that is wrong, for a server: fake_clock.c is loaded into it before all else, and
 * reads what to make of the time from a file that both sides have mapped.
 */
#ifndef REDLOCK_TEST_FAKE_CLOCK_H
#define REDLOCK_TEST_FAKE_CLOCK_H

#include <stdint.h>

/* In the server's environment: the path of the file. */
#define FAKE_CLOCK_FILE "REDLOCK_FAKE_CLOCK"

struct fake_clock {
    int64_t ahead_ns; /* by how much it is wrong ... */
    int64_t since_ns; /* ... at this instant, and after that it runs ... */
    int64_t ppm;      /* ... so many millionths too fast */
};

#endif
