/* A timeout for conditions outside the process: they are checked every 2 ms, up to a limit. */
#ifndef REDLOCK_TEST_POLL_TIMEOUT_H
#define REDLOCK_TEST_POLL_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

struct poll_timeout {
    uint64_t began_ns; /* instant of the first check; 0: none yet */
};

/* Pauses until the next check. Returns false, without a pause, `limit_ms` after the first check. */
bool poll_timeout_wait(struct poll_timeout *timeout, uint64_t limit_ms);

#endif
