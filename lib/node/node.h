/* One node: the uplink to one master, the trust in its votes, and its pending releases. */
#ifndef REDLOCK_NODE_NODE_H
#define REDLOCK_NODE_NODE_H

#include "io/loop.h"
#include "io/net.h"
#include "node/channel.h"
#include "node/context.h"
#include "node/guard.h"
#include "node/pending_releases.h"
#include "node/uplink.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct node;

/* What nodes report to the client, from the loop; `arg` is node_init's. */
struct node_listener {
    /* The server's run_id has changed (guard_identity). */
    void (*on_identity)(void *arg, struct node *node);
    /* The node takes commands again. */
    void (*on_up)(void *arg);
    /* The node's votes count again (guard_counts). */
    void (*on_sound)(void *arg);
    /* An attempt to connect has begun, at one of the addresses, or failed. */
    void (*on_attempt)(void *arg);
    /* The node has room again for requests that wait (members_admit). */
    void (*on_room)(void *arg);
    /* The node has room for its pending releases (node_room). */
    void (*on_releases_due)(void *arg, struct node *node);
    /* The node's server can push from now on: queue entries from before are void. */
    void (*on_listening)(void *arg, struct node *node);
    /* The node's server pushed a message: `length` bytes and a NUL, valid during the call. */
    void (*on_push)(void *arg, struct node *node, const char *text, size_t length);
    /*
     * A watched key (channel_watch) has changed: `length` bytes and a NUL; NULL: any key may have
     * changed.
     */
    void (*on_change)(void *arg, struct node *node, const char *key, size_t length);
};

struct node {
    struct uplink uplink; /* the first member: the uplink is the owner of replies */
    uint32_t index;       /* the number of the node's bit in masks */
    const struct node_listener *listener;
    void *listener_arg;
    SLIST_ENTRY(node) left_link; /* in members->left */

    struct guard guard;
    struct channel channel; /* for the server's messages, once a request waits or watches */

    struct pending_releases pending;
    struct timer retry_timer; /* the next retry of pending releases, unless there is room earlier */
    uint32_t retries;         /* number of pending releases that are under way */
    uint64_t unreleased;      /* number of releases given up, whose keys are left to their TTL */
    uint64_t unreleased_until;       /* the instant at which the last of those keys has expired */
    uint64_t unreleased_reported;    /* number of releases given up, at the last event */
    uint64_t unreleased_reported_at; /* the time of the last event; 0: none yet */

    bool was_slow;       /* node_slow was emitted */
    uint32_t complaints; /* mask of enum reply_error: logged since the node was last up */

    /* For redlock_client_node_stats. */
    uint64_t votes[REDLOCK_VOTE_LATE + 1]; /* by redlock_vote */
    uint64_t connections;                  /* number of connections that came up */
    uint64_t forbidden;                    /* number of answers that name a missing right */
    uint64_t undelivered;                  /* number of releases that became pending */
    uint64_t redelivered;                  /* number of those that the node has answered since */
};

/*
 * Parses `text`, the URI at `position` in the application's list, which is also the node's index
 * until the owner sets another one. Does not connect. Returns a status, with a sentence in `error`;
 * node_finish may be called after a failure, too.
 */
redlock_status node_init(struct node *node, struct context *context,
                         const struct node_listener *listener, void *arg, uint32_t position,
                         const char *text, redlock_error *error);

/* Begins to connect (uplink_start). */
void node_start(struct node *node);

/* Drops the connections for good, with `why` as the reason (uplink_stop). */
void node_stop(struct node *node, const char *why);

/* Frees a node's parts, after node_stop or node_init; drops its pending releases. */
void node_finish(struct node *node);

/* Returns the node of an uplink, the owner of a reply. */
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
 * Sends a command, if the uplink takes commands. Returns false when the command was not sent: the
 * vote is node_vote_unsent.
 */
static inline bool node_send(struct node *node, struct conn_request *request, const char *data,
                             size_t length) {
    return uplink_takes_commands(&node->uplink) &&
           uplink_send(&node->uplink, request, data, length);
}

/* Returns the vote of a node that was sent nothing. */
static inline redlock_vote node_vote_unsent(const struct node *node) {
    return !node_is_up(node) && uplink_refusal(&node->uplink) != NULL ? REDLOCK_VOTE_REFUSED
                                                                      : REDLOCK_VOTE_UNREACHABLE;
}

/* The most commands between two beats: a server may need long for what is sent in an instant. */
#define NODE_UNBEATEN_MAX 4096

/* Sends a beat to a node that takes commands, and a probe on its channel if one is due. */
void node_send_beat(struct node *node, uint64_t now);

/*
 * Sends a beat ahead of a command whose vote needs one, unless the last one was sent less than a
 * second ago. Very many commands need one in any case, and so does the first command on a
 * connection that is not UP.
 */
static inline void node_beat(struct node *node, uint64_t now) {
    bool is_due = ++node->guard.unbeaten > NODE_UNBEATEN_MAX ||
                  nanos_sub(now, node->guard.beaten_at) >= GUARD_BEAT_NANOS;
    /* The answer whether the server knows the first beat's script may come after the command's. */
    bool is_unsure = uplink_is_new(&node->uplink) && !node->guard.has_sent_text;
    if ((is_due || is_unsure) && uplink_takes_commands(&node->uplink)) {
        node_send_beat(node, now);
    }
}

/*
 * The most commands under way for which requests are admitted while the node's channel is opened:
 * the probe waits for their answers. Waiters without a channel only poll, so a crowd of them would
 * keep the channel from opening for long.
 */
#define NODE_OPENING_MAX 64

/* Returns whether requests need not wait for the node (uplink_admits). */
static inline bool node_admits(const struct node *node) {
    uint32_t most = channel_is_opening(&node->channel) ? NODE_OPENING_MAX : UINT32_MAX;
    return uplink_admits(&node->uplink, most);
}

/* Warns, once, of an UP node whose answers take more than half of the time that they may take. */
void node_look_at_answers(struct node *node);

/* Returns whether the node refuses the client: its login, its database, or a guard's question. */
bool node_refuses(const struct node *node);

/* Returns whether the node's server is another node, too, whose votes count instead. */
static inline bool node_is_duplicate(const struct node *node) {
    return guard_original(&node->guard) != NULL;
}

/* Returns the channel name that the node's server may publish to; "": none. */
static inline const char *node_channel(const struct node *node) {
    return channel_is_ready(&node->channel) ? channel_name(&node->channel) : "";
}

/* Logs an error reply, once for each class of error until the node comes UP again. */
void node_complain(struct node *node, const struct reply *reply);

/* Keeps a release that did not reach the node, and sends it again until the key has expired. */
void node_defer_release(struct node *node, const struct release *release);

/* Counts a release that is not sent again: its key is left to its TTL, which ends at `until`. */
void node_give_up(struct node *node, uint64_t until);

/* Returns the number of releases, pending or given up, whose keys may still be at the node. */
uint64_t node_unreleased(struct node *node, uint64_t now);

/* The room for commands to a node: their number, and their bytes. */
struct node_room {
    uint32_t commands;
    size_t bytes;
};

/* Returns the room of a node now; none without a connection. */
struct node_room node_room(const struct node *node);

/* Records the outcome of a retried release. After the last one the rest becomes due. */
void node_retried(struct node *node, redlock_vote vote);

/* Returns whether an UP node's pending releases are under way, or wait for other commands. */
bool node_is_releasing(const struct node *node);

/* Drops all pending releases, unsent. */
void node_drop_releases(struct node *node);

#endif
