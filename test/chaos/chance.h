/* Random numbers, repeatable by their seed; and the clock that all processes share. */
#ifndef REDLOCK_CHAOS_CHANCE_H
#define REDLOCK_CHAOS_CHANCE_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)

static inline void chance_seed(uint64_t *random, uint64_t seed) {
    *random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

/* Returns a number from 0 to below - 1. */
static inline uint64_t chance_draw(uint64_t *random, uint64_t below) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % below;
}

static inline uint64_t clock_ns(clockid_t id) {
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t boottime_ns(void) {
    return clock_ns(CLOCK_BOOTTIME);
}

#endif
