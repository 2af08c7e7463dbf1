#define _GNU_SOURCE 1 /* syscall */

#include "clocks.h"

#include <sys/syscall.h>
#include <unistd.h>

#define NANOS_PER_SECOND 1000000000

static uint64_t passed_ms;
static time_t wall_offset;
static time_t suspended;

void pass_time(uint64_t ms) {
    passed_ms += ms;
}

void set_wall_clock(time_t seconds) {
    wall_offset = seconds;
}

void set_suspended(time_t seconds) {
    suspended = seconds;
}

static void add_ms(struct timespec *time, uint64_t ms) {
    time->tv_sec += (time_t)(ms / 1000);
    time->tv_nsec += (long)(ms % 1000) * 1000000;
    if (time->tv_nsec >= NANOS_PER_SECOND) {
        time->tv_nsec -= NANOS_PER_SECOND;
        time->tv_sec++;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        now->tv_sec += wall_offset + suspended;
        add_ms(now, passed_ms);
        break;
    case CLOCK_BOOTTIME:
        now->tv_sec += suspended;
        add_ms(now, passed_ms);
        break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        add_ms(now, passed_ms);
        break;
    default:
        break;
    }
    return result;
}
