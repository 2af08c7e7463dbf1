/*
 * What is said first on each connection, all at once: AUTH, SELECT, CLIENT SETNAME, CLIENT
 * SETINFO, SCRIPT LOAD. Replies come in order, so commands may follow without waiting for it.
 */
#ifndef REDLOCK_HANDSHAKE_H
#define REDLOCK_HANDSHAKE_H

#include "base/bytes.h"
#include "core/uri.h"
#include "io/net.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

/* AUTH, SELECT, CLIENT SETNAME, CLIENT SETINFO twice, SCRIPT LOAD for each script but BEAT. */
#define HANDSHAKE_STEPS_MAX (5 + SCRIPT_BEAT)

/* What it means when a step is refused. */
enum handshake_need {
    HANDSHAKE_OPTIONAL, /* nothing: old servers and narrow ACLs refuse it */
    HANDSHAKE_USEFUL,   /* something to complain about */
    HANDSHAKE_REQUIRED  /* the connection is of no use */
};

struct handshake;

struct handshake_step {
    struct conn_request request;
    struct handshake *handshake;
    enum handshake_need need;
    enum script script; /* that the step loads; or SCRIPT_NONE */
};

/* Who is told; called from replies. */
struct handshake_listener {
    void (*on_done)(void *owner);
    /* The server said no, of weight: it may go on, but if the connection ends now, that is why. */
    void (*on_refusal)(void *owner, const struct reply *reply, bool is_fatal);
    /* It does not load scripts ahead of their first call. */
    void (*on_script_refused)(void *owner, enum script script);
};

struct handshake {
    const struct handshake_listener *listener;
    unsigned steps_left;
    struct handshake_step steps[HANDSHAKE_STEPS_MAX];
};

/*
 * Queues the handshake on a connection whose owner is the listener's. `name` may be "";
 * `scratch` is used during the call. Without memory the connection is closed.
 */
void handshake_begin(struct handshake *handshake, const struct handshake_listener *listener,
                     struct conn *conn, const struct uri *uri, const char *name,
                     struct bytes *scratch, uint64_t now);

#endif
