/*
 * Time inside the library: instants of one clock, and durations, in nanoseconds (uint64_t). All
 * arithmetic saturates, so that REDLOCK_FOREVER and other large values need no special cases: an
 * overflow gives NANOS_NEVER, a negative result gives 0.
 */
#ifndef REDLOCK_BASE_NANOS_H
#define REDLOCK_BASE_NANOS_H

#include <stdint.h>

#define NANOS_NEVER UINT64_MAX
#define NANOS_PER_MS UINT64_C(1000000)
#define NANOS_PER_US UINT64_C(1000)

static inline uint64_t nanos_add(uint64_t a, uint64_t b) {
    return a > NANOS_NEVER - b ? NANOS_NEVER : a + b;
}

static inline uint64_t nanos_sub(uint64_t a, uint64_t b) {
    return a < b ? 0 : a - b;
}

static inline uint64_t nanos_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t nanos_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint64_t nanos_from_ms(uint64_t ms) {
    return ms > NANOS_NEVER / NANOS_PER_MS ? NANOS_NEVER : ms * NANOS_PER_MS;
}

/* Rounds down, so that a validity is never reported longer than it is. */
static inline uint64_t nanos_to_ms(uint64_t nanos) {
    return nanos / NANOS_PER_MS;
}

#endif
