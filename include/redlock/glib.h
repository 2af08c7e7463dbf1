/*
 * libredlock on a main context of GLib. A header of its own over redlock/loop.h; the program links
 * GLib.
 *
 *     redlock_glib *adapter = redlock_glib_attach(NULL);
 *     redlock_client_create_on(adapter->loop, &options, &client, &error);
 *     g_main_loop_run(main_loop);
 *
 * Callbacks of the library run inside the context's iterations, on the thread that runs them, and
 * may do anything that a GSource may. Detach in the last on_closed, or later.
 *
 * A callback may run the context again, as a modal dialog does: other sources are dispatched
 * meanwhile, but no client is served, because callbacks of the library are never nested.
 */
#ifndef REDLOCK_GLIB_H
#define REDLOCK_GLIB_H

#include <errno.h>
#include <glib.h>
#include <redlock/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop of the library as a source. Read only `loop`; `source` is there for its priority. */
typedef struct redlock_glib {
    GSource source;     /* first: GLib frees it */
    redlock_loop *loop; /* for redlock_client_create_on */
    gpointer tag;       /* of its descriptor in the source */
    bool is_paused;     /* the descriptor is not watched */
} redlock_glib;

/* Runs the library when it has something to do. */
static inline gboolean redlock_glib_dispatch_(GSource *source, GSourceFunc callback, gpointer arg) {
    redlock_glib *self = (redlock_glib *)source; /* GLib keeps it until this returns */
    int error = redlock_loop_run(self->loop, 0) == 0 ? 0 : errno;
    (void)callback;
    (void)arg;
    if (g_source_is_destroyed(source)) { /* a callback has detached it */
        return G_SOURCE_REMOVE;
    }
    if (error == EBUSY && !self->is_paused) { /* a callback runs the context, which would spin */
        g_source_modify_unix_fd(source, self->tag, (GIOCondition)0);
        self->is_paused = true;
    } else if (error != EBUSY && self->is_paused) {
        g_source_modify_unix_fd(source, self->tag, G_IO_IN);
        self->is_paused = false;
    }
    /* A child of fork() would spin: nothing is done there. */
    return error == EINVAL ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

/*
 * Creates a loop of the library, and attaches it to a context; NULL: the default one. There may be
 * several on one. Its priority is that of other sources, unless you set another:
 * `g_source_set_priority(&adapter->source, G_PRIORITY_LOW)`. Returns NULL, with errno, on failure;
 * without memory GLib ends the program.
 */
static inline redlock_glib *redlock_glib_attach(GMainContext *context) {
    static GSourceFuncs funcs = {NULL, NULL, redlock_glib_dispatch_, NULL, NULL, NULL};
    redlock_loop *loop = redlock_loop_pollable();
    GSource *source;
    redlock_glib *self;
    if (loop == NULL) {
        return NULL;
    }
    source = g_source_new(&funcs, sizeof(*self));
    self = (redlock_glib *)source;
    self->loop = loop;
    self->tag = g_source_add_unix_fd(source, redlock_loop_fd(loop), G_IO_IN);
    /* Otherwise GLib would remove and add the descriptor, and wake itself, at each dispatch. */
    g_source_set_can_recurse(source, TRUE);
    g_source_attach(source, context);
    return self;
}

/*
 * Detaches the loop, and frees it, when all of its clients have closed: in the last on_closed, or
 * later. `self` is invalid from then on. NULL is allowed.
 */
static inline void redlock_glib_detach(redlock_glib *self) {
    if (self != NULL) {
        redlock_loop *loop = self->loop;
        g_source_destroy(&self->source);
        g_source_unref(&self->source);
        redlock_loop_free(loop);
    }
}

#ifdef __cplusplus
}
#endif

#endif
