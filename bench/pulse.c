#include "pulse.h"

#include "clock.h"
#include "histogram.h"
#include "memory.h"

#include <event2/event.h>
#include <stdlib.h>

#define INTERVAL_NS UINT64_C(10000000)

struct pulse {
    struct event *timer;
    uint64_t due_ns;          /* of the next tick */
    uint64_t forgiven_due_ns; /* of the first tick to come that is forgiven; 0: none */
    uint64_t forgiven_ns;     /* maximum lateness of the forgiven ticks that have fired */
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

static void note_work(struct pulse *pulse, uint64_t now_ns) {
    double cpu_us = clock_cpu_us();

    if (pulse->due_ns < now_ns) {
        uint64_t spent_ns = (uint64_t)((cpu_us - pulse->cpu_us) * 1e3);

        pulse->work_ns = most(pulse->work_ns, least(spent_ns, now_ns - pulse->due_ns));
    }
    pulse->cpu_us = cpu_us;
}

static void count_due(struct pulse *pulse, uint64_t now_ns) {
    if (pulse->forgiven_due_ns != 0) {
        pulse->forgiven_ns = most(pulse->forgiven_ns, now_ns - pulse->forgiven_due_ns);
        pulse->forgiven_due_ns = 0;
    }
    note_work(pulse, now_ns);
    while (pulse->due_ns <= now_ns) {
        histogram_record(&pulse->lateness, now_ns - pulse->due_ns);
        pulse->due_ns += INTERVAL_NS;
    }
}

/*
 * Waits for the next tick. libevent rounds, and its clock stands still within a turn: the timer may
 * also fire too early.
 */
static void await_next(struct pulse *pulse) {
    uint64_t now_ns = clock_now_ns();

    clock_arm(pulse->timer, pulse->due_ns > now_ns ? (double)(pulse->due_ns - now_ns) / 1e9 : 0);
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct pulse *pulse = arg;

    (void)fd;
    (void)what;
    count_due(pulse, clock_now_ns());
    await_next(pulse);
}

struct pulse *pulse_create(struct event_base *base) {
    struct pulse *pulse = memory_take(1, sizeof(*pulse));

    histogram_init(&pulse->lateness);
    pulse->timer = clock_timer(base, on_tick, pulse);
    return pulse;
}

void pulse_destroy(struct pulse *pulse) {
    event_free(pulse->timer);
    free(pulse);
}

void pulse_start(struct pulse *pulse) {
    pulse->cpu_us = clock_cpu_us();
    pulse->due_ns = clock_now_ns() + INTERVAL_NS;
    await_next(pulse);
}

void pulse_stop(struct pulse *pulse) {
    count_due(pulse, clock_now_ns());
    event_del(pulse->timer);
}

void pulse_forgive(struct pulse *pulse) {
    uint64_t now_ns = clock_now_ns();

    if (pulse->due_ns < now_ns) {
        if (pulse->forgiven_due_ns == 0) {
            pulse->forgiven_due_ns = pulse->due_ns;
        }
        pulse->due_ns = now_ns;
    }
    pulse->cpu_us = clock_cpu_us();
}

const struct histogram *pulse_lateness(const struct pulse *pulse) {
    return &pulse->lateness;
}

uint64_t pulse_work_ns(const struct pulse *pulse) {
    return pulse->work_ns;
}

uint64_t pulse_forgiven_ns(const struct pulse *pulse) {
    return pulse->forgiven_ns;
}
