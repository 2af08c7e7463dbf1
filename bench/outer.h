/*
 * The event loop of --loop, on which the library runs in place of libevent, by the header that the
 * library has for it. libevent still has the benchmark's own timers: see measure.c.
 */
#ifndef BENCH_OUTER_H
#define BENCH_OUTER_H

#include <redlock/loop.h>
#include <stdbool.h>

struct outer_kind {
    const char *name; /* as --loop has it */
    const char *library;
    bool is_built; /* whether the library was there when the benchmark was built */

    /* Makes a loop, with `*loop` attached. Returns NULL on failure. */
    void *(*create)(redlock_loop **loop);
    /* Serves what is ready, after waiting for it for about 5 ms at most. */
    void (*turn)(void *outer);
    /* Detaches and ends the loop, after the clients have closed. */
    void (*destroy)(void *outer);
};

/* Returns the kind of a name; NULL: there is none. */
const struct outer_kind *outer_find(const char *name);

#endif
