/* An allocator that counts the blocks in use, and fails on request. */
#ifndef REDLOCK_TEST_HEAP_H
#define REDLOCK_TEST_HEAP_H

#include <redlock.h>

struct heap {
    redlock_allocator allocator;
    size_t out;       /* number of blocks in use */
    size_t calls;     /* number of calls of malloc and realloc */
    size_t fail_from; /* number of the first call that fails, starting at 1; 0: none */
    bool fail_once;   /* whether only that call fails, instead of all from it on */
};

/* Initializes the allocator, which points into `heap`: `heap` must not move. */
void heap_init(struct heap *heap);

#endif
