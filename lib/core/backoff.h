/*
 * Exponential backoff with full jitter: each delay is drawn evenly from zero up to a bound that
 * doubles with every attempt (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog,
 * 2015, "full jitter"; Redlock, "Retry on Failure", asks for a random delay so that clients that
 * split the votes do not do so again).
 */
#ifndef REDLOCK_CORE_BACKOFF_H
#define REDLOCK_CORE_BACKOFF_H

#include <stdint.h>

/* A small generator for jitter, never for tokens; any seed will do (Steele et al., SplitMix64). */
uint64_t backoff_random(uint64_t *seed);

/* The bound of attempt 0, 1, 2, ...: first, twice that, ..., at the most `last`. */
uint64_t backoff_bound(uint64_t first, uint64_t last, uint32_t attempt);

/* A delay of 1 ms up to `bound`; 1 ms when the bound is smaller, so that no retry loop is hot. */
uint64_t backoff_draw(uint64_t *seed, uint64_t bound);

#endif
