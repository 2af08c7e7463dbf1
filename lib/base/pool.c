#include "base/pool.h"

#include "base/memory.h"

/* The link in front of each object, so that a spare object keeps its content. */
struct pool_spare {
    _Alignas(max_align_t) struct pool_spare *next;
};

void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context) {
    *pool = (struct pool){.allocator = allocator, .kind = kind, .context = context};
}

static void discard(struct pool *pool, struct pool_spare *spare) {
    if (pool->kind->take_down != NULL) {
        pool->kind->take_down(spare + 1);
    }
    memory_free(pool->allocator, spare);
}

void pool_finish(struct pool *pool) {
    while (pool->first != NULL) {
        struct pool_spare *spare = pool->first;
        pool->first = spare->next;
        discard(pool, spare);
    }
    pool->spares = 0;
}

void *pool_take(struct pool *pool) {
    struct pool_spare *spare = pool->first;
    if (spare != NULL) {
        pool->first = spare->next;
        pool->spares--;
        return spare + 1;
    }
    spare = memory_zalloc(pool->allocator, sizeof(*spare) + pool->kind->size);
    if (spare == NULL) {
        return NULL;
    }
    if (pool->kind->set_up != NULL && !pool->kind->set_up(spare + 1, pool->context)) {
        memory_free(pool->allocator, spare);
        return NULL;
    }
    return spare + 1;
}

void pool_put(struct pool *pool, void *object) {
    struct pool_spare *spare = (struct pool_spare *)object - 1;
    if (pool->spares >= pool->kind->max_spares) {
        discard(pool, spare);
        return;
    }
    spare->next = pool->first;
    pool->first = spare;
    pool->spares++;
}
