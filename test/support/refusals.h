/*
 * Calls of the library, in this program, that fail at a chosen place: the linker wraps them
 * (test/integration/meson.build). Also counts the memory in use that was allocated while a test
 * watched it.
 */
#ifndef REDLOCK_TEST_REFUSALS_H
#define REDLOCK_TEST_REFUSALS_H

#include <stddef.h>

enum refusable {
    REFUSABLE_MEMORY, /* malloc, calloc, realloc: `error` is ENOMEM */
    REFUSABLE_THREAD, /* pthread_create, which returns `error` */
    REFUSABLE_EPOLL,  /* epoll_create1, as the rest with errno `error` */
    REFUSABLE_WATCH,  /* epoll_ctl, but not of a watch that ends */
    REFUSABLE_TIMER,  /* timerfd_create */
    REFUSABLE_WAKER,  /* eventfd */
    REFUSABLE_RANDOM  /* sodium_init */
};

/*
 * Lets the n-th call from now on (starting at 1), and the `count` - 1 after it, fail. All threads
 * count together.
 */
void refusals_begin(enum refusable what, unsigned n, unsigned count, int error);

/* Lets the next allocation of this thread fail. */
void refusals_begin_here(void);

/* Lets all calls succeed again. Returns how many have failed. */
unsigned refusals_end(void);

/* Begins to watch the memory that any thread allocates. */
void refusals_watch_memory(void);

/* Ends the watch. Returns how many blocks are left of the memory that was allocated meanwhile. */
size_t refusals_memory_left(void);

/* Returns the number of threads that were created, and not joined yet. */
size_t refusals_threads(void);

#endif
