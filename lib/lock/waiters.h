/*
 * The locks of a client to which nodes may push a grant, by token: all that asked for a queue
 * entry, until the token is given up.
 */
#ifndef REDLOCK_LOCK_WAITERS_H
#define REDLOCK_LOCK_WAITERS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

/* The most bytes of a key with a queue, or of several keys' names: push messages hold these. */
#define WAITERS_KEY_MAX 4096

LIST_HEAD(waiter_list, redlock_lock);

/* A hash table with a power of two of lists, doubled when there is a lock for each list. */
struct waiters {
    const redlock_allocator *allocator;
    struct waiter_list *lists; /* NULL: none yet */
    unsigned list_count;
    unsigned count;
};

void waiters_init(struct waiters *waiters, const redlock_allocator *allocator);
void waiters_finish(struct waiters *waiters);

/* Adds a lock under its token. Returns false when out of memory: its pushes will not be found. */
bool waiters_add(struct waiters *waiters, redlock_lock *lock);

/* Removes a lock, if it was added. Must precede any change of the lock's token. */
void waiters_remove(struct waiters *waiters, redlock_lock *lock);

/*
 * Returns a lock whose token begins with the first `length` digits of `token`, or NULL. `length` is
 * even and at least 16; `token` has TOKEN_LENGTH digits.
 */
redlock_lock *waiters_find(const struct waiters *waiters, const char *token, size_t length);

#endif
