/*
 * A timeout for what happens outside of the process: a condition is looked at again and again, with
 * a pause of 2 ms between two looks, up to a limit.
 */
#ifndef REDLOCK_TEST_POLL_TIMEOUT_H
#define REDLOCK_TEST_POLL_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

struct poll_timeout {
    uint64_t began_ns; /* instant of the first look; 0: none so far */
};

/* Pauses until the next look. Returns false, without a pause, `limit_ms` after the first look. */
bool poll_timeout_wait(struct poll_timeout *timeout, uint64_t limit_ms);

#endif
