/* Durations, counted in the log-linear buckets of redlock_histogram. */
#ifndef REDLOCK_BASE_HISTOGRAM_H
#define REDLOCK_BASE_HISTOGRAM_H

#include <redlock.h>
#include <stddef.h>
#include <stdint.h>

/* The buckets from a power of two to the next, and the power at which they begin: 1024 ns. */
#define HISTOGRAM_STEPS_LOG2 3
#define HISTOGRAM_FIRST_LOG2 10

/*
 * Returns the bucket of a duration. A bound belongs to the bucket below it, as with Prometheus. The
 * exponent of a floating point number and its next bits are the bucket: this takes half of the
 * instructions of a logarithm of integers.
 */
static inline size_t histogram_bucket(uint64_t nanos) {
    const union {
        double number;
        uint64_t bits;
    } before = {.number = (double)(int64_t)(nanos - 1)};
    const uint64_t bias = (UINT64_C(1023) + HISTOGRAM_FIRST_LOG2) << HISTOGRAM_STEPS_LOG2;
    uint64_t bucket = (before.bits >> (52 - HISTOGRAM_STEPS_LOG2)) - bias;
    if (__builtin_expect(bucket >= REDLOCK_HISTOGRAM_BUCKETS, 0)) {
        return nanos <= 1 << HISTOGRAM_FIRST_LOG2 ? 0 : REDLOCK_HISTOGRAM_BUCKETS - 1;
    }
    return bucket;
}

/* Counts a duration, in nanoseconds; the field `count` is left to histogram_count. */
static inline void histogram_record(redlock_histogram *histogram, uint64_t nanos) {
    histogram->sum_ns += nanos;
    histogram->buckets[histogram_bucket(nanos)]++;
}

/* Sets the field `count`, which nothing but a copy for the application needs. */
void histogram_count(redlock_histogram *histogram);

#endif
