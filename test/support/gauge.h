/*
 * An allocator hook that counts: what is out, how often it was asked, and the high-water mark. It
 * can be told to refuse from some call on.
 */
#ifndef REDLOCK_TEST_GAUGE_H
#define REDLOCK_TEST_GAUGE_H

#include <stddef.h>
#include <stdint.h>

#include "redlock.h"

struct gauge {
    redlock_allocator hook; /* what options.allocator points at */
    size_t calls;           /* of malloc and realloc */
    size_t blocks;          /* not yet freed */
    size_t bytes;           /* their sum */
    size_t peak;            /* the largest `bytes` since gauge_init or gauge_mark */
    size_t refuse_after;    /* so many more calls are served; SIZE_MAX: all */
};

/* The gauge must stay where it is while a client uses the hook. */
void gauge_init(struct gauge *gauge);

/* Starts the high-water mark anew from what is out now, and returns the mark up to here. */
size_t gauge_mark(struct gauge *gauge);

#endif
