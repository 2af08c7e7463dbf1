#define _GNU_SOURCE 1 /* syscall */

#include "clocks.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NANOS_PER_SECOND 1000000000
#define CLOCKS 16 /* the ids of clocks are smaller */

static _Atomic uint64_t passed_ms; /* a thread of the library reads it as well */
static time_t wall_offset;
static time_t suspended;
static bool is_stopped;
static struct timespec stopped[CLOCKS]; /* the kernel's clocks at the last stop */
static uint64_t stopped_at;             /* its CLOCK_MONOTONIC just after that, in ns */
static uint64_t stood;                  /* length of all earlier standstills, in ns */

void pass_time(uint64_t ms) {
    passed_ms += ms;
}

void set_wall_clock(time_t seconds) {
    wall_offset = seconds;
}

void set_suspended(time_t seconds) {
    suspended = seconds;
}

static uint64_t kernel_time(void) {
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* The clocks are read before the instant that a standstill begins: none steps back after it. */
void stop_time(void) {
    for (clockid_t clock = 0; clock < CLOCKS; clock++) {
        syscall(SYS_clock_gettime, clock, &stopped[clock]);
    }
    stopped_at = kernel_time();
    is_stopped = true;
}

void resume_time(void) {
    stood += kernel_time() - stopped_at;
    is_stopped = false;
}

/* Subtracts the time for which the clocks have stood still. */
static void stand_still(struct timespec *time) {
    uint64_t left = (uint64_t)time->tv_sec * NANOS_PER_SECOND + (uint64_t)time->tv_nsec - stood;

    time->tv_sec = (time_t)(left / NANOS_PER_SECOND);
    time->tv_nsec = (long)(left % NANOS_PER_SECOND);
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
    bool is_of_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    if (is_stopped && !is_of_cpu && (unsigned)clock < CLOCKS) {
        *now = stopped[clock];
    }
    if (!is_of_cpu) {
        stand_still(now);
    }
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        now->tv_sec += wall_offset + suspended;
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
