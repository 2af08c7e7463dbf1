/*
 * Patience with what happens outside of the process: a condition is looked at again and again, with
 * a pause of 2 ms between two looks, up to a limit.
 */
#ifndef REDLOCK_TEST_PATIENCE_H
#define REDLOCK_TEST_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patience {
    uint64_t began_ns; /* instant of the first look; 0: none so far */
};

/* Pauses until the next look. Returns false, without a pause, `limit_ms` after the first look. */
bool patience_lasts(struct patience *patience, uint64_t limit_ms);

#endif
