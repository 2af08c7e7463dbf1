#include "base/histogram.h"

#define STEPS (UINT64_C(1) << HISTOGRAM_STEPS_LOG2)

void histogram_count(redlock_histogram *histogram) {
    histogram->count = 0;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        histogram->count += histogram->buckets[i];
    }
}

uint64_t redlock_histogram_bound_ns(size_t bucket) {
    if (bucket >= REDLOCK_HISTOGRAM_BUCKETS - 1) {
        return UINT64_MAX;
    }
    uint64_t steps = STEPS + bucket % STEPS + 1;
    return steps << (bucket / STEPS + HISTOGRAM_FIRST_LOG2 - HISTOGRAM_STEPS_LOG2);
}

/* Returns the rank of the duration at a quantile: 1 for the shortest, `count` for the longest. */
static uint64_t rank_of(uint64_t count, double quantile) {
    double rank = quantile * (double)count;
    if (!(rank > 1)) { /* also for NaN */
        return 1;
    }
    return rank < (double)count ? (uint64_t)rank + ((double)(uint64_t)rank < rank) : count;
}

uint64_t redlock_histogram_quantile_ns(const redlock_histogram *histogram, double quantile) {
    if (histogram == NULL || histogram->count == 0) {
        return 0;
    }
    uint64_t rank = rank_of(histogram->count, quantile);
    uint64_t counted = 0;
    size_t i = 0;
    while (i < REDLOCK_HISTOGRAM_BUCKETS - 1 && (counted += histogram->buckets[i]) < rank) {
        i++;
    }
    return redlock_histogram_bound_ns(i);
}

void redlock_histogram_merge(redlock_histogram *into, const redlock_histogram *from) {
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}
