/* A latch: threads wait until another one opens it, once and for all. */
#ifndef REDLOCK_IO_LATCH_H
#define REDLOCK_IO_LATCH_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeros: closed. */
struct latch {
    _Atomic uint32_t state; /* enum latch_state in latch.c */
};

/*
 * Opens the latch. All that happened before is visible to the threads that it lets through. Their
 * memory may hold the latch: it is not touched once one of them may have returned.
 */
void latch_open(struct latch *latch);

/* Waits until the latch is open. Goes on after a signal, and is no cancellation point. */
void latch_wait(struct latch *latch);

#endif
