#include "harness.h"
#include "outer.h"

#include <redlock/uv.h>

struct outer {
    uv_loop_t uv;
    redlock_uv *adapters[OUTER_ADAPTERS];
    uv_timer_t timer;
    void (*on_tick)(void *arg);
    void *arg;
};

const bool outer_can_nest = false;

struct outer *outer_open(void) {
    struct outer *outer = calloc(1, sizeof(*outer));

    assert_non_null(outer);
    assert_int_equal(uv_loop_init(&outer->uv), 0);
    return outer;
}

void outer_close(struct outer *outer) {
    assert_int_equal(uv_run(&outer->uv, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&outer->uv), 0);
    free(outer);
}

redlock_loop *outer_attach(struct outer *outer, size_t number) {
    outer->adapters[number] = redlock_uv_attach(&outer->uv);
    return outer->adapters[number] != NULL ? outer->adapters[number]->loop : NULL;
}

void outer_detach(struct outer *outer, size_t number) {
    redlock_uv_detach(outer->adapters[number]);
}

void outer_refuses(void) {
    redlock_uv_detach(NULL);
}

void outer_turn(struct outer *outer) {
    uv_run(&outer->uv, UV_RUN_ONCE);
}

bool outer_is_empty(struct outer *outer) {
    uv_run(&outer->uv, UV_RUN_NOWAIT); /* handles that are being closed */
    return !uv_loop_alive(&outer->uv);
}

static void on_timer(uv_timer_t *timer) {
    struct outer *outer = timer->data;

    outer->on_tick(outer->arg);
}

void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg) {
    outer->on_tick = on_tick;
    outer->arg = arg;
    assert_int_equal(uv_timer_init(&outer->uv, &outer->timer), 0);
    outer->timer.data = outer;
    assert_int_equal(uv_timer_start(&outer->timer, on_timer, 1, 1), 0);
}

void outer_stop_timer(struct outer *outer) {
    uv_close((uv_handle_t *)&outer->timer, NULL);
}

bool outer_is_quiet_in_child(struct outer *outer) {
    if (uv_loop_fork(&outer->uv) != 0) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        uv_run(&outer->uv, UV_RUN_NOWAIT);
    }
    return !uv_loop_alive(&outer->uv);
}
