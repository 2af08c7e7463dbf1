/*
 * libredlock on a libev loop. A header of its own over redlock/loop.h; the program links libev.
 *
 *     redlock_ev *adapter = redlock_ev_attach(EV_DEFAULT);
 *     redlock_client_create_on(adapter->loop, &options, &client, &error);
 *     ev_run(EV_DEFAULT_ 0);
 *
 * Callbacks of the library run inside ev_run, on its thread, and may do anything that callbacks of
 * libev may. Detach in the last on_closed, or later; ev_run does not return by itself before.
 *
 * A callback may run the ev_loop again: other watchers are served meanwhile, but no client, because
 * callbacks of the library are never nested.
 */
#ifndef REDLOCK_EV_H
#define REDLOCK_EV_H

#include <errno.h>
#include <ev.h>
#include <redlock/loop.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop of the library on a libev loop. Read only `loop`; `io` is there for its priority. */
typedef struct redlock_ev {
    redlock_loop *loop; /* for redlock_client_create_on */
    ev_io io;           /* watches its descriptor */
#if EV_MULTIPLICITY
    struct ev_loop *ev; /* EV_A */
#endif
    bool is_running;  /* the library runs */
    bool is_detached; /* inside that: is freed after it */
} redlock_ev;

/* Runs the library when it has something to do. */
static inline void redlock_ev_on_readable_(EV_P_ ev_io *io, int events) {
    redlock_ev *self = (redlock_ev *)io->data;
    bool is_inherited;
    (void)events;
    if (self->is_running) { /* a callback runs the ev_loop, which would spin */
        ev_io_stop(EV_A_ io);
        return;
    }
    self->is_running = true;
    is_inherited = redlock_loop_run(self->loop, 0) != 0 && errno == EINVAL;
    self->is_running = false;
    if (self->is_detached) {
        free(self);
    } else if (is_inherited) { /* a child of fork() would spin: nothing is done there */
        ev_io_stop(EV_A_ io);
    } else {
        ev_io_start(EV_A_ io); /* if a nested call has stopped it */
    }
}

/*
 * Creates a loop of the library, and attaches it to a libev loop, which must outlive it:
 * `redlock_ev_attach(EV_DEFAULT)`, or an ev_loop of your own. There may be several on one. Returns
 * NULL, with errno, on failure.
 */
static inline redlock_ev *redlock_ev_attach(EV_P) {
    redlock_ev *self = (redlock_ev *)calloc(1, sizeof(*self));
    ev_io *io;
    if (self == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    self->loop = redlock_loop_pollable();
    if (self->loop == NULL) {
        int error = errno;
        free(self);
        errno = error;
        return NULL;
    }
#if EV_MULTIPLICITY
    self->ev = EV_A;
#endif
    io = &self->io;
    ev_io_init(io, redlock_ev_on_readable_, redlock_loop_fd(self->loop), EV_READ);
    io->data = self;
    ev_io_start(EV_A_ io);
    return self;
}

/*
 * Detaches the loop, and frees it, when all of its clients have closed: in the last on_closed, or
 * later. `self` is invalid from then on. NULL is allowed.
 */
static inline void redlock_ev_detach(redlock_ev *self) {
    if (self != NULL) {
#if EV_MULTIPLICITY
        struct ev_loop *loop = self->ev; /* EV_A */
#endif
        ev_io *io = &self->io;
        ev_io_stop(EV_A_ io);
        redlock_loop_free(self->loop);
        if (self->is_running) {
            self->is_detached = true;
        } else {
            free(self);
        }
    }
}

#ifdef __cplusplus
}
#endif

#endif
