#include "base/bytes.h"

#include "base/memory.h"

#include <string.h>

void bytes_init(struct bytes *bytes, const redlock_allocator *allocator) {
    *bytes = (struct bytes){.allocator = allocator};
}

void bytes_finish(struct bytes *bytes) {
    memory_free(bytes->allocator, bytes->data);
    bytes_init(bytes, bytes->allocator);
}

void bytes_clear(struct bytes *bytes) {
    bytes->length = 0;
    bytes->failed = false;
}

char *bytes_grow(struct bytes *bytes, size_t more) {
    if (bytes->failed) {
        return NULL;
    }
    size_t capacity = bytes->capacity < 256 ? 256 : bytes->capacity;
    while (capacity - bytes->length < more) {
        capacity *= 2;
    }
    char *data = memory_realloc(bytes->allocator, bytes->data, capacity);
    if (data == NULL) {
        bytes->failed = true;
        return NULL;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return data + bytes->length;
}

void bytes_append(struct bytes *bytes, const char *data, size_t length) {
    char *end = bytes_reserve(bytes, length);
    if (end != NULL && length > 0) { /* `data` may be NULL if `length` is 0 */
        memcpy(end, data, length);
        bytes->length += length;
    }
}
