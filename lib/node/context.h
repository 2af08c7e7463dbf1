/*
 * The context of one client, shared by its parts: options, hooks, the outside, and the turn of the
 * loop in which everything is sent. Each part keeps its own state, not here.
 */
#ifndef REDLOCK_NODE_CONTEXT_H
#define REDLOCK_NODE_CONTEXT_H

#include "base/bytes.h"
#include "base/log.h"
#include "core/event_log.h"
#include "core/lease_state.h"
#include "core/ticks.h"
#include "io/loop.h"
#include "io/net.h"
#include "io/probes.h"
#include "io/random.h"
#include "io/resolver.h"
#include "node/trace.h"
#include "wire/key.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct tls;

/*
 * A copy of the validities of locks, for threads that may not look at the locks themselves. Locks
 * whose on_lost is this one, and not called yet, are copied.
 */
struct mirror {
    redlock_cb *on_lost; /* NULL: no lock is copied */
    /*
     * Takes the instant at which the validity ends, after each event that may have changed it; 0:
     * the lock is not held. `arg` is that of on_lost.
     */
    void (*set_end)(void *arg, uint64_t end);
};

struct context {
    redlock_allocator allocator;
    redlock_options options; /* numbers only: the pointers are NULL */
    char *name;              /* for CLIENT SETNAME; "": none */
    char *owner;             /* the label in the values of keys; "": none */
    struct log log;
    struct events events;
    struct event_log event_log;
    struct trace trace;
    struct probes probes;
    struct patience patience; /* of rounds (members_measure) */
    uint64_t seed;            /* of the jitter */
    struct ticks ticks;       /* of renewals */
    uint64_t shortest_ttl;    /* of the requests so far; NANOS_NEVER: none */
    bool has_quorum;          /* a quorum of each list was UP at the last event (members_look) */
    uint32_t scripts_called;  /* mask of enum script: those that the client has called */
    uint64_t lost_at; /* the time at which a guard last learned that its node may have lost keys */
    int64_t masters_ahead;        /* the masters' clocks minus ours, in nanoseconds */
    uint64_t masters_ahead_until; /* the instant at which masters_ahead expires; 0: it has */

    redlock_loop *loop;
    struct net net;
    struct resolver resolver;
    struct tls *tls; /* NULL until an option or a node asks for TLS */
    struct keys keys;
    struct random random; /* of tokens */
    struct bytes scratch; /* the buffer for the command being encoded */

    struct timer turn;
    bool in_turn;
    bool is_woken;   /* a turn is due */
    bool is_closing; /* no new request is accepted */
    bool is_closed;  /* on_closed is being called: no other callback follows */

    struct mirror mirror;  /* of the locks' validities */
    unsigned generation;   /* of the process that created the client (io/fork.h) */
    redlock_error refusal; /* the error of the last refused call */
};

/*
 * Sets up a context on `loop`, a user of which it is until context_finish, from checked options,
 * which are copied. `on_turn` does the work of a turn; it is called with `arg`, the client. Returns
 * a status, with a sentence in `error`; context_finish is due after a failure, too.
 */
redlock_status context_init(struct context *context, redlock_loop *loop,
                            const redlock_options *options, void (*on_turn)(void *arg), void *arg,
                            redlock_error *error);

/*
 * Creates the client's TLS, unless it exists. Without options for TLS it trusts the system's
 * certificate authorities. Returns a status, with a sentence in `error`.
 */
redlock_status context_need_tls(struct context *context, redlock_error *error);

/* Returns whether this process is a child (fork) of the one that created the client. */
bool context_is_inherited(const struct context *context);

/*
 * Returns REDLOCK_OK if a call may begin something; REDLOCK_EINVAL in a child (fork), and
 * REDLOCK_ECLOSED while the client is closing, with the error in `refusal`.
 */
redlock_status context_check(struct context *context);

/*
 * Returns REDLOCK_OK if a call may end the application's interest in a handle: also while the
 * client is closing, until on_closed.
 */
redlock_status context_check_end(struct context *context);

/* Frees the fields. The nodes, operations and locks must have been freed. */
void context_finish(struct context *context);

/* Schedules a turn, to handle an event or send a command. Does nothing in a turn. */
void context_wake(struct context *context);

#endif
