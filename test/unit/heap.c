#include "heap.h"

#include <stdlib.h>

static bool fails(struct heap *heap) {
    heap->calls++;
    return heap->fail_from != 0 &&
           (heap->fail_once ? heap->calls == heap->fail_from : heap->calls >= heap->fail_from);
}

static void *heap_malloc(size_t size, void *context) {
    struct heap *heap = context;
    void *memory = fails(heap) ? NULL : malloc(size);
    heap->out += memory != NULL;
    return memory;
}

static void *heap_realloc(void *memory, size_t size, void *context) {
    struct heap *heap = context;
    void *moved = fails(heap) ? NULL : realloc(memory, size);
    heap->out += moved != NULL && memory == NULL;
    return moved;
}

static void heap_free(void *memory, void *context) {
    struct heap *heap = context;
    heap->out--;
    free(memory);
}

void heap_init(struct heap *heap) {
    *heap = (struct heap){.allocator = {heap_malloc, heap_realloc, heap_free, heap}};
}
