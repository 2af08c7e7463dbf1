#include "core/backoff.h"

#include "base/nanos.h"

uint64_t backoff_random(uint64_t *seed) {
    /* SplitMix64: a step of 2^64 / golden ratio, then the published finalizer. */
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t backoff_bound(uint64_t first, uint64_t last, uint32_t attempt) {
    /* Ends at `last`, so at most 64 doublings, whatever the attempt. */
    uint64_t bound = first;
    for (uint32_t i = 0; i < attempt && bound < last; i++) {
        bound = nanos_add(bound, bound);
    }
    return nanos_min(bound, last);
}

uint64_t backoff_draw(uint64_t *seed, uint64_t bound) {
    if (bound <= NANOS_PER_MS) {
        return NANOS_PER_MS;
    }
    return NANOS_PER_MS + backoff_random(seed) % (bound - NANOS_PER_MS + 1);
}

#define PARTS 14

uint64_t backoff_draw_late(uint64_t *seed, uint64_t bound) {
    uint64_t random = backoff_random(seed);
    /* The number of trailing zeros: 0 for half of all numbers, 1 for a quarter, ... */
    uint64_t parts_before_last = (uint64_t)__builtin_ctzll(random | UINT64_C(1) << (PARTS - 1));
    uint64_t part = bound / PARTS;
    uint64_t within = part > 0 ? (random >> PARTS) % part : 0;
    return bound - parts_before_last * part - within;
}
