/*
 * The keys that nodes watch for a client (node/tracking.h): of locks whose requests say so while
 * they are held, and of the first in the queue where the holder is foreign.
 */
#ifndef REDLOCK_LOCK_WATCHES_H
#define REDLOCK_LOCK_WATCHES_H

#include "base/pool.h"

#include <redlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct members;
struct watch;
LIST_HEAD(watch_list, watch);

/* Power of two. */
#define WATCHES_LISTS 512

/* Callbacks to the owner of the watches, from the loop. */
struct watches_listener {
    /* The key of a lock may have changed at a node, a mask. */
    void (*on_key_changed)(redlock_lock *lock, uint32_t node);
    /* A node may watch the key of a lock no more, or only from now on be able to. */
    void (*on_lapse)(redlock_lock *lock);
};

struct watches {
    struct members *members;
    struct pool pool;
    const struct watches_listener *listener;
    uint32_t armed; /* mask: nodes that may watch a key for any lock */
    struct watch_list lists[WATCHES_LISTS];
};

void watches_init(struct watches *watches, const redlock_allocator *allocator,
                  struct members *members, const struct watches_listener *listener);
void watches_finish(struct watches *watches);

/*
 * Has `nodes`, a mask, watch the keys of a lock, as far as their channels are ready; without memory
 * they do not. Each node tells of one change; on_key_changed follows from the loop.
 */
void watches_look(struct watches *watches, redlock_lock *lock, uint32_t nodes);

/* Forgets the keys of a lock. */
void watches_drop(redlock_lock *lock);

/* Tells the locks of all watches that these may have lapsed: a node's channel is a new one. */
void watches_lapsed(const struct watches *watches);

/* Takes a message of the node with this mask: a key has changed, or (NULL) any may have. */
void watches_changed(struct watches *watches, uint32_t node, const char *key, size_t length);

#endif
