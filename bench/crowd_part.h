/* The part of a crowd that one process has: its clients and what they do. */
#ifndef BENCH_CROWD_PART_H
#define BENCH_CROWD_PART_H

#include "crowd.h"
#include "load.h"
#include "workers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of further tries of requests that do not queue. */
#define CROWD_RETRIES 1000

/* Memory shared by the processes of a crowd and the benchmark. */
struct crowd_board {
    atomic_int wanted;     /* enum crowd_state */
    atomic_size_t reached; /* number of processes in the wanted state */
    atomic_bool has_failed;

    /* see struct crowd_counts */
    _Atomic uint64_t cycles;
    _Atomic uint64_t skipped;
    _Atomic uint64_t lost;
    _Atomic uint64_t errors;
};

/* What all parts know. Lives in the memory that they inherit by fork(). */
struct crowd_plan {
    struct crowd_settings settings;
    size_t node_count;
    size_t part_clients; /* number of clients of each part; the last ones may have less */
    size_t guarded;      /* number of keys that the first part's guard holds */
    char (*own_keys)[LOAD_KEY_SIZE]; /* a key of each client */
    char (*guarded_keys)[LOAD_KEY_SIZE];
    struct crowd_board *board;
};

/* Runs a part until the order to end. Returns the exit status of its process. */
int crowd_part_run(const struct crowd_plan *plan, size_t index, struct workers_orders orders);

#endif
