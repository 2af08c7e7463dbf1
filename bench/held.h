/*
 * Holds many locks for a while, renewed by their watchdogs, and measures what that costs the
 * client and the application that shares its loop; on demand while the application keeps the loop
 * busy, or while masters are gone.
 */
#ifndef BENCH_HELD_H
#define BENCH_HELD_H

#include "outage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct masters;

struct held_settings {
    struct masters *masters;
    size_t locks; /* each on a key of its own */
    uint64_t ttl_ms;
    double duration_s; /* from when all are held */
    uint64_t busy_ms;  /* how long the application keeps the loop busy, once; 0: not at all */
    size_t stop;       /* masters to stop; 0: none */
    bool fenced;
};

struct held_result {
    uint64_t held;   /* at the end of the time held */
    uint64_t lost;   /* told by on_lost, to the end of the client, except for its closing */
    uint64_t errors; /* acquisitions that failed */
    uint64_t left;   /* keys at the masters that were not stopped, when the client is gone */
    double seconds_to_acquire;
    double duration_s; /* as it was */
    double renewals_per_s;
    double client_cores; /* within duration_s, without the application's own being busy */
    double rss_mb;       /* at the end of the time held */
    double late_p50_ms;  /* a timer of the application: see pulse.h */
    double late_p99_ms;
    double late_max_ms;
    double late_work_ms;         /* of the client itself, the most: see pulse_work_ns */
    double busy_late_ms;         /* its worst lateness by what the benchmark itself held up */
    struct outage_result outage; /* where masters were stopped */
};

/* Fills in *result. -1, after a message on stderr, when it came to no result. */
int held_run(struct event_base *base, const struct held_settings *settings,
             struct held_result *result);

#endif
