/* The names of a lock's keys, shared by the lock and its rounds in flight by reference counts. */
#ifndef REDLOCK_WIRE_KEY_H
#define REDLOCK_WIRE_KEY_H

#include "base/pool.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The three pools hold keys up to these lengths; longer keys are allocated one by one. */
#define KEY_SHORT_MAX 18
#define KEY_MIDDLE_MAX 50
#define KEY_POOLED_MAX 128
#define KEY_POOLS 3

struct key {
    struct keys *keys;
    struct key *next;    /* next key of the same lock; each lock has its own list */
    uint32_t references; /* first key only: references to the list */
    uint32_t length;
    uint32_t hash;
    uint8_t count; /* first key only: number of keys in the list */
    char bytes[];  /* name, and a NUL for logs; inline: a million locks have a million keys */
};

struct keys {
    const redlock_allocator *allocator;
    struct pool pools[KEY_POOLS];
};

void keys_init(struct keys *keys, const redlock_allocator *allocator);
void keys_finish(struct keys *keys);

/* Returns the hash of a name, as stored in key.hash. */
uint32_t key_hash(const char *bytes, size_t length);

/* Returns a list of one key, a copy, with one reference; NULL when out of memory. */
struct key *key_create(struct keys *keys, const char *bytes, size_t length);

/* Returns the key of a permit, "<name>:<permit>"; NULL when out of memory. */
struct key *key_create_permit(struct keys *keys, const struct key *name, uint32_t permit);

/*
 * Parses the number of a permit, below `count`, from its key. Returns false when the key does not
 * belong to a permit of the semaphore.
 */
bool key_read_permit(const struct key *name, const char *bytes, size_t length, uint32_t count,
                     uint32_t *permit);

/* Appends a copy of the key to the list of `first`. Returns false when out of memory. */
bool key_append(struct key *first, const char *bytes, size_t length);

/*
 * Returns the length of the key names in a push: "<length>:<key>" for each of several keys
 * (scripts/parts/key_sets.lua), or one plain key.
 */
size_t key_pushed_length(const struct key *first);

/* Returns whether two lists have the same keys in the same order. */
bool key_equals(const struct key *one, const struct key *other);

/* Adds a reference to a list and returns the list. */
struct key *key_hold(struct key *key);
/* Drops a reference to a list. Frees the list with the last reference. */
void key_drop(struct key *key);

#endif
