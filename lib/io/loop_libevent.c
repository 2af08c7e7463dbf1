/* The loop of libevent. Each client has one of its own, on the application's event_base. */
#include "io/loop.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "io/clock.h"

#include <event2/event.h>
#include <event2/event_struct.h>

/* Maximum delay, 1 year: libevent adds the delay to its own clock, which must not overflow. */
#define LONGEST_DELAY (UINT64_C(31536000000) * NANOS_PER_MS)

struct libevent_loop {
    redlock_loop loop; /* first: the methods get a pointer to it */
    struct event_base *base;
    redlock_allocator allocator;
    struct event due, soon;
};

/* The slot of a watch. */
struct watch_events {
    struct event readable, writable;
};

static struct libevent_loop *own(redlock_loop *loop) {
    return (struct libevent_loop *)loop;
}

/* ---- descriptors ---- */

static void on_event(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    loop_ready(arg, (events & EV_READ ? WATCH_READABLE : 0u) |
                        (events & EV_WRITE ? WATCH_WRITABLE : 0u));
}

static bool make_slot(struct fd_watch *watch, const struct libevent_loop *loop) {
    struct watch_events *slot = memory_zalloc(&loop->allocator, sizeof(*slot));
    if (slot == NULL) {
        return false;
    }
    event_assign(&slot->readable, loop->base, watch->fd, EV_READ | EV_PERSIST, on_event, watch);
    event_assign(&slot->writable, loop->base, watch->fd, EV_WRITE | EV_PERSIST, on_event, watch);
    watch->slot = slot;
    return true;
}

static void free_slot(struct fd_watch *watch) {
    struct watch_events *slot = watch->slot;
    event_del(&slot->readable);
    event_del(&slot->writable);
    memory_free(&own(watch->loop)->allocator, slot);
    watch->slot = NULL;
}

/* Changes the events of a watch that has a slot. */
static bool change_events(const struct fd_watch *watch, unsigned events) {
    struct watch_events *slot = watch->slot;
    unsigned added = events & ~watch->events;
    unsigned removed = watch->events & ~events;
    /* Additions first: they can fail, and removals cannot. */
    if ((added & WATCH_READABLE && event_add(&slot->readable, NULL) != 0) ||
        (added & WATCH_WRITABLE && event_add(&slot->writable, NULL) != 0)) {
        return false;
    }
    if (removed & WATCH_READABLE) {
        event_del(&slot->readable);
    }
    if (removed & WATCH_WRITABLE) {
        event_del(&slot->writable);
    }
    return true;
}

static bool libevent_watch(struct fd_watch *watch, unsigned events) {
    if (events == 0) {
        free_slot(watch);
        return true;
    }
    if (watch->slot == NULL && !make_slot(watch, own(watch->loop))) {
        return false;
    }
    if (change_events(watch, events)) {
        return true;
    }
    if (watch->events == 0) {
        free_slot(watch);
    }
    return false;
}

/* ---- timers ---- */

static void on_due(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    loop_fire(arg);
}

static void on_soon(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    loop_fire_soon(arg);
}

static void libevent_wake_at(redlock_loop *loop, uint64_t at) {
    uint64_t delay = nanos_min(nanos_sub(at, clock_now()), LONGEST_DELAY);
    uint64_t micros = delay / 1000 + (delay % 1000 != 0); /* rounded up: never early */
    struct timeval tv = {.tv_sec = (time_t)(micros / 1000000),
                         .tv_usec = (suseconds_t)(micros % 1000000)};
    /* Out of memory: the timers are looked at in each iteration, until the event can be added. */
    if (event_add(&own(loop)->due, &tv) != 0) {
        event_active(&own(loop)->due, EV_TIMEOUT, 0);
    }
}

static void libevent_wake_soon(redlock_loop *loop) {
    event_active(&own(loop)->soon, EV_TIMEOUT, 0);
}

/* ---- lifetime ---- */

static void libevent_end(redlock_loop *loop) {
    struct libevent_loop *self = own(loop);
    redlock_allocator allocator = self->allocator;
    event_del(&self->due);
    event_del(&self->soon);
    memory_free(&allocator, self);
}

static const struct loop_methods libevent_methods = {
    .watch = libevent_watch,
    .wake_at = libevent_wake_at,
    .wake_soon = libevent_wake_soon,
    .end = libevent_end,
};

redlock_loop *loop_on_libevent(struct event_base *base, const redlock_allocator *allocator) {
    struct libevent_loop *self = memory_zalloc(allocator, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    loop_init(&self->loop, &libevent_methods);
    self->base = base;
    self->allocator = *allocator;
    event_assign(&self->due, base, -1, 0, on_due, self);
    event_assign(&self->soon, base, -1, 0, on_soon, self);
    return &self->loop;
}
