/*
 * Holds many locks for a while, renewed by their watchdogs, and measures the cost for the client
 * and for the application that shares its loop. If requested, the application keeps the loop busy
 * during that time, or masters stop.
 */
#ifndef BENCH_HELD_H
#define BENCH_HELD_H

#include "outage.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct masters;

struct held_settings {
    struct masters *masters;
    const char *const *nodes; /* URIs of the masters, for the client */
    size_t locks;             /* number of locks, each on a key of its own */
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
    double duration_s;        /* time held, from the instant at which all are held */
    uint64_t busy_ms;         /* time for which the application blocks the loop once; 0: none */
    size_t stop;              /* number of masters to stop; 0: none */
    bool fenced;
};

struct held_result {
    uint64_t held;   /* number of locks at the end of the time held */
    uint64_t lost;   /* number of losses reported by on_lost until the end of the client, except for
                        its closing */
    uint64_t errors; /* number of acquisitions that failed */
    uint64_t left;   /* number of keys left at the masters that were not stopped, when the client is
                        gone */
    double seconds_to_acquire;
    double duration_s;         /* actual time held */
    double renewals_per_s;     /* at one master, as the next two */
    double script_calls_per_s; /* each of which may renew many locks */
    double script_us_per_s;    /* time of the script calls */
    double client_cores; /* cores used within duration_s, without the application's busy loop */
    double rss_mb;       /* resident memory at the end of the time held */
    double late_p50_ms;  /* lateness of a timer of the application: see loop_lag.h */
    double late_p99_ms;
    double late_max_ms;
    double late_work_ms; /* maximum CPU time before a late tick: loop_lag_work_ns */
    double busy_late_ms; /* maximum lateness of that timer that the benchmark itself caused */
    struct outage_result outage; /* result of the outage, if masters were stopped */
};

/*
 * Runs the benchmark and fills in *result. Returns -1 if there is no result, after a message on
 * stderr.
 */
int held_run(struct event_base *base, const struct held_settings *settings,
             struct held_result *result);

#endif
