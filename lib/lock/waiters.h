/*
 * The locks of a client whose token nodes may push a grant to, by token: all that asked for an
 * entry in the queue, until the token is given up.
 */
#ifndef REDLOCK_LOCK_WAITERS_H
#define REDLOCK_LOCK_WAITERS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

/* The longest key, or names of several, with a queue: messages of servers have to hold them. */
#define WAITERS_KEY_MAX 4096

LIST_HEAD(waiter_list, redlock_lock);

/* A hash table; its size is a power of two, and doubled when the lists get long. */
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

/* Takes a lock out, before its token changes; no lock that is not in. */
void waiters_remove(struct waiters *waiters, redlock_lock *lock);

/*
 * Returns the lock whose token is `token`, of TOKEN_LENGTH digits, as far as the first `length`
 * (an even number, at least 16), or NULL.
 */
redlock_lock *waiters_find(const struct waiters *waiters, const char *token, size_t length);

#endif
