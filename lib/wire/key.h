/* The names of a lock's keys, shared by the lock and its rounds in flight. */
#ifndef REDLOCK_WIRE_KEY_H
#define REDLOCK_WIRE_KEY_H

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
    struct key *next;    /* of a lock of several keys; each lock has its own list */
    uint32_t references; /* of the first key: to the list */
    uint32_t count;      /* of the first key: the number of keys in the list */
    uint32_t length;
    uint32_t hash;
    char bytes[]; /* the name, and a NUL for logs */
};

struct keys {
    const redlock_allocator *allocator;
    struct pool pool;
};

void keys_init(struct keys *keys, const redlock_allocator *allocator);
void keys_finish(struct keys *keys);

/* Returns a list of one copied key, with one reference; NULL when out of memory. */
struct key *key_create(struct keys *keys, const char *bytes, size_t length);

/* Returns the key of a permit, "<name>:<permit>"; NULL when out of memory. */
struct key *key_create_permit(struct keys *keys, const struct key *name, uint32_t permit);

/* Appends a copied key to the list of `first`; false when out of memory. */
bool key_append(struct key *first, const char *bytes, size_t length);

/* Fills in the names of all keys of a list; returns their number. */
unsigned key_names(const struct key *first, struct script_name names[REDLOCK_MAX_KEYS]);

/* Adds a reference to a list, and returns the list. */
struct key *key_hold(struct key *key);
/* Drops a reference; the last one frees the list. */
void key_drop(struct key *key);

#endif
