/*
 * Lets many contenders, in one or many processes, want few keys, and measures how the keys are
 * handed over: how often, how evenly, how fast, and by how many commands.
 */
#ifndef BENCH_CONTEND_H
#define BENCH_CONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

struct contend_settings {
    const char *const *nodes; /* URIs, such as address_parse reads */
    size_t node_count;
    size_t clients; /* number of contenders, spread evenly over the processes and over the keys */
    size_t processes;
    size_t keys;
    uint64_t hold_us;
    uint64_t ttl_ms;
    bool fenced;
    bool polls;
    double duration_s;
};

/* A number that the run did not yield, for lack of acquisitions, is NAN. */
struct contend_result {
    uint64_t acquisitions; /* within the time measured */
    uint64_t errors;       /* failed requests, losses, overlaps, also before and after that time */
    double wait_p50_us;    /* from the request to its callback */
    double wait_p99_us;
    double wait_max_us;
    double wait_ideal_us;  /* at this rate, were the contenders served in order */
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
 * Runs the benchmark and fills in *result. Returns -1, after a message on stderr, when there is no
 * result.
 */
int contend_run(struct event_base *base, const struct contend_settings *settings,
                struct contend_result *result);

#endif
