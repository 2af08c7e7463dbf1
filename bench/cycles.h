/*
 * The locks of one load: each slot is an endless cycle of acquire, hold and release. In a closed
 * loop a cycle follows the previous one. In an open loop cycles are due at a rate, independent of
 * earlier ones; latencies count from the instant at which a cycle was due, so that waiting for a
 * free slot counts too.
 */
#ifndef BENCH_CYCLES_H
#define BENCH_CYCLES_H

#include "histogram.h"

#include <redlock.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct load;
struct load_kind;
struct cycles;

/* Counts the statuses. */
#define CYCLES_COUNT_ONE(name, value, text) +1
enum { CYCLES_STATUSES = 0 REDLOCK_STATUS_MAP(CYCLES_COUNT_ONE) };
#undef CYCLES_COUNT_ONE

/*
 * Acquisitions that failed, at the index -status; at index 0 those that a call refused, so that no
 * status followed.
 */
struct cycles_failures {
    uint64_t counts[CYCLES_STATUSES];
};

struct cycles_settings {
    struct event_base *base;
    const struct load_kind *kind;
    size_t count;
    double rate;      /* cycles due per second; 0: closed loop */
    uint64_t hold_ns; /* time to hold each lock */
    uint64_t limit;   /* number of cycles, with those that fail, after which on_limit is called;
                         0: never */
    void (*on_limit)(void *arg);
    void (*on_closed)(void *arg); /* called after the load is closed */
    void *arg;
    _Atomic uint64_t *done; /* number of recorded cycles, for other threads to read */
};

struct cycles_counts {
    uint64_t done;                   /* recorded cycles */
    uint64_t errors;                 /* failed acquisitions and releases, also unrecorded ones */
    struct cycles_failures failures; /* of these, the acquisitions */
    uint64_t backlog;         /* cycles that were due but had no free slot until cycles_stop */
    struct histogram acquire; /* ns until the lock is held; in an open loop also the waits, so far,
                                 that were under way at cycles_stop */
    struct histogram release; /* ns from the call to its callback */
    char first_error[512];    /* "" if none so far */
};

struct cycles *cycles_create(const struct cycles_settings *settings);
void cycles_destroy(struct cycles *cycles);

/* Begins the cycles. The load must be ready. */
void cycles_begin(struct cycles *cycles, struct load *load);

/* Records cycles from now on. */
void cycles_record(struct cycles *cycles);

/* Begins and records no further cycles. */
void cycles_stop(struct cycles *cycles);

/* Returns the number of slots with a cycle in progress. */
size_t cycles_busy(const struct cycles *cycles);

/* Counts a failed acquisition or release. */
void cycles_count_error(struct cycles_counts *counts, const char *error);

const struct cycles_counts *cycles_counts(const struct cycles *cycles);

#endif
