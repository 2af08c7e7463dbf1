/*
 * The application's event loop (libevent), as the library sees it: timers.
 *
 * A timer fires no earlier than it was set for by the library's own clock, whatever the loop's
 * clock thinks; it may fire late. Setting one for later than it is armed for costs nothing: it
 * wakes at the old instant and goes on sleeping.
 */
#ifndef REDLOCK_IO_LOOP_H
#define REDLOCK_IO_LOOP_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct event;

struct loop {
    struct event_base *base;
    const redlock_allocator *allocator;
};

struct timer {
    void (*on_time)(void *arg);
    void *arg;
    uint64_t at;       /* NANOS_NEVER: not set */
    uint64_t armed_at; /* NANOS_NEVER: libevent does not know of it */
    const struct loop *loop;
    struct event *event;
};

/* False when out of memory. `on_time` is called from the loop. */
bool timer_init(struct timer *timer, const struct loop *loop, void (*on_time)(void *arg),
                void *arg);

/* May be called from its own on_time. Takes a timer that is all zeros. */
void timer_finish(struct timer *timer);

/*
 * Fires once at `at`; replaces an earlier setting. False when libevent had no memory: then the
 * timer is not set.
 */
bool timer_set(struct timer *timer, uint64_t at);

void timer_clear(struct timer *timer);

/* Fires in this turn of the loop, after the events that are already due. Cannot fail. */
void timer_soon(struct timer *timer);

#endif
