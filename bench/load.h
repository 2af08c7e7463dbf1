/*
 * What is measured: a kind of load knows how one lock is acquired and released on all nodes, and
 * nothing of clocks, phases or statistics. It is called by measure.c and answers by the three
 * functions at the end.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct event_base;
struct load;
struct measure;

/* The TTL of every lock. */
#define LOAD_TTL_MS 10000

struct load_settings {
    struct event_base *base;
    const char *const *nodes; /* URIs */
    size_t node_count;
    size_t slot_count; /* how many locks at a time; each slot has a key of its own */
    struct measure *measure;
};

struct load_kind {
    const char *name;

    /* Begins to connect. NULL, after a message on stderr, when that is impossible. */
    struct load *(*create)(const struct load_settings *settings);

    /* Whether all nodes are connected. If not, says which are not, and why, on `complaints`. */
    bool (*is_ready)(struct load *load, FILE *complaints);

    /*
     * Acquires, then releases, the slot's lock. Each answers later by measure_acquired or
     * measure_released. A string means that nothing will follow, and why.
     */
    const char *(*acquire)(struct load *load, size_t slot);
    const char *(*release)(struct load *load, size_t slot);

    /* Frees everything, locks under way included, and then answers by measure_closed. */
    void (*close)(struct load *load);
};

extern const struct load_kind redlock_load; /* through the library */
extern const struct load_kind floor_load;   /* the same commands, sent raw */

/* `error` is NULL for success, otherwise a sentence that is valid during the call. */
void measure_acquired(struct measure *measure, size_t slot, const char *error);
void measure_released(struct measure *measure, size_t slot, const char *error);
void measure_closed(struct measure *measure);

/* "redlock-bench:PID:SLOT" for each slot, so that two runs at a time do not meet. */
#define LOAD_KEY_SIZE 48
void load_format_key(char key[LOAD_KEY_SIZE], size_t slot);

#endif
