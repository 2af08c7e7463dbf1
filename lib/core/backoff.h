/*
 * Exponential backoff with full jitter: each delay is drawn evenly from zero up to a bound that
 * doubles with every attempt (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog,
 * 2015, "full jitter"; Redlock, "Retry on Failure", asks for a random delay so that clients that
 * split the votes do not split them again).
 */
#ifndef REDLOCK_CORE_BACKOFF_H
#define REDLOCK_CORE_BACKOFF_H

#include <stdint.h>

/*
 * Returns the next number of a small generator (Steele et al., SplitMix64), for jitter and never
 * for tokens. Any seed will do.
 */
uint64_t backoff_random(uint64_t *seed);

/* Returns the bound of attempt 0, 1, 2, ...: `first` doubled `attempt` times, at most `last`. */
uint64_t backoff_bound(uint64_t first, uint64_t last, uint32_t attempt);

/* Draws a delay from 1 ms to `bound`; 1 ms if `bound` is smaller, so that no loop is hot. */
uint64_t backoff_draw(uint64_t *seed, uint64_t bound);

/*
 * Draws a delay up to `bound` so that, of a crowd of unknown size that begins at once, few draw
 * nearly the shortest delay of all: the first one can serve the others (Nonnenmacher and Biersack,
 * "Scalable Feedback for Large Groups", IEEE/ACM Transactions on Networking, 1999: timers with a
 * truncated exponential distribution). In each 14th of `bound` it is twice as likely as in the one
 * before, which is enough for 2^14 members.
 */
uint64_t backoff_draw_late(uint64_t *seed, uint64_t bound);

#endif
