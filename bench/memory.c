#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

void *memory_take(size_t count, size_t size) {
    void *memory = calloc(count, size);

    if (memory == NULL) {
        memory_end();
    }
    return memory;
}

void memory_end(void) {
    fputs("redlock-bench: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}
