/*
 * What the parts of one client share: its hooks, its loop, its nodes, its memory, and the turn of
 * the loop in which everything is sent.
 */
#ifndef REDLOCK_CONTEXT_H
#define REDLOCK_CONTEXT_H

#include "base/bytes.h"
#include "base/pool.h"
#include "io/loop.h"
#include "io/net.h"
#include "io/resolver.h"
#include "key.h"
#include "log.h"
#include "members.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Bits of the filter over the keys of open batches. */
#define OPEN_KEYS_BITS 4096

/* The longest sentence of redlock_explain. */
#define EXPLANATION_MAX 2048

struct batch;
struct node;
struct tls;
STAILQ_HEAD(batch_list, batch);

struct context {
    redlock_allocator allocator;
    redlock_options options; /* the numbers; its pointers are not kept */
    char *name;              /* for CLIENT SETNAME; "": none */
    char *owner;             /* in the keys' values; "": none */
    struct log log;
    uint64_t seed; /* for jitter */

    struct loop loop;
    struct net net;
    struct resolver resolver;
    struct tls *tls; /* NULL until an option or a node asks for it */
    struct members members;
    void (*on_debts_due)(struct node *node); /* a node can be sent the releases that it is owed */
    void (*on_node_up)(void *arg);           /* a node takes commands again */
    void *on_node_up_arg;

    struct keys keys;
    struct pool flights;
    struct pool permits; /* of flights for one */
    struct pool batches;
    struct bytes scratch;   /* the command that is being encoded */
    struct batch_list open; /* script calls that are being collected in this turn */
    struct batch_list full; /* those of them that take no further key */
    uint64_t open_keys[OPEN_KEYS_BITS / 64]; /* by hash: keys that open batches may hold */
    uint32_t flights_out; /* flights that still wait for a reply, or that a lock looks at */

    struct timer turn;
    bool in_turn;
    bool is_woken;       /* a turn is due */
    bool is_closing;     /* nothing new is begun */
    uint64_t unreleased; /* releases that nobody remembers: refused while it closes, or too many */
    unsigned generation; /* of the process that made the client: io/fork.h */

    redlock_error refusal; /* of the last refused call */
    char explanation[EXPLANATION_MAX];
};

/*
 * Copies checked options, and makes all but the nodes. `on_turn` is what a turn does. The status
 * with a sentence in `error`; then, as after success, context_finish.
 */
redlock_status context_init(struct context *context, struct event_base *base,
                            const redlock_options *options, void (*on_turn)(void *arg), void *arg,
                            redlock_error *error);

/* Makes sure that there is TLS, by the system's authorities unless the options had said more. */
redlock_status context_need_tls(struct context *context, redlock_error *error);

/* Whether this process is a child of the one that made the client. */
bool context_is_inherited(const struct context *context);

/* Refuses each call that begins something in such a child, or when the client is closing. */
redlock_status context_check(struct context *context);

/* When every flight has ended, and the nodes are finished. */
void context_finish(struct context *context);

/* Has a turn run soon: there is something to deal with, or to send. */
void context_wake(struct context *context);

#endif
