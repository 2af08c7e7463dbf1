/* Counts durations in the log-linear buckets of redlock_histogram. */
#ifndef REDLOCK_BASE_HISTOGRAM_H
#define REDLOCK_BASE_HISTOGRAM_H

#include <redlock.h>
#include <stddef.h>
#include <stdint.h>

/* Base-2 logarithms of the number of buckets per power of two, and of the first bound: 1024 ns. */
#define HISTOGRAM_STEPS_LOG2 3
#define HISTOGRAM_FIRST_LOG2 10

/*
 * Returns the bucket of a duration. Upper bounds are inclusive, as in Prometheus. The exponent and
 * the leading mantissa bits of the duration as a double are the bucket: this takes half of the
 * instructions of an integer logarithm.
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

/* Counts a duration. The field `count` is left to histogram_count. */
static inline void histogram_record(redlock_histogram *histogram, uint64_t nanos) {
    histogram->sum_ns += nanos;
    histogram->buckets[histogram_bucket(nanos)]++;
}

/* Sets the field `count`, which only copies for the application need. */
void histogram_count(redlock_histogram *histogram);

#endif
