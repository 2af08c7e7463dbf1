#include "threads/copy.h"

#include "core/options.h"

#include <string.h>

/* Returns the number of keys; a request for one key has no arrays. */
static size_t count_of(const redlock_request *request) {
    return request->keys != NULL ? request->key_count : 1;
}

static size_t arrays_size(const redlock_request *request) {
    return request->keys != NULL ? request->key_count * (sizeof(char *) + sizeof(size_t)) : 0;
}

size_t copy_size(const redlock_request *request) {
    size_t size = arrays_size(request);
    for (size_t i = 0; i < count_of(request); i++) {
        size_t length;
        options_key(request, i, &length);
        size += length + 1; /* a NUL, for redlock_mt_key */
    }
    return size;
}

void copy_keys(redlock_request *request, void *room) {
    const redlock_request given = *request;
    const char **keys = room;
    size_t *lengths = (size_t *)(void *)(keys + given.key_count);
    char *next = (char *)room + arrays_size(&given);
    for (size_t i = 0; i < count_of(&given); i++) {
        size_t length;
        const char *key = options_key(&given, i, &length);
        if (given.keys != NULL) {
            keys[i] = next;
            lengths[i] = length;
        } else {
            request->key = next;
            request->key_length = length;
        }
        memcpy(next, key, length);
        next[length] = '\0';
        next += length + 1;
    }
    if (given.keys != NULL) {
        request->keys = keys;
        request->key_lengths = lengths;
    }
}
