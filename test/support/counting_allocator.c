#include "counting_allocator.h"

#include <stdbool.h>
#include <stdlib.h>

/* The header in front of each block: its size. The union keeps the block aligned. */
union header {
    size_t size;
    max_align_t align;
};

static bool served(struct counting_allocator *allocator) {
    allocator->calls++;
    if (allocator->refuse_after == SIZE_MAX) {
        return true;
    }
    if (allocator->refuse_after == 0) {
        return false;
    }
    allocator->refuse_after--;
    return true;
}

static void *count_in(struct counting_allocator *allocator, union header *header, size_t size) {
    header->size = size;
    allocator->blocks++;
    allocator->bytes += size;
    if (allocator->bytes > allocator->peak) {
        allocator->peak = allocator->bytes;
    }
    return header + 1;
}

static union header *count_out(struct counting_allocator *allocator, void *memory) {
    union header *header = (union header *)memory - 1;

    allocator->blocks--;
    allocator->bytes -= header->size;
    return header;
}

static void *counting_allocator_malloc(size_t size, void *context) {
    union header *header = served(context) ? malloc(sizeof(*header) + size) : NULL;

    return header == NULL ? NULL : count_in(context, header, size);
}

static void *counting_allocator_realloc(void *memory, size_t size, void *context) {
    union header *header;

    if (memory == NULL) {
        return counting_allocator_malloc(size, context);
    }
    if (!served(context)) {
        return NULL;
    }
    header = realloc(count_out(context, memory), sizeof(*header) + size);
    if (header == NULL) {
        abort(); /* the machine is out of memory: not a failure of the library */
    }
    return count_in(context, header, size);
}

static void counting_allocator_free(void *memory, void *context) {
    if (memory != NULL) {
        free(count_out(context, memory));
    }
}

void counting_allocator_init(struct counting_allocator *allocator) {
    *allocator = (struct counting_allocator){
        .hook = {counting_allocator_malloc, counting_allocator_realloc, counting_allocator_free,
                 allocator},
        .refuse_after = SIZE_MAX,
    };
}

size_t counting_allocator_mark(struct counting_allocator *allocator) {
    size_t peak = allocator->peak;

    allocator->peak = allocator->bytes;
    return peak;
}
