/*
 * A loop of the library's own: an epoll descriptor, which is readable while a watched socket is
 * ready, when the time of a timer has come (a timerfd), and when there is something to do soon or
 * somebody calls redlock_loop_wake (an eventfd). Both are edge-triggered, so that nobody has to
 * read them.
 *
 * redlock_loop_run collects what is ready, in batches, and serves the sockets of all batches before
 * timers fire. A handler may end the watch of a socket that stands further back in the batch: then
 * that entry is struck out.
 */
#include "io/loop.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "io/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BATCH_MAX 64

struct pollable {
    redlock_loop loop; /* first: the methods get a pointer to it */
    int epoll, timer, waker;
    bool is_running;
    bool is_due;  /* the timer has fired */
    bool is_soon; /* loop_fire_soon is due */
    unsigned watches;
    int next, count; /* of the batch */
    struct epoll_event batch[BATCH_MAX];
};

static struct pollable *own(redlock_loop *loop) {
    return (struct pollable *)loop;
}

/*
 * Makes the descriptor readable. May be called from any thread or signal handler. write() would be
 * a cancellation point, syscall() is none.
 */
static void signal_waker(const struct pollable *self) {
    int before = errno;
    uint64_t one = 1;
    /* It fails only after 2^64 - 2 wakes, which nobody lives to see. */
    (void)syscall(SYS_write, self->waker, &one, sizeof(one));
    errno = before;
}

/* ---- methods ---- */

/* Strikes a watch out of the events that were seen and not served yet. */
static void strike_out(struct pollable *self, const struct fd_watch *watch) {
    for (int i = self->next; i < self->count; i++) {
        if (self->batch[i].data.ptr == watch) {
            self->batch[i].events = 0;
        }
    }
}

static bool pollable_watch(struct fd_watch *watch, unsigned events) {
    struct pollable *self = own(watch->loop);
    struct epoll_event event = {.data.ptr = watch};
    event.events = (events & WATCH_READABLE ? (uint32_t)EPOLLIN : 0u) |
                   (events & WATCH_WRITABLE ? (uint32_t)EPOLLOUT : 0u);
    if (events == 0) {
        epoll_ctl(self->epoll, EPOLL_CTL_DEL, watch->fd, &event);
        strike_out(self, watch);
        self->watches--;
        return true;
    }
    bool is_new = watch->events == 0;
    if (epoll_ctl(self->epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, watch->fd, &event) != 0) {
        return false;
    }
    self->watches += is_new;
    return true;
}

static void pollable_wake_at(redlock_loop *loop, uint64_t at) {
    /* Relative, and at least 1 ns: 0 would disarm it. */
    uint64_t delay = nanos_max(nanos_sub(at, clock_now()), 1);
    const struct itimerspec value = {
        .it_value = {(time_t)(delay / 1000000000), (long)(delay % 1000000000)}};
    timerfd_settime(own(loop)->timer, 0, &value, NULL);
}

static void pollable_wake_soon(redlock_loop *loop) {
    struct pollable *self = own(loop);
    self->is_soon = true;
    if (!self->is_running) { /* otherwise redlock_loop_run looks at is_soon itself */
        signal_waker(self);
    }
}

static void close_descriptor(int fd) {
    if (fd >= 0) {
        close(fd);
    }
}

static void pollable_end(redlock_loop *loop) {
    struct pollable *self = own(loop);
    close_descriptor(self->epoll);
    close_descriptor(self->timer);
    close_descriptor(self->waker);
    free(self);
}

static const struct loop_methods pollable_methods = {
    .watch = pollable_watch,
    .wake_at = pollable_wake_at,
    .wake_soon = pollable_wake_soon,
    .end = pollable_end,
};

/* ---- lifetime ---- */

static bool add_edge(const struct pollable *self, int fd, const void *mark) {
    struct epoll_event event = {.events = EPOLLIN | (uint32_t)EPOLLET, .data.ptr = (void *)mark};
    return epoll_ctl(self->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

redlock_loop *redlock_loop_pollable(void) {
    struct pollable *self = fork_init() ? calloc(1, sizeof(*self)) : NULL;
    if (self == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    loop_init(&self->loop, &pollable_methods);
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    /* The library's clock, which counts the time of a suspend. */
    self->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    self->waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->epoll < 0 || self->timer < 0 || self->waker < 0 ||
        !add_edge(self, self->timer, &self->timer) || !add_edge(self, self->waker, &self->waker)) {
        int why = errno;
        pollable_end(&self->loop);
        errno = why;
        return NULL;
    }
    return &self->loop;
}

void redlock_loop_free(redlock_loop *loop) {
    if (loop != NULL) {
        loop_drop(loop);
    }
}

/* ---- running ---- */

int redlock_loop_fd(const redlock_loop *loop) {
    return loop != NULL ? ((const struct pollable *)loop)->epoll : -1;
}

/* A child shares the eventfd with its parent: it must not wake the parent's loop. */
void redlock_loop_wake(redlock_loop *loop) {
    if (loop != NULL && !loop_is_inherited(loop)) {
        signal_waker(own(loop));
    }
}

static unsigned ready_events(uint32_t events) {
    const uint32_t failed = EPOLLERR | EPOLLHUP;
    return (events & (EPOLLIN | failed) ? WATCH_READABLE : 0u) |
           (events & (EPOLLOUT | failed) ? WATCH_WRITABLE : 0u);
}

/* Serves the sockets of a batch. */
static void serve_batch(struct pollable *self) {
    while (self->next < self->count) {
        const struct epoll_event *event = &self->batch[self->next++];
        if (event->data.ptr == &self->timer) {
            self->is_due = true;
        } else if (event->data.ptr != &self->waker && event->events != 0) {
            loop_ready(event->data.ptr, ready_events(event->events));
        }
    }
}

/*
 * Waits for events, and serves all sockets that are ready. Returns false, with errno, if the
 * descriptor cannot be waited for.
 */
static bool serve_sockets(struct pollable *self, int timeout_ms) {
    /* As many batches as the sockets fill: one that is ready again does not keep timers waiting. */
    unsigned batches = self->watches / BATCH_MAX + 1;
    int seen;
    do {
        self->next = 0;
        seen = self->count = epoll_wait(self->epoll, self->batch, BATCH_MAX, timeout_ms);
        serve_batch(self);
        self->count = 0;
        timeout_ms = 0;
    } while (seen == BATCH_MAX && --batches > 0);
    return seen >= 0 || errno == EINTR;
}

static void fire_soon(struct pollable *self) {
    if (self->is_soon) {
        self->is_soon = false;
        loop_fire_soon(&self->loop);
    }
}

static void fire_timers(struct pollable *self) {
    redlock_loop *loop = &self->loop;
    /* What was begun before goes first: a request is sent before its time is looked at. */
    fire_soon(self);
    /* The time may have come before the kernel says so. */
    if (self->is_due || (loop->wakes_at != NANOS_NEVER && clock_now() >= loop->wakes_at)) {
        self->is_due = false;
        loop_fire(loop);
    }
    fire_soon(self); /* sends what the timers have begun */
}

int redlock_loop_run(redlock_loop *loop, int timeout_ms) {
    if (loop == NULL || loop_is_inherited(loop)) {
        errno = EINVAL;
        return -1;
    }
    struct pollable *self = own(loop);
    if (self->is_running) {
        errno = EBUSY;
        return -1;
    }
    loop_hold(loop);
    self->is_running = true;
    bool is_served = serve_sockets(self, self->is_soon ? 0 : timeout_ms);
    int why = errno;
    fire_timers(self);
    self->is_running = false;
    if (self->is_soon) { /* callbacks left something to do, for the next run */
        signal_waker(self);
    }
    loop_drop(loop);
    errno = why;
    return is_served ? 0 : -1;
}
