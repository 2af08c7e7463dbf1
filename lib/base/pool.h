/*
 * A pool of objects of one size that come and go quickly. Objects put back are kept, with their
 * content, for the next user, up to a bound: a steady load allocates nothing, and the expensive
 * part of an object is set up once (Bonwick, "The Slab Allocator", USENIX 1994: object caching).
 *
 * Only the first pointer of a spare object is the pool's: each user of an object writes it anew. So
 * an object takes no more memory than its size.
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
    size_t size;       /* at least that of a pointer */
    size_t max_spares; /* maximum number of unused objects that are kept */
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

/* Makes an empty pool. `context` goes to the calls of `kind`, which lives as long as the pool. */
void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context);

/* Frees the spare objects. All objects taken must have been put back. */
void pool_finish(struct pool *pool);

/*
 * Returns an object, new and set up, or as its last user left it but for its first pointer; NULL
 * when out of memory.
 */
void *pool_take(struct pool *pool);

void pool_put(struct pool *pool, void *object);

#endif
