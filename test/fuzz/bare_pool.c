/*
 * base/pool.h without spares: a returned object is freed, so that AddressSanitizer detects a use
 * after its end.
 */
#include "base/memory.h"
#include "base/pool.h"
#include "check.h"

void pool_init(struct pool *pool, const redlock_allocator *allocator, const struct pool_kind *kind,
               void *context) {
    *pool = (struct pool){.allocator = allocator, .kind = kind, .context = context};
}

void pool_finish(struct pool *pool) {
    CHECK(pool->spares == 0); /* here it counts the objects in use */
}

void *pool_take(struct pool *pool) {
    void *object = memory_zalloc(pool->allocator, pool->kind->size);
    if (object != NULL && pool->kind->set_up != NULL &&
        !pool->kind->set_up(object, pool->context)) {
        memory_free(pool->allocator, object);
        object = NULL;
    }
    pool->spares += object != NULL;
    return object;
}

void pool_put(struct pool *pool, void *object) {
    pool->spares--;
    if (pool->kind->take_down != NULL) {
        pool->kind->take_down(object, pool->context);
    }
    memory_free(pool->allocator, object);
}
