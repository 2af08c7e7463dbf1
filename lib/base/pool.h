/*
 * A pool of short-lived objects of one size. Up to a bound, objects that are put back are kept,
 * with their content, for the next user: a steady load allocates nothing, and the expensive part of
 * an object is set up once (object caching: Bonwick, "The Slab Allocator", USENIX 1994).
 *
 * The pool overwrites only the first pointer of a spare object, so an object takes no more memory
 * than its size. Every user of an object must set that pointer anew.
 */
#ifndef REDLOCK_BASE_POOL_H
#define REDLOCK_BASE_POOL_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The kind of object in a pool. set_up is called on new, zeroed memory and returns false on
 * failure; take_down is called before the memory is freed. Either may be NULL.
 */
struct pool_kind {
    size_t size;       /* at least the size of a pointer */
    size_t max_spares; /* maximum number of spare objects */
    bool (*set_up)(void *object, void *context);
    void (*take_down)(void *object, void *context);
};

struct pool {
    const redlock_allocator *allocator;
    const struct pool_kind *kind;
    void *context;
    size_t spares;
    struct pool_spare *first;
};

/*
 * Initializes an empty pool. `context` is passed to the callbacks of `kind`, which must live as
 * long as the pool.
 */
void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context);

/* Frees the spare objects. All objects must have been put back. */
void pool_finish(struct pool *pool);

/*
 * Returns an object: new and set up, or, except for its first pointer, as its last user left it.
 * NULL when out of memory.
 */
void *pool_take(struct pool *pool);

void pool_put(struct pool *pool, void *object);

#endif
