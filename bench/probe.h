/*
 * The benchmark's own connection to one node, with plain hiredis, for measurements without the
 * library. All functions block, for a few seconds at most.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include "histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe;
struct shares;

/* Connects to a node. Returns NULL on failure, after a message on stderr. */
struct probe *probe_open(const char *uri);
void probe_close(struct probe *probe); /* NULL is allowed */

/*
 * Records the times, in ns, of `trips` round trips to all nodes at once: from the first byte to the
 * answer of a quorum. Returns false on failure, after a message.
 */
bool probe_quorum_trips(struct probe *const *probes, size_t count, size_t trips,
                        struct histogram *times);

/*
 * Reads INFO commandstats, and fills in the number of commands that the node has got so far, by
 * these shares. Returns false on failure, after a message.
 */
bool probe_count_commands(struct probe *probe, const struct shares *shares, double *count);

/* A stretch that ends after both a minimum time and a minimum number of client commands. */
struct probe_stretch {
    double least_s;
    double most_s;
    uint64_t commands;
};

/*
 * Watches the node's commands for a stretch (MONITOR, which slows the node down), and adds them to
 * `shares`. The connection is unusable after that. Returns false on failure, after a message.
 */
bool probe_watch(struct probe *probe, const struct probe_stretch *stretch, struct shares *shares);

#endif
