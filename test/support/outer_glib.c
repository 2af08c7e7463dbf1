#include "harness.h"
#include "outer.h"

#include <redlock/glib.h>

struct outer {
    GMainContext *context;
    redlock_glib *adapters[OUTER_ADAPTERS];
    GSource *timer;
    void (*on_tick)(void *arg);
    void *arg;
};

const bool outer_can_nest = true;

struct outer *outer_open(void) {
    struct outer *outer = calloc(1, sizeof(*outer));

    assert_non_null(outer);
    outer->context = g_main_context_new();
    return outer;
}

void outer_close(struct outer *outer) {
    g_main_context_unref(outer->context);
    free(outer);
}

redlock_loop *outer_attach(struct outer *outer, size_t number) {
    outer->adapters[number] = redlock_glib_attach(outer->context);
    return outer->adapters[number] != NULL ? outer->adapters[number]->loop : NULL;
}

void outer_detach(struct outer *outer, size_t number) {
    redlock_glib_detach(outer->adapters[number]);
}

void outer_refuses(void) {
    redlock_glib_detach(NULL);
}

void outer_turn(struct outer *outer) {
    g_main_context_iteration(outer->context, TRUE);
}

/* The context's own descriptor, by which other threads wake it, is always watched. */
bool outer_is_empty(struct outer *outer) {
    int timeout_ms;
    int priority;
    GPollFD fds[4];
    int count;

    assert_true(g_main_context_acquire(outer->context));
    g_main_context_prepare(outer->context, &priority);
    count = g_main_context_query(outer->context, G_MAXINT, &timeout_ms, fds, 4);
    g_main_context_release(outer->context);
    return count == 1 && timeout_ms == -1;
}

static gboolean on_timer(gpointer arg) {
    struct outer *outer = arg;

    outer->on_tick(outer->arg);
    return G_SOURCE_CONTINUE;
}

void outer_start_timer(struct outer *outer, void (*on_tick)(void *arg), void *arg) {
    outer->on_tick = on_tick;
    outer->arg = arg;
    outer->timer = g_timeout_source_new(1);
    g_source_set_callback(outer->timer, on_timer, outer, NULL);
    g_source_set_can_recurse(outer->timer, TRUE);
    g_source_attach(outer->timer, outer->context);
}

void outer_stop_timer(struct outer *outer) {
    g_source_destroy(outer->timer);
    g_source_unref(outer->timer);
}

bool outer_is_quiet_in_child(struct outer *outer) {
    for (size_t i = 0; i < 3; i++) {
        g_main_context_iteration(outer->context, FALSE);
    }
    return outer_is_empty(outer);
}
