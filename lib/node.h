/*
 * One node: the connection to one master, kept up for as long as the client lives.
 */
#ifndef REDLOCK_NODE_H
#define REDLOCK_NODE_H

#include "context.h"
#include "core/uri.h"
#include "debt.h"
#include "guard.h"
#include "handshake.h"
#include "io/loop.h"
#include "io/net.h"
#include "io/resolver.h"
#include "key.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum node_state {
    NODE_DOWN,       /* waits for the next attempt to connect */
    NODE_RESOLVING,  /* the name is being looked up */
    NODE_CONNECTING, /* the connection and its handshake are under way */
    NODE_UP
};

struct node {
    struct context *context;
    uint32_t index; /* its slot: its bit in masks */
    SLIST_ENTRY(node) left_link;
    struct uri uri;
    char *storage; /* of the uri's strings */
    char name[URI_NAME_MAX];

    enum node_state state;
    struct conn *conn;
    struct lookup *lookup;
    struct timer timer; /* DOWN: connect again; else: has it answered in time? */
    uint64_t state_since;
    uint32_t attempts;          /* to connect, since the node was last up for a while */
    struct addresses addresses; /* of its name, as last looked up */
    unsigned address;           /* the one that is tried */
    bool was_accepted;          /* at one of them, in this attempt, there was somebody */
    char failure[192];          /* of this attempt, as long as there are more addresses */
    uint64_t disconnected;      /* how often */
    char reason[192];           /* why it is not up; "" */
    char refusal[128];          /* what the server said in the handshake; "" */

    struct handshake handshake;
    uint32_t lacks; /* mask of enum script: those that it must be sent the text of */
    struct guard guard;

    struct debts debts;
    uint32_t payments; /* releases that it was owed, under way */
    uint64_t pay_at;   /* NANOS_NEVER: no debts, or not up, or payments are under way */

    uint64_t excused; /* when the command was sent that was given more time; 0: none */

    uint32_t complaints; /* mask of enum reply_error that were logged since it was last up */
};

/*
 * Parses the URI, the one at `position` in the application's list, which is taken for its slot too.
 * The status with a sentence in `error`; then, and after success, node_finish may be called. Does
 * not connect.
 */
redlock_status node_init(struct node *node, struct context *context, uint32_t position,
                         const char *text, redlock_error *error);

/* Begins to connect; from here on the node takes care of itself. Not from inside a reply. */
void node_start(struct node *node);

/* Drops the connection: commands under way get NULL replies inside. A lookup may stay pending. */
void node_stop(struct node *node, const char *why);

/* After node_stop. */
void node_finish(struct node *node);

/*
 * Sends a command, if the node is up, or on its way up for the first time. False when it was not
 * sent: the vote is UNREACHABLE.
 */
bool node_send(struct node *node, struct conn_request *request, const char *data, size_t length);

/* Sends a command of the node's own, whether or not it is up. There is a connection. */
bool node_say(struct node *node, struct conn_request *request, const char *data, size_t length);

/*
 * How to call a script: true: with its text, for the node lacks it. What is sent after that call
 * may take the script for known.
 */
bool node_takes_text(struct node *node, enum script script);

/* The text is due again: the node said that it lacks the script, or was not sent what it took. */
static inline void node_lacks(struct node *node, enum script script) {
    node->lacks |= UINT32_C(1) << script;
}

/* Asks it for its time and its memory, if it was last asked so long ago. */
void node_beat(struct node *node, uint64_t now, uint64_t ago);

/* Whether it is a server that another node is already. */
static inline bool node_is_twin(const struct node *node) {
    return node->guard.trust.twin != NULL;
}

/* For a NULL reply: whether the connection stood, so that the command may have been carried out. */
bool node_was_reached(const struct node *node);

/* Logs an error reply, once for each class of error until the node has connected anew. */
void node_complain(struct node *node, const struct reply *reply);

/* Notes a release that did not reach the node: it is sent again until the key has expired. */
void node_owe(struct node *node, const struct owed *owed);

/* How much can be sent to it now. */
struct node_room {
    uint32_t commands;
    size_t bytes;
};

struct node_room node_room(const struct node *node);

/* Notes the outcome of a release that it was owed; behind the last one comes the rest of them. */
void node_paid(struct node *node, redlock_vote vote);

/* Whether what it is owed is under way, or waits for room behind what is. */
bool node_is_being_paid(const struct node *node);

/* It is owed nothing any more. */
void node_forgive(struct node *node);

/* Reads what has arrived, without waiting for the loop to notice. */
void node_read(struct node *node);

/* Why a vote was UNREACHABLE; never "". */
const char *node_why_unreachable(const struct node *node);

#endif
