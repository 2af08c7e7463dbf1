/*
 * An allocator hook that counts its calls, the blocks in use and their high-water mark, and that
 * can refuse allocations from a chosen call on.
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
    size_t refuse_after; /* number of calls that still succeed; SIZE_MAX: all */
};

/* Starts counting. The struct must not move while a client uses the hook. */
void counting_allocator_init(struct counting_allocator *allocator);

/* Restarts the high-water mark at the bytes now in use, and returns the previous mark. */
size_t counting_allocator_mark(struct counting_allocator *allocator);

#endif
