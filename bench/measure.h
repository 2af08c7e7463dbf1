/*
 * Runs one load and measures it: waits until every node is connected, warms up, measures for a
 * while with a constant number of locks in flight, waits for the last ones to end, and closes.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "load.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;

struct measure_settings {
    const char *const *nodes; /* URIs */
    size_t node_count;
    size_t in_flight;
    double duration_s;
};

struct latency {
    double p50_us;
    double p99_us;
    double max_us;
};

struct measure_result {
    double duration_s; /* actual time */
    uint64_t cycles;   /* number of locks acquired and released within duration_s */
    uint64_t errors; /* number of failed acquisitions and releases, those of the warm-up included */
    double cpu_us;   /* CPU time of this process, user and system, within duration_s */
    struct latency acquire;
    struct latency release;
};

/*
 * Runs the measurement and fills in *result. Returns -1, after a message on stderr, when there is
 * no result.
 */
int measure_run(struct event_base *base, const struct load_kind *kind,
                const struct measure_settings *settings, struct measure_result *result);

#endif
