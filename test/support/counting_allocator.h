/*
 * An allocator hook that counts its calls, the blocks that are out, and their high-water mark, and
 * that can refuse from a chosen call on.
 */
#ifndef REDLOCK_TEST_COUNTING_ALLOCATOR_H
#define REDLOCK_TEST_COUNTING_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

struct counting_allocator {
    redlock_allocator hook; /* for options.allocator */
    size_t calls;           /* number of calls of malloc and realloc */
    size_t blocks;          /* number of blocks not freed yet */
    size_t bytes;           /* the sum of their sizes */
    size_t peak; /* the largest `bytes` since counting_allocator_init or counting_allocator_mark */
    size_t refuse_after; /* number of calls still served; SIZE_MAX: all */
};

/* Begins to count. The counting allocator must stay in its place while a client uses the hook. */
void counting_allocator_init(struct counting_allocator *allocator);

/* Restarts the high-water mark from the bytes out now, and returns the mark up to now. */
size_t counting_allocator_mark(struct counting_allocator *allocator);

#endif
