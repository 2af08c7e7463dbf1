#include "wire/key.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct pool_kind short_keys = {.size = sizeof(struct key) + KEY_POOLED_MAX + 1,
                                            .max_spares = 4096};

void keys_init(struct keys *keys, const redlock_allocator *allocator) {
    keys->allocator = allocator;
    pool_init(&keys->pool, allocator, &short_keys, NULL);
}

void keys_finish(struct keys *keys) {
    pool_finish(&keys->pool);
}

/* Hashes the length and both ends (FNV-1a): long keys cost no more than short ones. */
static uint32_t hash_of(const char *bytes, size_t length) {
    size_t end = length < 32 ? length : 32;
    uint32_t hash = UINT32_C(2166136261) ^ (uint32_t)length;
    for (size_t i = 0; i < end; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    }
    for (size_t i = length - end > end ? length - end : end; i < length; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    }
    return hash ^ hash >> 16;
}

/* Returns a key whose name is the two parts, one behind the other. */
static struct key *create(struct keys *keys, const char *bytes, size_t first_length,
                          const char *rest, size_t rest_length) {
    size_t length = first_length + rest_length;
    struct key *key = length <= KEY_POOLED_MAX
                          ? pool_take(&keys->pool)
                          : memory_alloc(keys->allocator, sizeof(*key) + length + 1);
    if (key == NULL) {
        return NULL;
    }
    key->keys = keys;
    key->next = NULL;
    key->references = key->count = 1;
    key->length = (uint32_t)length;
    memcpy(key->bytes, bytes, first_length);
    memcpy(key->bytes + first_length, rest, rest_length);
    key->bytes[length] = '\0';
    key->hash = hash_of(key->bytes, length);
    return key;
}

struct key *key_create(struct keys *keys, const char *bytes, size_t length) {
    return create(keys, bytes, length, "", 0);
}

struct key *key_create_permit(struct keys *keys, const struct key *name, uint32_t permit) {
    char suffix[12];
    int length = snprintf(suffix, sizeof(suffix), ":%" PRIu32, permit);
    return create(keys, name->bytes, name->length, suffix, (size_t)length);
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

unsigned key_names(const struct key *first, struct script_name names[REDLOCK_MAX_KEYS]) {
    unsigned count = 0;
    for (const struct key *key = first; key != NULL; key = key->next) {
        names[count++] = (struct script_name){key->bytes, key->length};
    }
    return count;
}

struct key *key_hold(struct key *key) {
    key->references++;
    return key;
}

static void key_free(struct key *key) {
    if (key->length <= KEY_POOLED_MAX) {
        pool_put(&key->keys->pool, key);
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
