/*
 * Allocates through the client's allocator hook. The allocating functions return NULL on failure,
 * like malloc; none of them aborts.
 */
#ifndef REDLOCK_BASE_MEMORY_H
#define REDLOCK_BASE_MEMORY_H

#include <redlock.h>
#include <stddef.h>

/* Returns the application's allocator, or libc's when `chosen` is NULL. */
redlock_allocator memory_allocator(const redlock_allocator *chosen);

void *memory_alloc(const redlock_allocator *allocator, size_t size);
void *memory_zalloc(const redlock_allocator *allocator, size_t size);
void *memory_realloc(const redlock_allocator *allocator, void *memory, size_t size);

/* Frees `memory`, which may be NULL. */
void memory_free(const redlock_allocator *allocator, void *memory);

/* Returns a NUL-terminated copy of `length` bytes, or NULL when out of memory. */
char *memory_copy(const redlock_allocator *allocator, const char *bytes, size_t length);

#endif
