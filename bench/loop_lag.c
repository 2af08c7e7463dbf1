#include "loop_lag.h"

#include "clock.h"
#include "histogram.h"
#include "memory.h"

#include <event2/event.h>
#include <stdlib.h>

#define INTERVAL_NS UINT64_C(10000000)

struct loop_lag {
    struct event *timer;
    uint64_t due_ns;          /* instant of the next tick */
    uint64_t excluded_due_ns; /* instant of the first pending tick that is excluded; 0: none */
    uint64_t excluded_ns;     /* maximum lateness of the excluded ticks that have fired */
    double cpu_us;            /* CPU time of the process when the timer last fired */
    uint64_t work_ns;
    struct histogram lateness;
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void record_work(struct loop_lag *lag, uint64_t now_ns) {
    double cpu_us = clock_cpu_us();

    if (lag->due_ns < now_ns) {
        uint64_t spent_ns = (uint64_t)((cpu_us - lag->cpu_us) * 1e3);

        lag->work_ns = most(lag->work_ns, least(spent_ns, now_ns - lag->due_ns));
    }
    lag->cpu_us = cpu_us;
}

static void count_due(struct loop_lag *lag, uint64_t now_ns) {
    if (lag->excluded_due_ns != 0) {
        lag->excluded_ns = most(lag->excluded_ns, now_ns - lag->excluded_due_ns);
        lag->excluded_due_ns = 0;
    }
    record_work(lag, now_ns);
    while (lag->due_ns <= now_ns) {
        histogram_record(&lag->lateness, now_ns - lag->due_ns);
        lag->due_ns += INTERVAL_NS;
    }
}

/*
 * Waits for the next tick. libevent rounds, and does not update its clock within a turn, so the
 * timer may fire too early.
 */
static void await_next(struct loop_lag *lag) {
    uint64_t now_ns = clock_now_ns();

    clock_arm(lag->timer, lag->due_ns > now_ns ? (double)(lag->due_ns - now_ns) / 1e9 : 0);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct loop_lag *lag = arg;

    (void)fd;
    (void)what;
    count_due(lag, clock_now_ns());
    await_next(lag);
}

struct loop_lag *loop_lag_create(struct event_base *base) {
    struct loop_lag *lag = memory_take(1, sizeof(*lag));

    histogram_init(&lag->lateness);
    lag->timer = clock_timer(base, on_tick, lag);
    return lag;
}

void loop_lag_destroy(struct loop_lag *lag) {
    event_free(lag->timer);
    free(lag);
}

void loop_lag_start(struct loop_lag *lag) {
    lag->cpu_us = clock_cpu_us();
    lag->due_ns = clock_now_ns() + INTERVAL_NS;
    await_next(lag);
}

void loop_lag_stop(struct loop_lag *lag) {
    count_due(lag, clock_now_ns());
    event_del(lag->timer);
}

void loop_lag_exclude(struct loop_lag *lag) {
    uint64_t now_ns = clock_now_ns();

    if (lag->due_ns < now_ns) {
        if (lag->excluded_due_ns == 0) {
            lag->excluded_due_ns = lag->due_ns;
        }
        lag->due_ns = now_ns;
    }
    lag->cpu_us = clock_cpu_us();
}

const struct histogram *loop_lag_lateness(const struct loop_lag *lag) {
    return &lag->lateness;
}

uint64_t loop_lag_work_ns(const struct loop_lag *lag) {
    return lag->work_ns;
}

uint64_t loop_lag_excluded_ns(const struct loop_lag *lag) {
    return lag->excluded_ns;
}
