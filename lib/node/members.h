/*
 * The nodes that a client asks: its list and, during a change, the next list as well (Raft calls
 * this a joint configuration). Each node has an index, its bit in the masks of rounds and locks. A
 * server in both lists is one node.
 */
#ifndef REDLOCK_NODE_MEMBERS_H
#define REDLOCK_NODE_MEMBERS_H

#include "base/nanos.h"
#include "core/quorum.h"
#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct context;
struct node;
struct node_listener;
SLIST_HEAD(node_stack, node);

/* The indexes of a list's nodes, in the order of its URIs. */
struct node_list {
    uint32_t mask;
    uint32_t count;
    uint8_t indexes[REDLOCK_MAX_NODES];
};

struct members {
    struct context *context;
    const struct node_listener *listener; /* of all nodes, with its argument */
    void *listener_arg;
    struct node *nodes[REDLOCK_MAX_NODES]; /* by index; NULL: the index is free */
    struct node_list now;
    struct node_list next;  /* empty except during a change */
    struct node_stack left; /* stopped nodes, until members_bury */
    uint64_t changed_at;    /* the start of the change */
    bool is_listening;      /* the nodes keep channels */
    uint64_t used_at;       /* the time at which a call last needed the nodes (members_use) */
    bool is_resting;        /* there are no connections until members_use */
    uint64_t needed_at;     /* is_listening: the time at which a request last needed them */
    uint64_t alert_until;   /* is_listening: heartbeats keep pushes countable until then */
    bool are_found; /* no node is looking up its name, or has addresses left, in its first attempt;
                       or a quorum of each list had neither when the latest nodes began */
    /*
     * First tries need not be held back: the nodes are found, and a quorum of each list is UP, or
     * every first attempt is over; or the nodes have had their time.
     */
    bool are_known;
    uint32_t cursor; /* the start of the search for a free index: indexes are reused late */
};

/*
 * Begins without nodes. The listener gets the reports of all nodes, with `arg`, and passes some of
 * them on: members_identify, members_look.
 */
void members_init(struct members *members, struct context *context,
                  const struct node_listener *listener, void *arg);

/*
 * Creates the nodes of the first list. Returns a status, with a sentence in `error`; members_finish
 * is due after a failure, too.
 */
redlock_status members_create(struct members *members, const char *const *uris, uint32_t count,
                              redlock_error *error);

/* Handles a new identity of a node's server (on_identity): it may be that of another node. */
void members_identify(const struct members *members, struct node *node);

/* Handles on_up and on_attempt. Returns whether the nodes have become known (are_known) by that. */
bool members_look(struct members *members);

/*
 * Records that a call needs the nodes. If they rest, as those of a new client do, begins to connect
 * them; they may be known afterwards (are_known). Must not be called from a reply.
 */
void members_use(struct members *members, uint64_t now);

/* Closes the connections of an idle client, until members_use. */
void members_rest(struct members *members, uint64_t now);

/* Stops all nodes of a closing client: commands under way get NULL replies inside this call. */
void members_stop(struct members *members);

/*
 * Frees the nodes that have left. For the end of a turn, when nothing refers to them any more
 * except texts that were valid until then.
 */
void members_bury(struct members *members);

/* Frees all nodes, including those that have left. */
void members_finish(struct members *members);

/*
 * Begins a change: both lists count from now on. Returns a status, with a sentence in `error`:
 * REDLOCK_EBUSY during another change. After a failure nothing has changed. The nodes may be known
 * afterwards (are_known).
 */
redlock_status members_change(struct members *members, const char *const *uris, size_t count,
                              redlock_error *error);

/*
 * Check whether the change may end now, with the next list (commit) or the present one (abandon).
 * Return REDLOCK_EINVAL if there is no change, and for a commit REDLOCK_EBUSY until max_ttl after
 * the start of the change, with a sentence in `error`.
 */
redlock_status members_may_commit(const struct members *members, redlock_error *error);
redlock_status members_may_abandon(const struct members *members, redlock_error *error);

/*
 * End a change that may end in this way. The caller must have sent all commands for nodes of either
 * list: the indexes of nodes that leave are free afterwards.
 */
void members_commit(struct members *members);
void members_abandon(struct members *members);

/* Returns the mask of all nodes of both lists. */
static inline uint32_t members_all(const struct members *members) {
    return members->now.mask | members->next.mask;
}

/* Returns the masks of the lists that count. */
static inline struct quorum_lists members_lists(const struct members *members) {
    return (struct quorum_lists){members->now.mask, members->next.mask};
}

/* Takes the lowest node out of `*mask`, a mask of members. Returns NULL when the mask is empty. */
static inline struct node *members_take(const struct members *members, uint32_t *mask) {
    if (*mask == 0) {
        return NULL;
    }
    struct node *node = members->nodes[__builtin_ctz(*mask)];
    *mask &= *mask - 1;
    return node;
}

/* Fills in all nodes, in the order of their lists, as in reports. Returns their number. */
uint32_t members_in_order(const struct members *members, struct node *nodes[REDLOCK_MAX_NODES]);

/* Returns whether a release is pending at a node, or the lists are being changed. */
bool members_are_busy(const struct members *members);

/* Returns the mask of the nodes that are UP. */
uint32_t members_up(const struct members *members);

/*
 * Returns whether every node that takes commands can push messages. A node without a channel gives
 * no queue entry, so that before the release of a key it could only deny.
 */
bool members_can_push(const struct members *members);

/* Returns whether the nodes that are up include a quorum of each list. */
bool members_have_quorum(const struct members *members);

/*
 * Returns whether the votes of a quorum of each list count now: the nodes are UP and trusted.
 * `changes_at` is the first instant at which distrust of a node ends by itself; NANOS_NEVER: only
 * events change the result.
 */
bool members_count(const struct members *members, uint64_t *changes_at);

/* Returns whether a list has no quorum of nodes that do not refuse the client. */
bool members_refuse(const struct members *members);

/*
 * Returns the masters' time in microseconds since 1970, by the clocks that the guards know; 0: they
 * know none. If all clocks are known, this is their median; if more are known than a minority has,
 * this is never a time that only a minority of the nodes has reached.
 */
uint64_t members_clock_us(const struct members *members, uint64_t now);

/*
 * Returns the number above which a lost counter restarts (fence_from_clock): by the masters' time,
 * or by this machine's if no master's clock is known.
 */
uint64_t members_fence_from_clock(const struct members *members, uint64_t now);

/*
 * Returns the largest number to which one node alone may raise a fence: FENCE_SLACK above
 * members_fence_from_clock.
 */
uint64_t members_fence_limit(const struct members *members, uint64_t now);

/* Makes each node, and each that joins later, keep a channel for its server's messages. */
void members_listen(struct members *members);

/*
 * Looks after the channels, if there are any, and closes them once no request has needed them for
 * MEMBERS_LINGER. `are_needed`: a request waits, or watches its key. For each heartbeat.
 */
void members_tend_channels(struct members *members, bool are_needed, uint64_t now);

/*
 * The time for which heartbeats go on while a request waits, so that pushes count at once. A longer
 * wait will probably go on, too (as in the ski rental problem): the heartbeats of this time cost
 * the nodes as much as the ask by which a late push is made to count (lock/pushes.c). Polls bring
 * heartbeats in any case.
 */
#define MEMBERS_ALERT (4000 * NANOS_PER_MS)

/* Keeps pushes countable for MEMBERS_ALERT: a request begins to wait for them. */
static inline void members_await_pushes(struct members *members, uint64_t now) {
    members->alert_until = nanos_add(now, MEMBERS_ALERT);
}

/* Long enough that requests that wait now and then do not connect each time. */
#define MEMBERS_LINGER (10000 * NANOS_PER_MS)

/* The period of the heartbeat while the nodes keep no channels. */
#define MEMBERS_HEARTBEAT (1000 * NANOS_PER_MS)

/*
 * Sends a beat to each node that needs one without a command (guard.h) before the next call, which
 * follows within `period` nanoseconds.
 */
void members_beat(const struct members *members, uint64_t period, uint64_t now);

/* Lets later requests begin at once: a quorum is up, and the other nodes have had their time. */
void members_wait_no_longer(struct members *members);

/*
 * Returns which of `silent`, a mask, are late with the answer to a command that was sent at
 * `sent_at`, by their timeouts with this margin (core/answer_time.h).
 */
struct round_silence members_silence(const struct members *members, uint32_t silent,
                                     uint64_t sent_at, uint64_t margin, uint64_t now);

/*
 * Computes anew what leases know of the nodes (context->patience), and warns of slow nodes. For a
 * call once a second.
 */
void members_measure(const struct members *members);

/*
 * Returns the number of requests whose first commands may be sent at once; 0: no quorum of each
 * list has room, or is not connected. Then on_room or on_up follows, or a node goes down, which
 * wakes the client.
 */
uint32_t members_admit(const struct members *members);

/*
 * Returns, of `nodes`, a mask, those that have too little room now for commands that can wait
 * (node_admits). Then on_room follows, or the node goes down, which wakes the client.
 */
uint32_t members_without_room(const struct members *members, uint32_t nodes);

/* Reads all replies that have arrived, without waiting for the loop. */
void members_read(const struct members *members);

#endif
