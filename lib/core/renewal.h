/*
 * When a held lock renews: every third of its TTL, at instants of its own.
 *
 * The first instant is drawn evenly from one interval, and the lock keeps to it: `phase` is any of
 * its instants, and the others are whole intervals apart. So locks that were acquired together, or
 * renewed together by a busy loop, do not stay together. Each renewal is planned for the start of
 * the client's tick that the instant is in (core/ticks.h), so that the locks of a tick share calls:
 * early, never late. All renewals are at multiples of a grain of up to 10 ms, so that locks of
 * different TTLs that are due at nearly the same time share a turn, too.
 */
#ifndef REDLOCK_CORE_RENEWAL_H
#define REDLOCK_CORE_RENEWAL_H

#include "core/ticks.h"

#include <stdint.h>

/* Returns the time between two renewals: 1/3 of the TTL, rounded down to a whole grain. */
uint64_t renewal_interval(uint64_t ttl);

/* Draws the phase of a lock whose round began at `start`, for the first call of renewal_next. */
uint64_t renewal_draw_phase(uint64_t start, uint64_t ttl, uint64_t *seed);

/*
 * Returns the instant of the next renewal of a lock whose last round began at `start`: at most one
 * interval after it. Updates the phase.
 */
uint64_t renewal_next(uint64_t *phase, uint64_t ttl, uint64_t start, const struct ticks *ticks);

/*
 * Draws the instant at which to retry a failed renewal, with `left` until the loss: after 3/8 to
 * 1/2 of that, so that there are few retries, however many the locks. It is the start of a tick,
 * and so up to a tick earlier, but no earlier than after 1/20 of the TTL.
 */
uint64_t renewal_retry(uint64_t now, uint64_t left, uint64_t ttl, uint64_t *seed,
                       const struct ticks *ticks);

#endif
