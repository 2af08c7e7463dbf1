/*
 * One more client, which runs cycles of a key of its own while something happens to others, and
 * counts what it notices. It has its own connections and its own thread, so that neither the others
 * nor the queries of the benchmark delay it.
 */
#ifndef BENCH_BYSTANDER_H
#define BENCH_BYSTANDER_H

#include <stddef.h>
#include <stdint.h>

struct bystander;
struct event_base;

struct bystander_settings {
    const char *const *nodes; /* URIs */
    size_t node_count;
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
};

struct bystander_counts {
    uint64_t cycles;   /* that succeeded */
    uint64_t failed;   /* failed acquisitions and releases: none is tried again */
    uint64_t timeouts; /* votes TIMEOUT of all nodes: see struct redlock_node_stats */
};

/*
 * Starts the client, and serves the loop until it is connected to all nodes. From then on it begins
 * a cycle every 10 ms unless the last one has not ended. Fork no process that goes on to use the
 * library until it is finished. Returns NULL on failure, after a message on stderr.
 */
struct bystander *bystander_start(struct event_base *base,
                                  const struct bystander_settings *settings);

/* Waits for the end of the cycle in progress, closes the client, and fills in *counts. */
void bystander_finish(struct bystander *bystander, struct bystander_counts *counts);

#endif
