#include "clock.h"

#include "memory.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define SERVED_EVERY_NS UINT64_C(5000000)

uint64_t clock_now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_after_ns(double seconds) {
    return clock_now_ns() + (uint64_t)(seconds * 1e9);
}

static double cpu_us_of(int who) {
    struct rusage usage;

    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double clock_cpu_us(void) {
    return cpu_us_of(RUSAGE_SELF);
}

double clock_thread_cpu_us(void) {
    return cpu_us_of(RUSAGE_THREAD);
}

struct event_base *clock_create_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    if (config != NULL) {
        event_config_free(config);
    }
    if (base == NULL) {
        fputs("redlock-bench: cannot make an event loop\n", stderr);
    }
    return base;
}

struct timeval clock_interval(double seconds) {
    struct timeval interval = {.tv_sec = (time_t)seconds};

    interval.tv_usec = (suseconds_t)((seconds - (double)interval.tv_sec) * 1e6);
    return interval;
}

struct event *clock_timer(struct event_base *base, event_callback_fn callback, void *arg) {
    struct event *timer = evtimer_new(base, callback, arg);

    if (timer == NULL) {
        memory_end();
    }
    return timer;
}

void clock_arm(struct event *timer, double seconds) {
    struct timeval delay = clock_interval(seconds);

    if (event_add(timer, &delay) != 0) {
        fputs("redlock-bench: cannot add a timer\n", stderr);
        exit(EXIT_FAILURE);
    }
}

void clock_pass(struct event_base *base, double seconds) {
    struct timeval interval = clock_interval(seconds);

    event_base_loopexit(base, &interval);
    event_base_dispatch(base);
}

uint64_t clock_serve(struct event_base *base, uint64_t *served_ns) {
    uint64_t now = clock_now_ns();

    if (now - *served_ns >= SERVED_EVERY_NS) {
        *served_ns = now;
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    return now;
}

struct clock_mark clock_mark(void) {
    return (struct clock_mark){.now_ns = clock_now_ns(), .cpu_us = clock_cpu_us()};
}

double clock_seconds(struct clock_mark from, struct clock_mark to) {
    return (double)(to.now_ns - from.now_ns) / 1e9;
}

double clock_cores(struct clock_mark from, struct clock_mark to) {
    return (to.cpu_us - from.cpu_us) / 1e6 / clock_seconds(from, to);
}
