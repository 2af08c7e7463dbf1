/* The name of a locked resource, shared by the lock and its rounds in flight. */
#ifndef REDLOCK_KEY_H
#define REDLOCK_KEY_H

#include "base/pool.h"

#include <stddef.h>
#include <stdint.h>

/* Keys up to this length come from a pool. */
#define KEY_POOLED_MAX 128

struct key {
    struct keys *keys;
    uint32_t references;
    uint32_t length;
    uint32_t hash;
    char bytes[]; /* and a NUL, for logs */
};

struct keys {
    const redlock_allocator *allocator;
    struct pool pool;
};

void keys_init(struct keys *keys, const redlock_allocator *allocator);
void keys_finish(struct keys *keys);

/* A copy, with one reference; NULL when out of memory. */
struct key *key_create(struct keys *keys, const char *bytes, size_t length);

struct key *key_hold(struct key *key);
void key_drop(struct key *key);

#endif
