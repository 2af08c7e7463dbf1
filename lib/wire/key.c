#include "wire/key.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Number of bytes hashed at each end of a key. */
#define HASHED 32

/* Size of a key whose name has this length. */
#define KEY_SIZE(length) (offsetof(struct key, bytes) + (length) + 1)

static const struct pool_kind kinds[KEY_POOLS] = {
    {.size = KEY_SIZE(KEY_SHORT_MAX), .max_spares = 4096},
    {.size = KEY_SIZE(KEY_MIDDLE_MAX), .max_spares = 4096},
    {.size = KEY_SIZE(KEY_POOLED_MAX), .max_spares = 4096},
};

void keys_init(struct keys *keys, const redlock_allocator *allocator) {
    keys->allocator = allocator;
    for (unsigned i = 0; i < KEY_POOLS; i++) {
        pool_init(&keys->pools[i], allocator, &kinds[i], NULL);
    }
}

void keys_finish(struct keys *keys) {
    for (unsigned i = 0; i < KEY_POOLS; i++) {
        pool_finish(&keys->pools[i]);
    }
}

/* Returns the pool for keys of this length; NULL: too long for a pool. */
static struct pool *pool_of(struct keys *keys, size_t length) {
    return length <= KEY_SHORT_MAX    ? &keys->pools[0]
           : length <= KEY_MIDDLE_MAX ? &keys->pools[1]
           : length <= KEY_POOLED_MAX ? &keys->pools[2]
                                      : NULL;
}

/* Mixes eight bytes into a hash (Knuth, "The Art of Computer Programming" 3, 6.4). */
static inline uint64_t mix(uint64_t hash, const char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Hashes the length and both ends: long keys cost no more than short ones. */
uint32_t key_hash(const char *bytes, size_t length) {
    char word[8] = {0};
    uint64_t hash = mix(length, word);
    if (length < 8) {
        memcpy(word, bytes, length);
        return (uint32_t)mix(hash, word);
    }
    size_t end = length < HASHED ? length : HASHED;
    for (size_t i = 0; i + 8 <= end; i += 8) {
        hash = mix(hash, bytes + i);
    }
    for (size_t i = length - end > end ? length - end : end; i + 8 < length; i += 8) {
        hash = mix(hash, bytes + i);
    }
    return (uint32_t)mix(hash, bytes + length - 8);
}

/* Creates a key whose name is the concatenation of the two parts. */
static struct key *create_key(struct keys *keys, const char *bytes, size_t first_length,
                              const char *rest, size_t rest_length) {
    size_t length = first_length + rest_length;
    struct pool *pool = pool_of(keys, length);
    struct key *key =
        pool != NULL ? pool_take(pool) : memory_alloc(keys->allocator, KEY_SIZE(length));
    if (key == NULL) {
        return NULL;
    }
    key->keys = keys;
    key->next = NULL;
    key->references = 1;
    key->count = 1;
    key->length = (uint32_t)length;
    memcpy(key->bytes, bytes, first_length);
    if (rest_length > 0) {
        memcpy(key->bytes + first_length, rest, rest_length);
    }
    key->bytes[length] = '\0';
    key->hash = key_hash(key->bytes, length);
    return key;
}

struct key *key_create(struct keys *keys, const char *bytes, size_t length) {
    return create_key(keys, bytes, length, "", 0);
}

struct key *key_create_permit(struct keys *keys, const struct key *name, uint32_t permit) {
    char suffix[12];
    int length = snprintf(suffix, sizeof(suffix), ":%" PRIu32, permit);
    return create_key(keys, name->bytes, name->length, suffix, (size_t)length);
}

bool key_read_permit(const struct key *name, const char *bytes, size_t length, uint32_t count,
                     uint32_t *permit) {
    bool is_ours = length > name->length + 1 && bytes[name->length] == ':' &&
                   memcmp(bytes, name->bytes, name->length) == 0;
    uint32_t number = 0;
    for (size_t i = name->length + 1; is_ours && i < length; i++) {
        is_ours = bytes[i] >= '0' && bytes[i] <= '9' && number < count;
        number = number * 10 + (uint32_t)(bytes[i] - '0');
    }
    *permit = number;
    return is_ours && number < count;
}

bool key_append(struct key *first, const char *bytes, size_t length) {
    struct key *key = key_create(first->keys, bytes, length);
    if (key == NULL) {
        return false;
    }
    struct key *last = first;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = key;
    first->count++;
    return true;
}

size_t key_pushed_length(const struct key *first) {
    size_t length = 0;
    for (const struct key *key = first; key != NULL && first->count > 1; key = key->next) {
        length += (size_t)snprintf(NULL, 0, "%" PRIu32 ":", key->length) + key->length;
    }
    return first->count > 1 ? length : first->length;
}

bool key_equals(const struct key *one, const struct key *other) {
    while (one != NULL && other != NULL && one->length == other->length &&
           memcmp(one->bytes, other->bytes, one->length) == 0) {
        one = one->next;
        other = other->next;
    }
    return one == NULL && other == NULL;
}

struct key *key_hold(struct key *key) {
    key->references++;
    return key;
}

static void key_free(struct key *key) {
    struct pool *pool = pool_of(key->keys, key->length);
    if (pool != NULL) {
        pool_put(pool, key);
    } else {
        memory_free(key->keys->allocator, key);
    }
}

void key_drop(struct key *key) {
    if (--key->references > 0) {
        return;
    }
    while (key != NULL) {
        struct key *next = key->next;
        key_free(key);
        key = next;
    }
}
