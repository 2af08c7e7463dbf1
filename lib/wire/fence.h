/* Bounds of fences, and of the counters that they are made of. */
#ifndef REDLOCK_WIRE_FENCE_H
#define REDLOCK_WIRE_FENCE_H

#include <stdint.h>

/* The largest: up to here whole numbers are exact in Lua, and can be counted by one. */
#define FENCE_MAX ((UINT64_C(1) << 53) - 1)

/* No hint is larger, so that a trillion acquisitions can come after the largest. */
#define FENCE_HINT_MAX (FENCE_MAX + 1 - (UINT64_C(1) << 40))

/*
 * Bounds the hint that counters which were lost begin above their past: the client's wall clock, in
 * microseconds. That of a machine which believes to be in another century would use up the numbers
 * of a key for everybody. At least 1: a fence of 0 stands for none.
 */
static inline uint64_t fence_hint(uint64_t wall_us) {
    return wall_us == 0 ? 1 : wall_us < FENCE_HINT_MAX ? wall_us : FENCE_HINT_MAX;
}

#endif
