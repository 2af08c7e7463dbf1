#include "io/requests.h"

#include "base/memory.h"

#define SIZE_AT_FIRST 16

bool requests_init(struct requests *requests, const redlock_allocator *allocator) {
    *requests = (struct requests){.allocator = allocator};
    return requests_grow(requests);
}

void requests_finish(struct requests *requests) {
    if (requests->ring != NULL) {
        memory_free(requests->allocator, requests->ring);
    }
}

bool requests_grow(struct requests *requests) {
    uint32_t size = requests->size > 0 ? 2 * requests->size : SIZE_AT_FIRST;
    struct conn_request **ring = memory_alloc(requests->allocator, size * sizeof(*ring));
    if (ring == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < requests->count; i++) {
        ring[i] = requests->ring[(requests->first + i) & (requests->size - 1)];
    }
    requests_finish(requests);
    requests->ring = ring;
    requests->size = size;
    requests->first = 0;
    return true;
}
