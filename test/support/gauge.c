#include "gauge.h"

#include <stdbool.h>
#include <stdlib.h>

/* The size of a block, in front of the block, which stays aligned. */
union header {
    size_t size;
    max_align_t align;
};

static bool served(struct gauge *gauge) {
    gauge->calls++;
    if (gauge->refuse_after == SIZE_MAX) {
        return true;
    }
    if (gauge->refuse_after == 0) {
        return false;
    }
    gauge->refuse_after--;
    return true;
}

static void *count_in(struct gauge *gauge, union header *header, size_t size) {
    header->size = size;
    gauge->blocks++;
    gauge->bytes += size;
    if (gauge->bytes > gauge->peak) {
        gauge->peak = gauge->bytes;
    }
    return header + 1;
}

static union header *count_out(struct gauge *gauge, void *memory) {
    union header *header = (union header *)memory - 1;

    gauge->blocks--;
    gauge->bytes -= header->size;
    return header;
}

static void *gauge_malloc(size_t size, void *context) {
    union header *header = served(context) ? malloc(sizeof(*header) + size) : NULL;

    return header == NULL ? NULL : count_in(context, header, size);
}

static void *gauge_realloc(void *memory, size_t size, void *context) {
    union header *header;

    if (memory == NULL) {
        return gauge_malloc(size, context);
    }
    if (!served(context)) {
        return NULL;
    }
    header = realloc(count_out(context, memory), sizeof(*header) + size);
    if (header == NULL) {
        abort(); /* the machine's memory is exhausted: no failure of the library */
    }
    return count_in(context, header, size);
}

static void gauge_free(void *memory, void *context) {
    if (memory != NULL) {
        free(count_out(context, memory));
    }
}

void gauge_init(struct gauge *gauge) {
    *gauge = (struct gauge){
        .hook = {gauge_malloc, gauge_realloc, gauge_free, gauge},
        .refuse_after = SIZE_MAX,
    };
}

size_t gauge_mark(struct gauge *gauge) {
    size_t peak = gauge->peak;

    gauge->peak = gauge->bytes;
    return peak;
}
