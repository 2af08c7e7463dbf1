/*
 * A kind of load: how one lock is acquired and released on all nodes. A load knows nothing of
 * clocks, phases or statistics: cycles.c calls it, and gets its answers through the three functions
 * near the end.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <redlock/loop.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cycles;
struct event_base;
struct keys;
struct load;

struct load_settings {
    struct event_base *base;
    redlock_loop *loop;       /* of the library; NULL: `base` */
    const char *const *nodes; /* URIs */
    size_t node_count;
    size_t slot_count; /* number of concurrent locks */
    uint64_t ttl_ms;
    uint64_t node_timeout_ms; /* of the library; 0: it follows the answers of each node */
    const struct keys *keys;  /* NULL: each slot has a key of its own */
    size_t first_slot;        /* number of the first slot among those of all threads */
    bool fenced;
    redlock_mode mode;
    struct cycles *cycles;
};

struct load_kind {
    const char *name;

    /* Starts to connect. Returns NULL on failure, after a message on stderr. */
    struct load *(*create)(const struct load_settings *settings);

    /*
     * Returns whether all nodes are connected. If not, writes to `complaints` which are not and
     * why.
     */
    bool (*is_ready)(struct load *load, FILE *complaints);

    /*
     * Start to acquire or release the slot's lock. The answer follows later through cycles_acquired
     * or cycles_released. If no answer will follow, returns a string, the reason; otherwise NULL.
     */
    const char *(*acquire)(struct load *load, size_t slot);
    const char *(*release)(struct load *load, size_t slot);

    /* Frees everything, including locks in progress, then answers through cycles_closed. */
    void (*close)(struct load *load);
};

extern const struct load_kind redlock_load; /* calls of the library */
extern const struct load_kind floor_load;   /* the commands alone, sent by hiredis */
extern const struct load_kind epoll_load;   /* minimum of commands, without a library */

/*
 * Receive the load's answers. `error` is NULL for success, otherwise a sentence that is valid
 * during the call. The floors' only failure is REDLOCK_ENOQUORUM.
 */
void cycles_acquired(struct cycles *cycles, size_t slot, redlock_status status, const char *error);
void cycles_released(struct cycles *cycles, size_t slot, const char *error);
void cycles_closed(struct cycles *cycles);

/*
 * Writes a key, "redlock-bench:PID:NUMBER", so that concurrent runs use different keys.
 */
#define LOAD_KEY_SIZE 48
void load_format_key(char key[LOAD_KEY_SIZE], size_t number);

#endif
