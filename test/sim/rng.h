/* Random numbers from a seed: one seed gives one run. */
#ifndef REDLOCK_SIM_RNG_H
#define REDLOCK_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

/* Returns the next number: xorshift64* (Marsaglia, "Xorshift RNGs"; Vigna's multiplier). */
static inline uint64_t rng_next(struct rng *rng) {
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Seeds the generator, so that neighbouring seeds do not give similar runs. */
static inline void rng_seed(struct rng *rng, uint64_t seed) {
    rng->state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    rng->state = rng->state != 0 ? rng->state : 1;
    for (int i = 0; i < 4; i++) {
        rng_next(rng);
    }
}

/* Returns a number from 0 to below - 1. */
static inline uint64_t rng_below(struct rng *rng, uint64_t below) {
    return (rng_next(rng) >> 11) % below;
}

/* Returns a number from `least` to `most`, both included. */
static inline uint64_t rng_between(struct rng *rng, uint64_t least, uint64_t most) {
    return least + rng_below(rng, most - least + 1);
}

static inline bool rng_chance(struct rng *rng, unsigned per_mille) {
    return per_mille > 0 && rng_below(rng, 1000) < per_mille;
}

#endif
