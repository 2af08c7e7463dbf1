/* An allocator that counts what is out, and that can be told to fail. */
#ifndef REDLOCK_TEST_HEAP_H
#define REDLOCK_TEST_HEAP_H

#include <redlock.h>

struct heap {
    redlock_allocator allocator;
    size_t out;       /* blocks not freed yet */
    size_t calls;     /* of malloc, and of realloc */
    size_t fail_from; /* the first call that fails, counted from 1; 0: none */
    bool fail_once;   /* only that one, not all that follow */
};

/* The allocator points into `heap`, which must not move. */
void heap_init(struct heap *heap);

#endif
