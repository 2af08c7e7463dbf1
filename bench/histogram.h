/*
 * A histogram of latencies, log-linear: exact below 256, above that 128 buckets for each power of
 * two, so that a quantile is off by less than 0.4 %. Its size is fixed; recording never allocates.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Values of 2^40 (18 minutes in ns) and above count in the last bucket. */
#define HISTOGRAM_SUB_BITS 7
#define HISTOGRAM_VALUE_BITS 40
#define HISTOGRAM_BUCKETS                                                                          \
    ((size_t)(HISTOGRAM_VALUE_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_init(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t value);

/* Adds all values of another histogram. */
void histogram_add(struct histogram *histogram, const struct histogram *other);

/*
 * Returns the value that `share` (0 to 1) of the recorded values do not exceed; 0 if there are
 * none.
 */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

#endif
