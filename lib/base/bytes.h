/* A growing byte buffer for encoding commands. It keeps its memory when cleared. */
#ifndef REDLOCK_BASE_BYTES_H
#define REDLOCK_BASE_BYTES_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

struct bytes {
    const redlock_allocator *allocator;
    char *data;
    size_t length;
    size_t capacity;
    bool failed; /* whether an append ran out of memory: the content must not be used */
};

void bytes_init(struct bytes *bytes, const redlock_allocator *allocator);
void bytes_finish(struct bytes *bytes);
void bytes_clear(struct bytes *bytes);

/* The slow path of bytes_reserve: allocates memory. */
char *bytes_grow(struct bytes *bytes, size_t more);

/*
 * Makes room for `more` bytes and returns their start; the caller writes there and adds the number
 * of bytes written to `length`. Returns NULL, and sets `failed`, when out of memory.
 */
static inline char *bytes_reserve(struct bytes *bytes, size_t more) {
    bool has_room = bytes->capacity - bytes->length >= more && bytes->data != NULL;
    return has_room && !bytes->failed ? bytes->data + bytes->length : bytes_grow(bytes, more);
}

/*
 * Appends `length` bytes. Sets `failed` when out of memory, so that a caller may check once after
 * many appends.
 */
void bytes_append(struct bytes *bytes, const char *data, size_t length);

#endif
