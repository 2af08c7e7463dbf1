/*
 * libredlock on a libuv loop. A header of its own over redlock/loop.h; the program links libuv.
 *
 *     redlock_uv *adapter = redlock_uv_attach(uv_default_loop());
 *     redlock_client_create_on(adapter->loop, &options, &client, &error);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);
 *
 * Callbacks of the library run inside uv_run, on its thread, and may do anything that callbacks of
 * libuv may. Detach in the last on_closed, or later; uv_run does not return by itself before.
 */
#ifndef REDLOCK_UV_H
#define REDLOCK_UV_H

#include <errno.h>
#include <redlock/loop.h>
#include <stdlib.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop of the library on a libuv loop. Read only `loop`; `poll` is there for uv_unref. */
typedef struct redlock_uv {
    redlock_loop *loop; /* for redlock_client_create_on */
    uv_poll_t poll;     /* watches its descriptor */
} redlock_uv;

/*
 * Runs the library when it has something to do. libuv reports as readable only what epoll does, so
 * `status` says nothing that the run would not find itself.
 */
static inline void redlock_uv_on_readable_(uv_poll_t *poll, int status, int events) {
    redlock_uv *self = (redlock_uv *)poll->data;
    (void)status;
    (void)events;
    /* A child of fork() that runs its copy of the loop would spin: nothing is done there. */
    if (redlock_loop_run(self->loop, 0) != 0 && errno == EINVAL &&
        !uv_is_closing((const uv_handle_t *)poll)) {
        uv_poll_stop(poll);
    }
}

/* Frees what libuv has used until now. */
static inline void redlock_uv_on_closed_(uv_handle_t *handle) {
    free(handle->data);
}

/*
 * Creates a loop of the library, and attaches it to a libuv loop, which must outlive it. There may
 * be several on one. Returns NULL, with errno, on failure.
 */
static inline redlock_uv *redlock_uv_attach(uv_loop_t *uv) {
    redlock_uv *self = (redlock_uv *)malloc(sizeof(*self));
    int error;
    if (self == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    self->loop = redlock_loop_pollable();
    error =
        self->loop == NULL ? -errno : uv_poll_init(uv, &self->poll, redlock_loop_fd(self->loop));
    if (error != 0) {
        redlock_loop_free(self->loop);
        free(self);
        errno = -error; /* libuv's errors are negative ones of the system */
        return NULL;
    }
    self->poll.data = self;
    error = uv_poll_start(&self->poll, UV_READABLE, redlock_uv_on_readable_);
    if (error != 0) {
        uv_close((uv_handle_t *)&self->poll, redlock_uv_on_closed_);
        redlock_loop_free(self->loop);
        errno = -error;
        return NULL;
    }
    return self;
}

/*
 * Detaches the loop, and frees it, when all of its clients have closed: in the last on_closed, or
 * later. `self` is invalid from then on; libuv closes its handle in the next turn of uv_run, which
 * must come before uv_loop_close. NULL is allowed.
 */
static inline void redlock_uv_detach(redlock_uv *self) {
    if (self != NULL) {
        redlock_loop *loop = self->loop;
        uv_close((uv_handle_t *)&self->poll, redlock_uv_on_closed_);
        redlock_loop_free(loop);
    }
}

#ifdef __cplusplus
}
#endif

#endif
