#include "harness.h"
#include "outer.h"

#include <redlock/ev.h>

struct outer {
    struct ev_loop *ev;
    redlock_ev *adapters[OUTER_ADAPTERS];
    ev_timer timer;
    void (*on_tick)(void *arg);
    void *arg;
};

const bool outer_can_nest = true;

struct outer *outer_open(void) {
    struct outer *outer = calloc(1, sizeof(*outer));

    assert_non_null(outer);
    outer->ev = ev_loop_new(EVFLAG_AUTO);
    assert_non_null(outer->ev);
    return outer;
}

void outer_close(struct outer *outer) {
    assert_false(ev_run(outer->ev, 0));
    ev_loop_destroy(outer->ev);
    free(outer);
}

redlock_loop *outer_attach(struct outer *outer, size_t number) {
    outer->adapters[number] = redlock_ev_attach(outer->ev);
    return outer->adapters[number] != NULL ? outer->adapters[number]->loop : NULL;
}

void outer_detach(struct outer *outer, size_t number) {
    redlock_ev_detach(outer->adapters[number]);
}

void outer_refuses(void) {
    redlock_ev_detach(NULL);
}

void outer_turn(struct outer *outer) {
    ev_run(outer->ev, EVRUN_ONCE);
}

bool outer_is_empty(struct outer *outer) {
    return !ev_run(outer->ev, EVRUN_NOWAIT);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events) {
    struct outer *outer = timer->data;
    (void)ev;
    (void)events;
    outer->on_tick(outer->arg);
}

void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg) {
    outer->on_tick = on_tick;
    outer->arg = arg;
    ev_timer_init(&outer->timer, on_timer, 0.001, 0.001);
    outer->timer.data = outer;
    ev_timer_start(outer->ev, &outer->timer);
}

void outer_stop_timer(struct outer *outer) {
    ev_timer_stop(outer->ev, &outer->timer);
}

bool outer_is_quiet_in_child(struct outer *outer) {
    ev_loop_fork(outer->ev);
    for (size_t i = 0; i < 3; i++) {
        ev_run(outer->ev, EVRUN_NOWAIT);
    }
    return outer_is_empty(outer);
}
