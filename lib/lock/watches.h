/*
 * The keys that nodes watch for a client (node/tracking.h): those of held locks whose requests ask
 * for that, and those of waiters that are first in the queue after a foreign holder.
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
    /* The key of a lock may have changed at `node`, a mask of one node. */
    void (*on_key_changed)(redlock_lock *lock, uint32_t node);
    /* A node may have stopped watching the lock's key, or can watch it only from now on. */
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
 * Asks `nodes`, a mask, to watch the keys of a lock; skips nodes whose channels are not ready, and
 * does nothing without memory. Each node reports one change; on_key_changed follows from the loop.
 */
void watches_look(struct watches *watches, redlock_lock *lock, uint32_t nodes);

/* Ends the watches of a lock. */
void watches_drop(redlock_lock *lock);

/* Calls on_lapse for all watches, which may have lapsed: a node has a new channel. */
void watches_lapsed(const struct watches *watches);

/* Handles a message of `node`, a mask: `key` has changed, or (NULL) any key may have. */
void watches_changed(struct watches *watches, uint32_t node, const char *key, size_t length);

#endif
