#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void *libc_malloc(size_t size, void *context) {
    (void)context;
    return malloc(size);
}

static void *libc_realloc(void *memory, size_t size, void *context) {
    (void)context;
    return realloc(memory, size);
}

static void libc_free(void *memory, void *context) {
    (void)context;
    free(memory);
}

redlock_allocator memory_allocator(const redlock_allocator *chosen) {
    static const redlock_allocator libc = {libc_malloc, libc_realloc, libc_free, NULL};
    return chosen != NULL ? *chosen : libc;
}

void *memory_alloc(const redlock_allocator *allocator, size_t size) {
    return allocator->malloc(size, allocator->context);
}

void *memory_zalloc(const redlock_allocator *allocator, size_t size) {
    void *memory = memory_alloc(allocator, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

void *memory_realloc(const redlock_allocator *allocator, void *memory, size_t size) {
    return allocator->realloc(memory, size, allocator->context);
}

void memory_free(const redlock_allocator *allocator, void *memory) {
    if (memory != NULL) {
        allocator->free(memory, allocator->context);
    }
}

char *memory_copy(const redlock_allocator *allocator, const char *bytes, size_t length) {
    char *copy = memory_alloc(allocator, length + 1);
    if (copy != NULL) {
        memcpy(copy, bytes, length);
        copy[length] = '\0';
    }
    return copy;
}
