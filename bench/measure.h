/*
 * Runs one load in one thread and measures it: waits until every node is connected and all threads
 * of the crew are ready, warms up, measures for a while, waits for the last locks to end, and
 * closes. A given number of cycles is measured from the first one, so that two such runs differ
 * only by their cycles.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "cycles.h"
#include "histogram.h"
#include "load.h"

#include <redlock/mt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The phases before and after the stretch that is measured. */
#define READY_POLL_S 0.005
#define READY_LIMIT_S 5.0
#define WARM_UP_S 0.2
#define DRAIN_LIMIT_S 5.0

struct crew;
struct event_base;
struct servers;

struct measure_settings {
    const char *const *nodes; /* URIs */
    size_t node_count;
    size_t in_flight; /* concurrent locks of each thread */
    double rate;      /* cycles due per second; 0: closed loop. See cycles.h */
    uint64_t hold_us; /* time to hold each lock */
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
    bool fenced;
    redlock_mode mode;
    const struct outer_kind *loop; /* NULL: libevent */
    redlock_mt *mt;                /* the client of all threads (shared.h); NULL: one for each */
    bool blocks;                   /* with `mt`: whether the threads block */
    const struct keys *keys;       /* NULL: each slot has a key of its own */
    uint64_t cycles;               /* cycles to run, without warm-up; 0: `duration_s` counts */
    double duration_s;
    const struct servers *servers; /* masters; NULL: others, of unknown CPU time */

    struct crew *crew;
    size_t thread; /* number of this thread in the crew */
};

struct measure_result {
    double duration_s; /* actual time */
    double cycles_per_s;
    uint64_t cycles; /* number of locks acquired and released within duration_s */
    uint64_t errors; /* number of failed acquisitions and releases, including the warm-up */
    struct cycles_failures failures; /* of these, the acquisitions */
    uint64_t backlog;                /* number of cycles due but not begun at the end */
    double cpu_us;            /* CPU time of the thread, user and system, within duration_s */
    double masters_cpu_us;    /* CPU time of the masters; NAN: not known */
    struct histogram acquire; /* latencies in ns */
    struct histogram release;
};

/* Fills in what was counted, and prints the first error. */
void measure_conclude(struct measure_result *result, const struct cycles_counts *counts);

/*
 * Runs the measurement and fills in *result. Returns -1 if there is no result, after a message on
 * stderr.
 */
int measure_run(struct event_base *base, const struct load_kind *kind,
                const struct measure_settings *settings, struct measure_result *result);

#endif
