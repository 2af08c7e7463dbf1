/*
 * Timers on the application's event loop (libevent).
 *
 * A timer never fires before its instant by the library's clock, whatever the loop's clock says; it
 * may fire late. Setting a timer to a later instant costs nothing: it wakes at the old instant and
 * goes back to sleep.
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
    uint64_t at;       /* instant to fire at; NANOS_NEVER: not set */
    uint64_t armed_at; /* instant known to libevent; NANOS_NEVER: none */
    const struct loop *loop;
    struct event *event;
};

/* Initializes a timer that calls `on_time` from the loop. Returns false when out of memory. */
bool timer_init(struct timer *timer, const struct loop *loop, void (*on_time)(void *arg),
                void *arg);

/* Frees what the timer holds, also from its own on_time. The timer may be all zeros. */
void timer_finish(struct timer *timer);

/*
 * Sets the timer to fire once at `at`, which replaces any earlier setting. Returns false when
 * libevent is out of memory: then the timer is not set.
 */
bool timer_set(struct timer *timer, uint64_t at);

void timer_clear(struct timer *timer);

/* Fires the timer in this iteration of the loop, after the events already due. Cannot fail. */
void timer_soon(struct timer *timer);

#endif
