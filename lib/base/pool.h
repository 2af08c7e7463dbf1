/*
 * Objects of one size that come and go quickly: what is given back is kept, as it is, for the
 * next, up to a bound, so that a steady load allocates nothing and what is dear to set up in an
 * object is set up once (Bonwick, "The Slab Allocator", USENIX 1994: object caching).
 */
#ifndef REDLOCK_BASE_POOL_H
#define REDLOCK_BASE_POOL_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

/* How an object is set up when its memory is new, and taken down before it is freed; or NULL. */
struct pool_kind {
    size_t size;
    size_t max_spares; /* the most unused objects that are kept */
    bool (*set_up)(void *object, void *context);
    void (*take_down)(void *object);
};

struct pool {
    const redlock_allocator *allocator;
    const struct pool_kind *kind;
    void *context;
    size_t spares;
    struct pool_spare *first;
};

/* `context` goes to set_up; `kind` must live as long as the pool. */
void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context);

/* Frees the spare objects; those still out must have been put back. */
void pool_finish(struct pool *pool);

/* NULL when out of memory. The object is new and set up, or as its last user left it. */
void *pool_take(struct pool *pool);

void pool_put(struct pool *pool, void *object);

#endif
