/*
 * A wall clock that is wrong, for a server: fake_clock.c is loaded into the server before all else,
 * and reads the error of the clock from a file that both sides have mapped.
 */
#ifndef REDLOCK_TEST_FAKE_CLOCK_H
#define REDLOCK_TEST_FAKE_CLOCK_H

#include <stdint.h>

/* The variable in the server's environment with the path of the file. */
#define FAKE_CLOCK_FILE "REDLOCK_FAKE_CLOCK"

struct fake_clock {
    int64_t ahead_ns; /* the clock's lead ... */
    int64_t since_ns; /* ... at this instant, from which on the clock runs ... */
    int64_t ppm;      /* ... too fast, by this many millionths */
};

#endif
