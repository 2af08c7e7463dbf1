#include "world.h"

#include "base/nanos.h"
#include "check.h"
#include "io/clock.h"
#include "io/loop.h"

#include <errno.h>
#include <stdlib.h>

/* Rounds of sockets in a turn: what a peer sent in answer to a command is read in the same turn. */
#define ROUNDS 4

/* More than the connections of a client with all peers. */
#define WATCHES_MAX 64

/* The loop of all runs, in place of those of lib/io. */
static redlock_loop loop;
static struct fd_watch *watches[WATCHES_MAX];
static unsigned watch_count;
static bool is_soon;
static uint64_t now;
static unsigned refuse_after, refuse_count;

/* ---- the clock ---- */

uint64_t clock_now(void) {
    return now;
}

uint64_t clock_glance(void) {
    return clock_now();
}

uint64_t clock_wall_us(void) {
    return clock_now() / 1000;
}

int64_t clock_wall_ahead(void) {
    return 0;
}

/* Lets time pass, but never beyond the range of the clock. */
void world_pass(uint64_t nanos) {
    now = nanos_min(nanos_add(now, nanos), UINT64_MAX - 1000 * NANOS_PER_MS);
}

/* ---- the methods of the loop ---- */

void world_refuse_watches(unsigned after, unsigned count) {
    refuse_after = after;
    refuse_count = count;
}

static bool is_refused(void) {
    if (refuse_count == 0) {
        return false;
    }
    if (refuse_after > 0) {
        refuse_after--;
        return false;
    }
    refuse_count--;
    return true;
}

static void unlist(const struct fd_watch *watch) {
    for (unsigned i = 0; i < watch_count; i++) {
        if (watches[i] == watch) {
            watches[i] = watches[--watch_count];
            return;
        }
    }
    CHECK(false); /* the library ended a watch that was not set */
}

static bool world_watch(struct fd_watch *watch, unsigned events) {
    if (events == 0) {
        unlist(watch);
        return true;
    }
    if (is_refused()) {
        return false;
    }
    if (watch->events == 0) {
        CHECK(watch_count < WATCHES_MAX);
        watches[watch_count++] = watch;
    }
    return true;
}

static void world_wake_at(redlock_loop *given, uint64_t at) {
    (void)given;
    (void)at; /* world_turn looks at wakes_at */
}

static void world_wake_soon(redlock_loop *given) {
    (void)given;
    is_soon = true;
}

static void world_free(redlock_loop *given) {
    (void)given;
    CHECK(false); /* the world is a user of its loop */
}

static const struct loop_methods methods = {
    .watch = world_watch,
    .wake_at = world_wake_at,
    .wake_soon = world_wake_soon,
    .end = world_free,
};

struct event_base *world_base(void) {
    return (struct event_base *)(void *)&loop;
}

redlock_loop *loop_on_libevent(struct event_base *base, const redlock_allocator *allocator) {
    (void)base;
    (void)allocator;
    loop_hold(&loop);
    return &loop;
}

/* ---- turns ---- */

static unsigned events_of(short revents) {
    const short failed = POLLERR | POLLHUP;
    return (revents & (POLLIN | failed) ? WATCH_READABLE : 0u) |
           (revents & (POLLOUT | failed) ? WATCH_WRITABLE : 0u);
}

static bool is_watched(const struct fd_watch *watch) {
    for (unsigned i = 0; i < watch_count; i++) {
        if (watches[i] == watch) {
            return true;
        }
    }
    return false;
}

int world_poll(struct pollfd *fds, nfds_t count) {
    int ready;
    do {
        ready = poll(fds, count, 0);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

static void serve_sockets(void) {
    struct pollfd fds[WATCHES_MAX];
    struct fd_watch *polled[WATCHES_MAX];
    unsigned count = watch_count;
    for (unsigned i = 0; i < count; i++) {
        polled[i] = watches[i];
        fds[i] = (struct pollfd){.fd = watches[i]->fd};
        fds[i].events = (short)((watches[i]->events & WATCH_READABLE ? POLLIN : 0) |
                                (watches[i]->events & WATCH_WRITABLE ? POLLOUT : 0));
    }
    CHECK(world_poll(fds, count) >= 0);
    for (unsigned i = 0; i < count; i++) {
        if (fds[i].revents != 0 && is_watched(polled[i])) { /* not ended by one before */
            loop_ready(polled[i], events_of(fds[i].revents));
        }
    }
}

void world_turn(void) {
    for (unsigned i = 0; i < ROUNDS; i++) {
        serve_sockets();
    }
    names_turn();
    if (loop.wakes_at <= now) {
        loop_fire(&loop);
    }
    if (is_soon) {
        is_soon = false;
        loop_fire_soon(&loop);
    }
}

/* ---- runs ---- */

void world_begin(void) {
    now = 1000 * NANOS_PER_MS;
    world_refuse_watches(0, 0);
    loop_init(&loop, &methods);
    is_soon = false;
    random_begin();
    world_has_random(true);
}

void world_end(void) {
    CHECK(watch_count == 0 && loop.users == 1);
    CHECK(TAILQ_EMPTY(&loop.waiting) && TAILQ_EMPTY(&loop.soon));
    names_end();
}
