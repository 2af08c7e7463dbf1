#include "outer.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TURN_MS 5

#ifdef HAS_UV
#include <redlock/uv.h>

struct uv {
    uv_loop_t loop;
    uv_timer_t timer; /* ends the wait of a turn */
    redlock_uv *adapter;
};

static void on_uv_timer(uv_timer_t *timer) {
    (void)timer;
}

static void *uv_create(redlock_loop **loop) {
    struct uv *uv = memory_take(1, sizeof(*uv));

    if (uv_loop_init(&uv->loop) != 0) {
        free(uv);
        return NULL;
    }
    uv_timer_init(&uv->loop, &uv->timer);
    uv_timer_start(&uv->timer, on_uv_timer, TURN_MS, TURN_MS);
    uv->adapter = redlock_uv_attach(&uv->loop);
    *loop = uv->adapter != NULL ? uv->adapter->loop : NULL;
    return uv;
}

static void uv_turn(void *outer) {
    uv_run(&((struct uv *)outer)->loop, UV_RUN_ONCE);
}

static void uv_destroy(void *outer) {
    struct uv *uv = outer;

    redlock_uv_detach(uv->adapter);
    uv_close((uv_handle_t *)&uv->timer, NULL);
    uv_run(&uv->loop, UV_RUN_DEFAULT);
    uv_loop_close(&uv->loop);
    free(uv);
}
#endif

#ifdef HAS_EV
#include <redlock/ev.h>

struct ev {
    struct ev_loop *loop;
    ev_timer timer; /* ends the wait of a turn */
    redlock_ev *adapter;
};

static void on_ev_timer(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop;
    (void)timer;
    (void)events;
}

static void *ev_create(redlock_loop **loop) {
    struct ev *ev = memory_take(1, sizeof(*ev));

    ev->loop = ev_loop_new(EVFLAG_AUTO);
    if (ev->loop == NULL) {
        free(ev);
        return NULL;
    }
    ev_timer_init(&ev->timer, on_ev_timer, TURN_MS / 1e3, TURN_MS / 1e3);
    ev_timer_start(ev->loop, &ev->timer);
    ev->adapter = redlock_ev_attach(ev->loop);
    *loop = ev->adapter != NULL ? ev->adapter->loop : NULL;
    return ev;
}

static void ev_turn(void *outer) {
    ev_run(((struct ev *)outer)->loop, EVRUN_ONCE);
}

static void ev_destroy(void *outer) {
    struct ev *ev = outer;

    redlock_ev_detach(ev->adapter);
    ev_timer_stop(ev->loop, &ev->timer);
    ev_loop_destroy(ev->loop);
    free(ev);
}
#endif

#ifdef HAS_GLIB
#include <redlock/glib.h>

struct glib {
    GMainContext *context;
    GSource *timer; /* ends the wait of a turn */
    redlock_glib *adapter;
};

static gboolean on_glib_timer(gpointer arg) {
    (void)arg;
    return G_SOURCE_CONTINUE;
}

static void *glib_create(redlock_loop **loop) {
    struct glib *glib = memory_take(1, sizeof(*glib));

    glib->context = g_main_context_new();
    glib->timer = g_timeout_source_new(TURN_MS);
    g_source_set_callback(glib->timer, on_glib_timer, NULL, NULL);
    g_source_attach(glib->timer, glib->context);
    glib->adapter = redlock_glib_attach(glib->context);
    *loop = glib->adapter != NULL ? glib->adapter->loop : NULL;
    return glib;
}

static void glib_turn(void *outer) {
    g_main_context_iteration(((struct glib *)outer)->context, TRUE);
}

static void glib_destroy(void *outer) {
    struct glib *glib = outer;

    redlock_glib_detach(glib->adapter);
    g_source_destroy(glib->timer);
    g_source_unref(glib->timer);
    g_main_context_unref(glib->context);
    free(glib);
}
#endif

#ifdef HAS_SDEVENT
#include <redlock/sdevent.h>

struct sd {
    sd_event *event;
    redlock_sdevent *adapter;
};

static void *sd_create(redlock_loop **loop) {
    struct sd *sd = memory_take(1, sizeof(*sd));

    if (sd_event_new(&sd->event) < 0) {
        free(sd);
        return NULL;
    }
    sd->adapter = redlock_sdevent_attach(sd->event);
    *loop = sd->adapter != NULL ? sd->adapter->loop : NULL;
    return sd;
}

static void sd_turn(void *outer) {
    sd_event_run(((struct sd *)outer)->event, TURN_MS * 1000);
}

static void sd_destroy(void *outer) {
    struct sd *sd = outer;

    redlock_sdevent_detach(sd->adapter);
    sd_event_unref(sd->event);
    free(sd);
}
#endif

struct epoll {
    int fd;
    redlock_loop *loop;
};

static void *own_create(redlock_loop **loop) {
    struct epoll *epoll = memory_take(1, sizeof(*epoll));
    struct epoll_event event = {.events = EPOLLIN};

    epoll->fd = epoll_create1(EPOLL_CLOEXEC);
    epoll->loop = redlock_loop_pollable();
    *loop = epoll_ctl(epoll->fd, EPOLL_CTL_ADD, redlock_loop_fd(epoll->loop), &event) == 0
                ? epoll->loop
                : NULL;
    return epoll;
}

static void own_turn(void *outer) {
    const struct epoll *epoll = outer;
    struct epoll_event event;

    if (epoll_wait(epoll->fd, &event, 1, TURN_MS) == 1) {
        redlock_loop_run(epoll->loop, 0);
    }
}

static void own_destroy(void *outer) {
    struct epoll *epoll = outer;

    redlock_loop_free(epoll->loop);
    close(epoll->fd);
    free(epoll);
}

static const struct outer_kind kinds[] = {
#ifdef HAS_UV
    {"uv", "libuv", true, uv_create, uv_turn, uv_destroy},
#else
    {.name = "uv", .library = "libuv"},
#endif
#ifdef HAS_EV
    {"ev", "libev", true, ev_create, ev_turn, ev_destroy},
#else
    {.name = "ev", .library = "libev"},
#endif
#ifdef HAS_GLIB
    {"glib", "GLib", true, glib_create, glib_turn, glib_destroy},
#else
    {.name = "glib", .library = "GLib"},
#endif
#ifdef HAS_SDEVENT
    {"sd", "libsystemd", true, sd_create, sd_turn, sd_destroy},
#else
    {.name = "sd", .library = "libsystemd"},
#endif
    {"epoll", "libc", true, own_create, own_turn, own_destroy},
};

const struct outer_kind *outer_find(const char *name) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}
