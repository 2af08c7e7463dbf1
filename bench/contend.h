/*
 * Lets many contenders, in one or more processes, compete for few keys, and measures the handovers:
 * how often, how fair, how fast, and with how many commands.
 */
#ifndef BENCH_CONTEND_H
#define BENCH_CONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

struct contend_settings {
    const char *const *nodes; /* URIs for address_parse */
    size_t node_count;
    size_t clients; /* number of contenders, spread evenly over the processes and the keys */
    size_t processes;
    size_t keys;
    uint64_t hold_us;
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* 0: it follows the answers of each node */
    bool fenced;
    bool polls;
    double duration_s;
};

/* A number is NAN if the run had too few acquisitions for it. */
struct contend_result {
    uint64_t acquisitions; /* within the time measured */
    uint64_t errors;       /* failed requests, losses, overlaps; also outside that time */
    double wait_p50_us;    /* from the request to its callback */
    double wait_p99_us;
    double wait_max_us;
    double wait_ideal_us;  /* at this rate, if contenders were served in order */
    double fairness;       /* acquisitions of the contender served most by those of the one served
                              least; NAN: one got none */
    double commands;       /* commands that one node was sent for each acquisition */
    double handoff_us;     /* median from a release to the next holder's callback */
    double release_us;     /* median from a release to its own callback */
    double round_trip_us;  /* median of uncontended acquisitions, before the contest */
    double quorum_trip_us; /* median of PINGs to all nodes, until a quorum has answered */
    double stall_ms;       /* maximum time for which a key was free */
};

/*
 * Runs the benchmark and fills in *result. Returns -1 if there is no result, after a message on
 * stderr.
 */
int contend_run(struct event_base *base, const struct contend_settings *settings,
                struct contend_result *result);

#endif
