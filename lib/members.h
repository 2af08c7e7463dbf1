/*
 * Which nodes a client asks: its list, and while that is being changed, the next one too. Each node
 * has a slot, its bit in the masks of rounds and locks, and a server that is in both lists has one.
 */
#ifndef REDLOCK_MEMBERS_H
#define REDLOCK_MEMBERS_H

#include "core/quorum.h"

#include <redlock.h>
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

struct members {
    struct node *nodes[REDLOCK_MAX_NODES]; /* by slot; NULL: free */
    struct node_list now;
    struct node_list next;  /* empty unless the list is being changed */
    struct node_stack left; /* stopped; their names may still be asked for, until the client ends */
    uint64_t changed_at;    /* when the change began */
    uint32_t cursor;        /* where the search for a free slot begins: none is used again soon */
};

/* The nodes that options name; after a failure too, members_finish. They do not connect yet. */
redlock_status members_create(struct context *context, const char *const *uris, uint32_t count,
                              redlock_error *error);
void members_start(struct context *context);
void members_stop(struct context *context);
void members_finish(struct context *context);

/* Begins to change the list: both count from now on. Nothing has changed unless it is REDLOCK_OK.
 */
redlock_status members_change(struct context *context, const char *const *uris, size_t count,
                              redlock_error *error);

/* Ends that: with the next list, or with the one that there was. */
redlock_status members_commit(struct context *context, redlock_error *error);
redlock_status members_abandon(struct context *context, redlock_error *error);

/* Masks of all nodes, and of the lists that count. */
static inline uint32_t members_all(const struct members *members) {
    return members->now.mask | members->next.mask;
}

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

/* All nodes, in the order in which they are told; returns how many. */
uint32_t members_in_order(const struct members *members, struct node *nodes[REDLOCK_MAX_NODES]);

#endif
