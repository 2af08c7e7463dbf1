/* The library's traces in a master's store: locks, and entries in queues. */
#ifndef REDLOCK_TORTURE_LEFT_H
#define REDLOCK_TORTURE_LEFT_H

#include "store.h"

#include <stdbool.h>

/*
 * Returns whether the key is a lock, a list of readers, or a queue with waiters: all these must be
 * gone in the end.
 */
bool left_is_held(const struct store *store, const struct store_key *key);

/* Returns the number of entries in the key's queue. */
unsigned left_waiters(struct store *store, const char *key);

#endif
