/*
 * A connection of the benchmark itself to one node, by plain hiredis, for measurements that the
 * library has no part in. All functions block, for some seconds at the most.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include "histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe;
struct shares;

/* Connects to a node. Returns NULL, after a message on stderr, on failure. */
struct probe *probe_open(const char *uri);
void probe_close(struct probe *probe); /* takes NULL */

/*
 * Records the time of `trips` round trips to all nodes at once: from the first byte to the answer
 * of a quorum, in ns. Returns false, after a message, on failure.
 */
bool probe_quorum_trips(struct probe *const *probes, size_t count, size_t trips,
                        struct histogram *times);

/*
 * Asks for INFO commandstats, and fills in how many commands the node has been sent so far, by
 * these shares. Returns false, after a message, on failure.
 */
bool probe_count_commands(struct probe *probe, const struct shares *shares, double *count);

/* A stretch that ends when it has lasted its least time and seen so many commands of clients. */
struct probe_stretch {
    double least_s;
    double most_s;
    uint64_t commands;
};

/*
 * Watches the node's commands for a stretch (MONITOR, which slows the node down), and adds them to
 * `shares`. The connection is of no use afterwards. Returns false, after a message, on failure.
 */
bool probe_watch(struct probe *probe, const struct probe_stretch *stretch, struct shares *shares);

#endif
