#include "poll_timeout.h"

#include <time.h>

#define PAUSE_NS 2000000

bool poll_timeout_wait(struct poll_timeout *timeout, uint64_t limit_ms) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct timespec now;
    uint64_t now_ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (timeout->began_ns == 0) {
        timeout->began_ns = now_ns;
    }
    if (now_ns - timeout->began_ns >= limit_ms * 1000000) {
        return false;
    }
    nanosleep(&pause, NULL);
    return true;
}
