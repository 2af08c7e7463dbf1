/*
 * The nodes that a client asks: its list, and while that is being changed, the next list too. Each
 * node has a slot, its bit in the masks of rounds and locks; a server in both lists is one node.
 */
#ifndef REDLOCK_NODE_MEMBERS_H
#define REDLOCK_NODE_MEMBERS_H

#include "core/quorum.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct context;
struct node;
SLIST_HEAD(node_stack, node);

/* The slots of a list, in the order of its URIs. */
struct node_list {
    uint32_t mask;
    uint32_t count;
    uint8_t slots[REDLOCK_MAX_NODES];
};

/* Callbacks to the owner of the members, from the loop; `arg` is members_init's. */
struct members_listener {
    /* A node takes commands again. */
    void (*on_up)(void *arg);
    /* A node can be sent releases that it is owed: node_room. */
    void (*on_debts_due)(void *arg, struct node *node);
};

struct members {
    struct context *context;
    const struct members_listener *listener;
    void *listener_arg;
    struct node *nodes[REDLOCK_MAX_NODES]; /* by slot; NULL: free */
    struct node_list now;
    struct node_list next;  /* empty unless the list is being changed */
    struct node_stack left; /* stopped nodes; a lookup of their names may be under way */
    uint64_t changed_at;    /* when the change began */
    uint32_t cursor;        /* where the search for a free slot begins: slots are reused late */
};

/* Begins with no nodes. */
void members_init(struct members *members, struct context *context,
                  const struct members_listener *listener, void *arg);

/* Creates the nodes of the first list; members_finish is due after a failure, too. */
redlock_status members_create(struct members *members, const char *const *uris, uint32_t count,
                              redlock_error *error);
void members_start(struct members *members);
void members_stop(struct members *members);
void members_finish(struct members *members);

/* Begins a change: both lists count from now on. After a failure nothing has changed. */
redlock_status members_change(struct members *members, const char *const *uris, size_t count,
                              redlock_error *error);

/* Checks whether a change may end with the next list, or with the present one, now. */
redlock_status members_may_commit(const struct members *members, redlock_error *error);
redlock_status members_may_abandon(const struct members *members, redlock_error *error);

/*
 * Ends a change that may end so. Commands that are meant for the nodes of both lists have been
 * sent: the slots of nodes that leave are free afterwards.
 */
void members_commit(struct members *members);
void members_abandon(struct members *members);

/* Returns the mask of all nodes. */
static inline uint32_t members_all(const struct members *members) {
    return members->now.mask | members->next.mask;
}

/* Returns the masks of the lists that count. */
static inline struct quorum_lists members_lists(const struct members *members) {
    return (struct quorum_lists){members->now.mask, members->next.mask};
}

/* Takes the lowest node out of a mask of members; NULL when none is left. */
static inline struct node *members_take(const struct members *members, uint32_t *mask) {
    if (*mask == 0) {
        return NULL;
    }
    struct node *node = members->nodes[__builtin_ctz(*mask)];
    *mask &= *mask - 1;
    return node;
}

/* Fills in all nodes, in the order in which reports name them; returns their number. */
uint32_t members_in_order(const struct members *members, struct node *nodes[REDLOCK_MAX_NODES]);

/* Whether the nodes that are up include a quorum of each list. */
bool members_have_quorum(const struct members *members);

/* Sends a beat to each node that was not sent one in the last `ago` nanoseconds. */
void members_beat(const struct members *members, uint64_t now, uint64_t ago);

/* Reads all replies that have arrived. */
void members_read(const struct members *members);

#endif
