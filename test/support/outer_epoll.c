/* An epoll loop of the application's own, which needs no adapter: the descriptor is one more. */
#include "harness.h"
#include "outer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct outer {
    int epoll;
    redlock_loop *loops[OUTER_ADAPTERS];
    int timer; /* -1: none */
    size_t watched;
    void (*on_tick)(void *arg);
    void *arg;
};

const bool outer_can_nest = false;

struct outer *outer_open(void) {
    struct outer *outer = calloc(1, sizeof(*outer));

    assert_non_null(outer);
    outer->epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_true(outer->epoll >= 0);
    outer->timer = -1;
    return outer;
}

void outer_close(struct outer *outer) {
    close(outer->epoll);
    free(outer);
}

static void watch(struct outer *outer, int fd, void *mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};

    assert_int_equal(epoll_ctl(outer->epoll, EPOLL_CTL_ADD, fd, &event), 0);
    outer->watched++;
}

static void unwatch(struct outer *outer, int fd) {
    assert_int_equal(epoll_ctl(outer->epoll, EPOLL_CTL_DEL, fd, NULL), 0);
    outer->watched--;
}

redlock_loop *outer_attach(struct outer *outer, size_t number) {
    redlock_loop *loop = redlock_loop_pollable();

    outer->loops[number] = loop;
    if (loop != NULL) {
        watch(outer, redlock_loop_fd(loop), loop);
    }
    return loop;
}

void outer_detach(struct outer *outer, size_t number) {
    unwatch(outer, redlock_loop_fd(outer->loops[number]));
    redlock_loop_free(outer->loops[number]);
}

void outer_refuses(void) {
    redlock_loop_free(NULL);
}

void outer_turn(struct outer *outer) {
    struct epoll_event event;
    int ready = epoll_wait(outer->epoll, &event, 1, -1);

    if (ready == 1 && event.data.ptr != outer) {
        assert_int_equal(redlock_loop_run(event.data.ptr, 0), 0);
    } else if (ready == 1) {
        uint64_t times;

        assert_int_equal(read(outer->timer, &times, sizeof(times)), sizeof(times));
        outer->on_tick(outer->arg);
    } else {
        assert_int_equal(errno, EINTR);
    }
}

bool outer_is_empty(struct outer *outer) {
    return outer->watched == 0;
}

void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg) {
    const struct itimerspec each_ms = {{0, 1000000}, {0, 1000000}};

    outer->on_tick = on_tick;
    outer->arg = arg;
    outer->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    assert_true(outer->timer >= 0);
    assert_int_equal(timerfd_settime(outer->timer, 0, &each_ms, NULL), 0);
    watch(outer, outer->timer, outer);
}

void outer_stop_timer(struct outer *outer) {
    unwatch(outer, outer->timer);
    close(outer->timer);
}

/* The loop of a child is the application's own affair: it gets EINVAL, and may end the watch. */
bool outer_is_quiet_in_child(struct outer *outer) {
    return redlock_loop_run(outer->loops[0], 0) == -1 && errno == EINVAL;
}
