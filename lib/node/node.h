/*
 * One node: the uplink to one master, the trust in its votes, and the releases that it is owed.
 */
#ifndef REDLOCK_NODE_NODE_H
#define REDLOCK_NODE_NODE_H

#include "io/loop.h"
#include "io/net.h"
#include "node/context.h"
#include "node/debt.h"
#include "node/guard.h"
#include "node/uplink.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct node;

/* Callbacks to the owner of the nodes, from the loop; `arg` is node_init's. */
struct node_listener {
    /* The server is another one than before: guard_identity. */
    void (*on_identity)(void *arg, struct node *node);
    void (*on_up)(void *arg);
    /* The node has room for releases that it is owed: node_room. */
    void (*on_debts_due)(void *arg, struct node *node);
};

struct node {
    struct uplink uplink; /* the first member: replies have the uplink for their owner */
    uint32_t index;       /* the node's slot: its bit in masks */
    const struct node_listener *listener;
    void *listener_arg;
    SLIST_ENTRY(node) left_link;

    struct guard guard;

    struct debts debts;
    struct timer payday; /* set: debts are to be paid then, unless room comes earlier */
    uint32_t payments;   /* releases that were owed, under way */
    uint64_t unreleased; /* releases that are remembered nowhere; their keys' TTL frees them */

    uint32_t complaints; /* mask of enum reply_error: logged since the node was last up */
};

/*
 * Parses the URI at `position` in the application's list, which is also the node's slot until the
 * owner sets another one. Returns a status, with a sentence in `error`; node_finish may be called
 * after a failure, too. Does not connect.
 */
redlock_status node_init(struct node *node, struct context *context,
                         const struct node_listener *listener, void *arg, uint32_t position,
                         const char *text, redlock_error *error);

/* uplink_start, uplink_stop; after node_stop, node_finish. */
void node_start(struct node *node);
void node_stop(struct node *node, const char *why);
void node_finish(struct node *node);

/* Returns the node of an uplink: of the owner of a reply. */
static inline struct node *node_of(void *uplink) {
    return uplink;
}

static inline uint32_t node_bit(const struct node *node) {
    return UINT32_C(1) << node->index;
}

static inline const char *node_name(const struct node *node) {
    return node->uplink.name;
}

static inline bool node_is_up(const struct node *node) {
    return node->uplink.state == UPLINK_UP;
}

/*
 * Sends a command, if the uplink takes commands. False when it was not sent: the vote is
 * UNREACHABLE.
 */
static inline bool node_send(struct node *node, struct conn_request *request, const char *data,
                             size_t length) {
    return uplink_takes_commands(&node->uplink) &&
           uplink_send(&node->uplink, request, data, length);
}

/* Asks an UP node for its time and its marker, if the last beat was `ago` nanoseconds ago. */
static inline void node_beat(struct node *node, uint64_t now, uint64_t ago) {
    if (node_is_up(node)) {
        guard_beat(&node->guard, now, ago);
    }
}

/* Whether the server is another node already. */
static inline bool node_is_twin(const struct node *node) {
    return guard_twin(&node->guard) != NULL;
}

/* Logs an error reply, once for each class of error until the node has connected anew. */
void node_complain(struct node *node, const struct reply *reply);

/* Remembers a release that did not reach the node: it is sent again until the key has expired. */
void node_owe(struct node *node, const struct owed *owed);

/* Counts a release that is not sent again: its key's TTL frees it. */
void node_give_up(struct node *node);

/* The commands and bytes that can be sent to a node now. */
struct node_room {
    uint32_t commands;
    size_t bytes;
};

struct node_room node_room(const struct node *node);

/* Notes the outcome of a release that was owed; behind the last one the rest becomes due. */
void node_paid(struct node *node, redlock_vote vote);

/* Whether debts are under way, or wait for room behind commands that are. */
bool node_is_being_paid(const struct node *node);

/* Drops all debts. */
void node_forgive(struct node *node);

#endif
