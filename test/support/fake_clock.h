/*
 * A wall clock with an error, for a server: fake_clock.c is preloaded into the server, and reads
 * the error from a file that both sides have mapped.
 */
#ifndef REDLOCK_TEST_FAKE_CLOCK_H
#define REDLOCK_TEST_FAKE_CLOCK_H

#include <stdint.h>

/* The environment variable of the server that holds the path of the file. */
#define FAKE_CLOCK_FILE "REDLOCK_FAKE_CLOCK"

struct fake_clock {
    int64_t ahead_ns; /* lead of the clock at `since_ns` */
    int64_t since_ns; /* instant from which the clock runs too fast */
    int64_t ppm;      /* excess of its rate, in millionths */
};

#endif
