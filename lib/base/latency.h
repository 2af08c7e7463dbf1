/*
 * The usual time of an answer, from those that came: smoothed, and its variation (RFC 6298, section
 * 2).
 */
#ifndef REDLOCK_BASE_LATENCY_H
#define REDLOCK_BASE_LATENCY_H

#include <stdint.h>

/* In nanoseconds; all zeros before the first answer. */
struct latency {
    uint64_t smoothed;
    uint64_t variation;
};

/* Counts the time of an answer in. */
static inline void latency_note(struct latency *latency, uint64_t nanos) {
    if (latency->smoothed == 0) {
        *latency = (struct latency){.smoothed = nanos, .variation = nanos / 2};
        return;
    }
    uint64_t smoothed = latency->smoothed;
    uint64_t off = nanos > smoothed ? nanos - smoothed : smoothed - nanos;
    latency->variation += off / 4 - latency->variation / 4;
    latency->smoothed += nanos / 8 - smoothed / 8;
}

/* Returns a time that few answers take; 0 before the first answer. */
static inline uint64_t latency_bound(const struct latency *latency) {
    return latency->smoothed + 4 * latency->variation;
}

#endif
