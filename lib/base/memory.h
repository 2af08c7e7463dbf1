/*
 * The client's allocator hook, behind the three calls that the library uses. All of them return
 * NULL on failure, like malloc; nothing aborts.
 */
#ifndef REDLOCK_BASE_MEMORY_H
#define REDLOCK_BASE_MEMORY_H

#include <redlock.h>
#include <stddef.h>

/* The application's allocator, or the one of libc when `chosen` is NULL. */
redlock_allocator memory_allocator(const redlock_allocator *chosen);

void *memory_alloc(const redlock_allocator *allocator, size_t size);
void *memory_zalloc(const redlock_allocator *allocator, size_t size);
void *memory_realloc(const redlock_allocator *allocator, void *memory, size_t size);

/* Takes NULL. */
void memory_free(const redlock_allocator *allocator, void *memory);

/* A NUL-terminated copy of `length` bytes. */
char *memory_copy(const redlock_allocator *allocator, const char *bytes, size_t length);

#endif
