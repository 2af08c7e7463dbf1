/*
 * The contenders of one process: one client with one request for each contender. A contender
 * acquires its key, holds it, releases it, and requests it again at once.
 */
#ifndef BENCH_CONTENDERS_H
#define BENCH_CONTENDERS_H

#include "board.h"
#include "workers.h"

struct contenders_settings {
    const char *const *nodes; /* URIs */
    size_t node_count;
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* 0: it follows the answers of each node */
    uint64_t hold_us;
    bool fenced;
    bool polls; /* whether contenders poll instead of queueing */
    struct board *board;
};

/*
 * Runs the contenders of process `process` from the order to begin to the order to end. Returns the
 * exit status of the process; before a failure it prints a message on stderr.
 */
int contenders_run(const struct contenders_settings *settings, size_t process,
                   struct workers_orders orders);

/*
 * Returns the time in seconds from the order to begin until all contenders have begun: so many
 * processes do it one after the other.
 */
double contenders_begin_s(size_t processes);

#endif
