/* The names of what a lock locks, shared by the lock and its rounds in flight. */
#ifndef REDLOCK_KEY_H
#define REDLOCK_KEY_H

#include "base/pool.h"
#include "wire/command.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys up to this length come from a pool. */
#define KEY_POOLED_MAX 128

struct key {
    struct keys *keys;
    struct key *next;    /* of a lock of several keys: the rest is one's own */
    uint32_t references; /* of the first */
    uint32_t count;      /* of the first: how many there are */
    uint32_t length;
    uint32_t hash;
    redlock_mode mode; /* how it is held */
    char bytes[];      /* and a NUL, for logs */
};

struct keys {
    const redlock_allocator *allocator;
    struct pool pool;
};

void keys_init(struct keys *keys, const redlock_allocator *allocator);
void keys_finish(struct keys *keys);

/* A copy, with one reference; NULL when out of memory. */
struct key *key_create(struct keys *keys, const char *bytes, size_t length, redlock_mode mode);

/* The key of a permit: "<name>:<permit>". */
struct key *key_create_permit(struct keys *keys, const struct key *name, uint32_t permit);
/* Puts one more behind the others of `first`; false when out of memory. */
bool key_append(struct key *first, const char *bytes, size_t length);

/* Fills in the names of all of them; returns how many there are. */
unsigned key_names(const struct key *first, struct script_name names[REDLOCK_MAX_KEYS]);

struct key *key_hold(struct key *key);
void key_drop(struct key *key);

#endif
