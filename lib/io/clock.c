#include "io/clock.h"

#include <time.h>

uint64_t clock_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail with a valid clock id */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t clock_glance(void) {
    return clock_now();
}

uint64_t clock_wall_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int64_t clock_wall_ahead(void) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t nanos = (uint64_t)wall.tv_sec * UINT64_C(1000000000) + (uint64_t)wall.tv_nsec;
    return (int64_t)(nanos - clock_now());
}
