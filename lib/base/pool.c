#include "base/pool.h"

#include "base/memory.h"

/* A spare object: its first pointer links to the next one. */
struct pool_spare {
    struct pool_spare *next;
};

void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context) {
    *pool = (struct pool){.allocator = allocator, .kind = kind, .context = context};
}

static void discard_spare(struct pool *pool, struct pool_spare *spare) {
    if (pool->kind->take_down != NULL) {
        pool->kind->take_down(spare, pool->context);
    }
    memory_free(pool->allocator, spare);
}

void pool_finish(struct pool *pool) {
    while (pool->first != NULL) {
        struct pool_spare *spare = pool->first;
        pool->first = spare->next;
        discard_spare(pool, spare);
    }
    pool->spares = 0;
}

void *pool_take(struct pool *pool) {
    struct pool_spare *spare = pool->first;
    if (spare != NULL) {
        pool->first = spare->next;
        pool->spares--;
        return spare;
    }
    void *object = memory_zalloc(pool->allocator, pool->kind->size);
    if (object == NULL) {
        return NULL;
    }
    if (pool->kind->set_up != NULL && !pool->kind->set_up(object, pool->context)) {
        memory_free(pool->allocator, object);
        return NULL;
    }
    return object;
}

void pool_put(struct pool *pool, void *object) {
    struct pool_spare *spare = object;
    if (pool->spares >= pool->kind->max_spares) {
        discard_spare(pool, spare);
        return;
    }
    spare->next = pool->first;
    pool->first = spare;
    pool->spares++;
}
