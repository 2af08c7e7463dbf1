/*
 * An allocator hook that counts its calls, the blocks that are out, and their high-water mark, and
 * that can refuse from a chosen call on.
 */
#ifndef REDLOCK_TEST_GAUGE_H
#define REDLOCK_TEST_GAUGE_H

#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

struct gauge {
    redlock_allocator hook; /* for options.allocator */
    size_t calls;           /* number of calls of malloc and realloc */
    size_t blocks;          /* number of blocks not freed yet */
    size_t bytes;           /* the sum of their sizes */
    size_t peak;            /* the largest `bytes` since gauge_init or gauge_mark */
    size_t refuse_after;    /* number of calls still served; SIZE_MAX: all */
};

/* Begins to count. The gauge must stay in its place while a client uses the hook. */
void gauge_init(struct gauge *gauge);

/* Restarts the high-water mark from the bytes out now, and returns the mark up to now. */
size_t gauge_mark(struct gauge *gauge);

#endif
