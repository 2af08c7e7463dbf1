#include "histogram.h"

#include <string.h>

#define SUB_BUCKETS ((size_t)1 << HISTOGRAM_SUB_BITS)

/* Returns the number of low bits of `value` that its bucket ignores. */
static unsigned shift_of(uint64_t value) {
    unsigned highest_bit = 63 - (unsigned)__builtin_clzll(value | 1);

    return highest_bit <= HISTOGRAM_SUB_BITS ? 0 : highest_bit - HISTOGRAM_SUB_BITS;
}

static size_t bucket_of(uint64_t value) {
    unsigned shift = shift_of(value);

    return shift * SUB_BUCKETS + (size_t)(value >> shift);
}

static uint64_t middle_of(size_t bucket) {
    size_t shift = bucket < 2 * SUB_BUCKETS ? 0 : bucket / SUB_BUCKETS - 1;
    uint64_t lowest = (uint64_t)(bucket - shift * SUB_BUCKETS) << shift;

    return lowest + (((uint64_t)1 << shift) >> 1);
}

void histogram_init(struct histogram *histogram) {
    memset(histogram, 0, sizeof(*histogram));
}

void histogram_record(struct histogram *histogram, uint64_t value) {
    size_t bucket = bucket_of(value);

    if (bucket >= HISTOGRAM_BUCKETS) {
        bucket = HISTOGRAM_BUCKETS - 1;
    }
    histogram->buckets[bucket]++;
    histogram->count++;
    if (value > histogram->max) {
        histogram->max = value;
    }
}

void histogram_add(struct histogram *histogram, const struct histogram *other) {
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        histogram->buckets[bucket] += other->buckets[bucket];
    }
    histogram->count += other->count;
    if (other->max > histogram->max) {
        histogram->max = other->max;
    }
}

uint64_t histogram_quantile(const struct histogram *histogram, double share) {
    double rank = share * (double)histogram->count;
    uint64_t passed = 0;

    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        passed += histogram->buckets[bucket];
        if (passed > 0 && (double)passed >= rank) {
            uint64_t value = middle_of(bucket);

            return value < histogram->max ? value : histogram->max;
        }
    }
    return histogram->max;
}
