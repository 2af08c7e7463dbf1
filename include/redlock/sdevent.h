/*
 * libredlock on an event loop of systemd. A header of its own over redlock/loop.h; the program
 * links libsystemd.
 *
 *     redlock_sdevent *adapter = redlock_sdevent_attach(event);
 *     redlock_client_create_on(adapter->loop, &options, &client, &error);
 *     sd_event_loop(event);
 *
 * Callbacks of the library run inside sd_event_loop, on its thread, and may do anything that
 * handlers of sd-event may. Detach in the last on_closed, or later. sd_event_exit ends the loop at
 * once, so close the clients before, and call it in the last on_closed.
 */
#ifndef REDLOCK_SDEVENT_H
#define REDLOCK_SDEVENT_H

#include <errno.h>
#include <redlock/loop.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop of the library on an sd_event. Read only `loop`; `source` is there for its priority. */
typedef struct redlock_sdevent {
    redlock_loop *loop;      /* for redlock_client_create_on */
    sd_event_source *source; /* watches its descriptor */
} redlock_sdevent;

/* Runs the library when it has something to do. A callback may detach, which frees `arg`. */
static inline int redlock_sdevent_on_readable_(sd_event_source *source, int fd, uint32_t events,
                                               void *arg) {
    redlock_sdevent *self = (redlock_sdevent *)arg;
    (void)source;
    (void)fd;
    (void)events;
    redlock_loop_run(self->loop, 0);
    return 0;
}

/*
 * Creates a loop of the library, and attaches it to an sd_event, which it references until it is
 * detached. There may be several on one. Returns NULL, with errno, on failure.
 */
static inline redlock_sdevent *redlock_sdevent_attach(sd_event *event) {
    redlock_sdevent *self = (redlock_sdevent *)malloc(sizeof(*self));
    int error;
    if (self == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    self->loop = redlock_loop_pollable();
    error = self->loop == NULL ? -errno
                               : sd_event_add_io(event, &self->source, redlock_loop_fd(self->loop),
                                                 EPOLLIN, redlock_sdevent_on_readable_, self);
    if (error < 0) {
        redlock_loop_free(self->loop);
        free(self);
        errno = -error; /* sd-event's errors are negative ones of the system */
        return NULL;
    }
    return self;
}

/*
 * Detaches the loop, and frees it, when all of its clients have closed: in the last on_closed, or
 * later. `self` is invalid from then on. NULL is allowed.
 */
static inline void redlock_sdevent_detach(redlock_sdevent *self) {
    if (self != NULL) {
        redlock_loop *loop = self->loop;
        sd_event_source_unref(self->source);
        redlock_loop_free(loop);
        free(self);
    }
}

#ifdef __cplusplus
}
#endif

#endif
