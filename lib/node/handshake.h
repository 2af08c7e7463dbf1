/*
 * The first commands on each connection, queued all at once: AUTH, SELECT, CLIENT SETNAME, CLIENT
 * SETINFO, and a question for each script that the client will soon need, whether the server has
 * it: a call without keys, by SHA-1. A connection that is for messages only needs neither SELECT
 * nor scripts, and gets CLIENT ID in place of SETINFO. Replies come in order, so other commands may
 * follow at once.
 *
 * Scripts that the server lacks may be asked for again, and loaded: by a call without keys, too,
 * with the text.
 */
#ifndef REDLOCK_HANDSHAKE_H
#define REDLOCK_HANDSHAKE_H

#include "core/uri.h"
#include "io/net.h"
#include "node/context.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

/* AUTH, SELECT, CLIENT SETNAME, CLIENT SETINFO twice, a question for each script at the most. */
#define HANDSHAKE_STEPS_MAX (5 + SCRIPT_COUNT)

/* The purpose of a connection. */
enum handshake_purpose { HANDSHAKE_FOR_COMMANDS, HANDSHAKE_FOR_MESSAGES };

/* The consequence of a step's refusal. */
enum handshake_need {
    HANDSHAKE_OPTIONAL, /* none: old servers and narrow ACLs refuse such steps */
    HANDSHAKE_USEFUL,   /* on_refusal, if the server is misconfigured */
    HANDSHAKE_REQUIRED  /* the connection is useless */
};

struct handshake;

struct handshake_step {
    struct conn_request request;
    struct handshake *handshake;
    enum handshake_need need;
    enum script script; /* the script that the step asks for or loads, or SCRIPT_NONE */
};

/* Callbacks to the owner of the connection, from replies. */
struct handshake_listener {
    /*
     * All steps have been answered, and no required one was refused. More steps may follow, for
     * scripts that are missing (handshake->missing).
     */
    void (*on_done)(void *owner);
    /*
     * An important refusal: the handshake may go on, but if the connection ends now, the refusal is
     * the cause. `is_fatal`: the step was required, so the connection is useless.
     */
    void (*on_refusal)(void *owner, const struct reply *reply, bool is_fatal);
    /* The server has a script, perhaps since this step: calls need not carry the text. */
    void (*on_script_found)(void *owner, enum script script);
};

struct handshake {
    const struct handshake_listener *listener;
    struct context *context;
    struct conn *conn;
    unsigned steps_left; /* number of steps not completed */
    uint32_t missing;    /* mask of enum script: the server lacks them, by its latest answers */
    struct handshake_step steps[HANDSHAKE_STEPS_MAX];
};

/*
 * Queues the first steps on a connection, whose owner is passed to the callbacks of `listener`.
 * Overwrites the context's scratch. Closes the connection when out of memory.
 */
void handshake_begin(struct handshake *handshake, const struct handshake_listener *listener,
                     struct context *context, enum handshake_purpose purpose, struct conn *conn,
                     const struct uri *uri, uint64_t now);

/*
 * Returns the scripts that a server should have before commands of locks are sent, a mask: the
 * usual ones, and those that the client has called on any connection.
 */
uint32_t handshake_scripts(const struct context *context);

/* Queues steps that ask whether the server has `scripts`, a mask. */
void handshake_ask(struct handshake *handshake, uint32_t scripts, uint64_t now);

/* Queues steps that load `scripts`, a mask. For on_done. */
void handshake_load(struct handshake *handshake, uint32_t scripts, uint64_t now);

#endif
