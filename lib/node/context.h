/*
 * The surroundings of one client, which its parts share: options, hooks, the outside, and the turn
 * of the loop in which everything is sent. No part's state is in here.
 */
#ifndef REDLOCK_NODE_CONTEXT_H
#define REDLOCK_NODE_CONTEXT_H

#include "base/bytes.h"
#include "base/log.h"
#include "core/event_log.h"
#include "io/loop.h"
#include "io/net.h"
#include "io/resolver.h"
#include "wire/key.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct tls;

struct context {
    redlock_allocator allocator;
    redlock_options options; /* numbers only: the pointers are NULL */
    char *name;              /* for CLIENT SETNAME; "": none */
    char *owner;             /* in the values of keys; "": none */
    struct log log;
    struct events events;
    struct event_log event_log;
    uint64_t seed; /* of jitter */

    struct loop loop;
    struct net net;
    struct resolver resolver;
    struct tls *tls; /* NULL until an option or a node asks for TLS */
    struct keys keys;
    struct bytes scratch; /* the command that is being encoded */

    struct timer turn;
    bool in_turn;
    bool is_woken;   /* a turn is due */
    bool is_closing; /* nothing new is begun */

    unsigned generation;   /* of the process that made the client: io/fork.h */
    redlock_error refusal; /* of the last refused call */
};

/*
 * Copies checked options, and sets up everything above. `on_turn` does the work of a turn. Returns
 * a status, with a sentence in `error`; context_finish is due after a failure, too.
 */
redlock_status context_init(struct context *context, struct event_base *base,
                            const redlock_options *options, void (*on_turn)(void *arg), void *arg,
                            redlock_error *error);

/* Creates the client's TLS where there is none; the system's authorities are the default. */
redlock_status context_need_tls(struct context *context, redlock_error *error);

/* Whether this process is a child (fork) of the one that made the client. */
bool context_is_inherited(const struct context *context);

/* Refuses a call that begins something: in such a child, or while the client is closing. */
redlock_status context_check(struct context *context);

/* Frees everything above; the nodes, flights and locks have been freed. */
void context_finish(struct context *context);

/* Has a turn run soon: an event is to be dealt with, or a command to be sent. */
void context_wake(struct context *context);

#endif
