#include "store.h"

#include <inttypes.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>

void store_init(struct store *store, uint64_t (*clock)(const void *owner), const void *owner) {
    *store = (struct store){.clock = clock, .owner = owner};
}

int64_t store_now_ms(const struct store *store) {
    return (int64_t)(store->clock(store->owner) / 1000000);
}

bool store_key_ends(const struct store_key *key, const char *suffix) {
    size_t length = strlen(suffix);
    return key->name_length > length &&
           memcmp(key->name + key->name_length - length, suffix, length) == 0;
}

/* ---- buckets ---- */

/* Hashes a name (FNV-1a). */
static uint32_t hash_of(const struct store *store, const char *name, size_t length) {
    uint32_t hash = UINT32_C(2166136261) + store->db;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    }
    return hash;
}

static struct store_key **bucket_of(const struct store *store, uint32_t hash) {
    return &store->buckets[hash & (store->bucket_count - 1)];
}

static void make_room(struct store *store) {
    struct store_key **old = store->buckets;
    unsigned old_count = store->bucket_count;
    if (store->key_count < old_count) {
        return;
    }
    store->bucket_count = old_count > 0 ? old_count * 2 : 32;
    store->buckets = calloc(store->bucket_count, sizeof(struct store_key *));
    if (store->buckets == NULL) {
        abort();
    }
    for (unsigned i = 0; i < old_count; i++) {
        struct store_key *key, *next;
        for (key = old[i]; key != NULL; key = next) {
            next = key->next;
            key->next = *bucket_of(store, key->hash);
            *bucket_of(store, key->hash) = key;
        }
    }
    free(old);
}

/* ---- keys ---- */

static void free_key(struct store_key *key) {
    set_finish(&key->set);
    free(key);
}

struct store_key *store_nth(const struct store *store, unsigned number) {
    struct store_key *key = NULL;
    for (unsigned i = 0; i < store->bucket_count; i++) {
        for (key = store->buckets[i]; key != NULL && number > 0; key = key->next) {
            number--;
        }
        if (key != NULL) {
            break;
        }
    }
    return key;
}

void store_remove(struct store *store, struct store_key *key) {
    struct store_key **link = bucket_of(store, key->hash);
    while (*link != key) {
        link = &(*link)->next;
    }
    *link = key->next;
    store->key_count--;
    free_key(key);
}

/*
 * Finds a key that has not expired: a key exists while the clock, in whole milliseconds, is not
 * past its expiry.
 */
struct store_key *store_find(struct store *store, const char *name, size_t length) {
    uint32_t hash = hash_of(store, name, length);
    struct store_key *key = store->bucket_count > 0 ? *bucket_of(store, hash) : NULL;
    while (key != NULL && (key->hash != hash || key->db != store->db ||
                           key->name_length != length || memcmp(key->name, name, length) != 0)) {
        key = key->next;
    }
    if (key != NULL && key->expires_ms >= 0 && store_now_ms(store) > key->expires_ms) {
        store_remove(store, key);
        return NULL;
    }
    return key;
}

struct store_key *store_add(struct store *store, const struct word *name) {
    struct store_key *key = calloc(1, sizeof(*key) + name->length);
    if (key == NULL) {
        abort();
    }
    make_room(store);
    memcpy(key->name, name->text, name->length);
    key->name_length = name->length;
    key->db = store->db;
    key->hash = hash_of(store, name->text, name->length);
    key->expires_ms = -1;
    key->next = *bucket_of(store, key->hash);
    *bucket_of(store, key->hash) = key;
    store->key_count++;
    return key;
}

void store_forget(struct store *store, bool (*keeps)(const struct store_key *key)) {
    for (unsigned i = 0; i < store->bucket_count; i++) {
        struct store_key **link = &store->buckets[i];
        struct store_key *key;
        while ((key = *link) != NULL) {
            if (keeps != NULL && keeps(key)) {
                link = &key->next;
            } else {
                *link = key->next;
                store->key_count--;
                free_key(key);
            }
        }
    }
}

void store_finish(struct store *store) {
    store_forget(store, NULL);
    free(store->buckets);
    store->buckets = NULL;
    store->bucket_count = 0;
}

/* ---- strings written by the owner ---- */

void store_put(struct store *store, const char *name, const char *value, uint64_t ttl_ms) {
    char ms[24];
    snprintf(ms, sizeof(ms), "%" PRIu64, ttl_ms);
    const struct words words = {
        .count = ttl_ms > 0 ? 5 : 3,
        .word = {
            {"SET", 3}, {name, strlen(name)}, {value, strlen(value)}, {"PX", 2}, {ms, strlen(ms)}}};
    store_run(store, &words);
}

void store_put_marker(struct store *store, const char *run_id, int64_t ms) {
    char marker[STORE_VALUE_MAX];
    int64_t now_ms = store_now_ms(store);
    snprintf(marker, sizeof(marker), "%" PRId64 ":%" PRId64 ":%s", (now_ms - ms) * 1000,
             (now_ms - 1) * 1000, run_id);
    store_put(store, REDLOCK_MARKER_KEY, marker, 0);
}
