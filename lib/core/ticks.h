/*
 * The ticks of a client: instants at which its locks renew together, so that one script call serves
 * many of them.
 *
 * A tick is as short as the calls can still be full: with twice the locks there are twice the
 * ticks. It is never longer than 1/TICKS_LEAST of the interval between two renewals, so that the
 * renewals of many small clients stay evenly spread. The ticks of each client have an offset of
 * their own, so that clients do not renew in step.
 */
#ifndef REDLOCK_CORE_TICKS_H
#define REDLOCK_CORE_TICKS_H

#include <stdint.h>

/* The least number of ticks in an interval. */
#define TICKS_LEAST 16

struct ticks {
    uint64_t offset;
    uint32_t locks; /* number of locks that are held with a watchdog */
    uint32_t count; /* number of ticks in an interval */
    uint32_t most;  /* the most locks in a tick, on average */
};

/*
 * Sets up the ticks of a client without locks, which may have `max_commands` (at least 16) under
 * way at a node; draws their offset.
 */
void ticks_init(struct ticks *ticks, uint32_t max_commands, uint64_t *seed);

/* Counts a lock that begins or ceases to be held with a watchdog. */
void ticks_add(struct ticks *ticks);
void ticks_remove(struct ticks *ticks);

/* Returns the start of the tick that `at` is in, for locks that renew once in each `interval`. */
uint64_t ticks_round_down(const struct ticks *ticks, uint64_t at, uint64_t interval);

#endif
