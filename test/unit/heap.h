/* An allocator that counts the blocks not freed, and that can be told to fail. */
#ifndef REDLOCK_TEST_HEAP_H
#define REDLOCK_TEST_HEAP_H

#include <redlock.h>

struct heap {
    redlock_allocator allocator;
    size_t out;       /* number of blocks not freed yet */
    size_t calls;     /* number of calls of malloc and realloc */
    size_t fail_from; /* number of the first call that fails, counted from 1; 0: none */
    bool fail_once;   /* whether only that call fails, instead of all from it on */
};

/* Makes the allocator, which points into `heap`: `heap` must not move. */
void heap_init(struct heap *heap);

#endif
