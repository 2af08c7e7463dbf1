/*
 * Many acquire-and-release cycles on distinct keys, a fixed number of them in flight. The test
 * itself allocates nothing while they run.
 */
#ifndef REDLOCK_TEST_CYCLES_H
#define REDLOCK_TEST_CYCLES_H

#include "harness.h"

#define CYCLES_MOST_IN_FLIGHT 64

struct cycles;

struct cycle {
    struct cycles *owner;
    size_t index;
    redlock_lock *lock;
    bool acquiring;
    bool releasing;
};

struct cycles {
    struct fixture *fixture;
    redlock_client *client;
    const char *prefix; /* prefix of the keys */
    uint64_t ttl_ms;
    size_t wanted;  /* number of cycles */
    size_t started; /* number of cycles begun */
    size_t done;
    size_t failed;          /* number of acquisitions and releases that failed */
    redlock_status failure; /* status of the last failure */
    char why[1024];         /* explanation of the last failure */
    size_t in_flight;
    /* Called after each cycle, unless NULL. */
    void (*step)(struct cycles *cycles);
    struct cycle slots[CYCLES_MOST_IN_FLIGHT];
};

/* Starts the cycles. The struct must stay valid until all `wanted` cycles are done. */
void cycles_start(struct cycles *cycles, struct fixture *f, redlock_client *client,
                  size_t in_flight, size_t wanted);

void cycles_wait(struct cycles *cycles);

/* Starts the cycles, waits for all of them, and asserts that none failed. */
void cycles_run(struct cycles *cycles, struct fixture *f, redlock_client *client, size_t in_flight,
                size_t wanted);

#endif
