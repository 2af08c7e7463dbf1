/*
 * A kind of load: the way in which one lock is acquired and released on all nodes. A load knows
 * nothing of clocks, phases or statistics: measure.c calls it, and gets its answers by the three
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

/* TTL of every lock. */
#define LOAD_TTL_MS 10000

struct load_settings {
    struct event_base *base;
    const char *const *nodes; /* URIs */
    size_t node_count;
    size_t slot_count; /* number of locks at a time; each slot has a key of its own */
    struct measure *measure;
};

struct load_kind {
    const char *name;

    /* Begins to connect. Returns NULL, after a message on stderr, on failure. */
    struct load *(*create)(const struct load_settings *settings);

    /*
     * Returns whether all nodes are connected. If not, writes to `complaints` which are not, and
     * why.
     */
    bool (*is_ready)(struct load *load, FILE *complaints);

    /*
     * Begin to acquire, and to release, the slot's lock. Each answers later by measure_acquired or
     * measure_released; but returns a string, the reason, when no answer will follow.
     */
    const char *(*acquire)(struct load *load, size_t slot);
    const char *(*release)(struct load *load, size_t slot);

    /* Frees everything, locks under way included, and then answers by measure_closed. */
    void (*close)(struct load *load);
};

extern const struct load_kind redlock_load; /* calls of the library */
extern const struct load_kind floor_load;   /* the commands alone, sent by hiredis */

/*
 * Take the load's answers. `error` is NULL for success, otherwise a sentence that is valid during
 * the call.
 */
void measure_acquired(struct measure *measure, size_t slot, const char *error);
void measure_released(struct measure *measure, size_t slot, const char *error);
void measure_closed(struct measure *measure);

/*
 * Writes the slot's key, "redlock-bench:PID:SLOT", so that two runs at a time use different keys.
 */
#define LOAD_KEY_SIZE 48
void load_format_key(char key[LOAD_KEY_SIZE], size_t slot);

#endif
