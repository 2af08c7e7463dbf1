/*
 * The terms of a client's requests, kept once for all locks that share them: an application has
 * many locks, but few kinds of requests. If it has many kinds, some terms are kept more than once.
 */
#ifndef REDLOCK_LOCK_TERMS_H
#define REDLOCK_LOCK_TERMS_H

#include "base/pool.h"
#include "core/lease_state.h"

#include <redlock.h>
#include <sys/queue.h>

/* Power of two. */
#define TERMS_LISTS 64

LIST_HEAD(terms_list, terms);

struct terms_table {
    struct pool pool;
    struct terms_list lists[TERMS_LISTS];
};

void terms_init(struct terms_table *table, const redlock_allocator *allocator);

/* Frees the table. All terms must have been dropped. */
void terms_finish(struct terms_table *table);

/*
 * Returns the table's copy of `terms`, with one more reference; NULL when out of memory.
 * terms_drop is due for each reference.
 */
const struct lease_terms *terms_hold(struct terms_table *table, const struct lease_terms *terms);

/* Returns `terms`, which the table returned before, with one more reference. */
const struct lease_terms *terms_share(const struct lease_terms *terms);

/* Drops a reference to `terms`, the last of which frees them. */
void terms_drop(struct terms_table *table, const struct lease_terms *terms);

#endif
