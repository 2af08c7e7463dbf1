/*
 * The requests of a connection that wait for a reply, in the order of their commands: a ring buffer
 * that grows but never shrinks. Included only by io/net.c.
 */
#ifndef REDLOCK_IO_REQUESTS_H
#define REDLOCK_IO_REQUESTS_H

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct conn_request;

struct requests {
    const redlock_allocator *allocator;
    struct conn_request **ring;
    uint32_t size; /* a power of two */
    uint32_t first;
    uint32_t count;
};

/* Allocates a ring that is large enough for a handshake. Returns false when out of memory. */
bool requests_init(struct requests *requests, const redlock_allocator *allocator);

/* Frees the ring. The struct may be all zeros. */
void requests_finish(struct requests *requests);

/* Enlarges the ring. Returns false when out of memory. */
bool requests_grow(struct requests *requests);

/* Makes room for one more request. Returns false when out of memory. */
static inline bool requests_make_room(struct requests *requests) {
    return requests->count < requests->size || requests_grow(requests);
}

/* Adds a request. There must be room. */
static inline void requests_add(struct requests *requests, struct conn_request *request) {
    requests->ring[(requests->first + requests->count++) & (requests->size - 1)] = request;
}

/* Returns the oldest request, or NULL. */
static inline struct conn_request *requests_first(const struct requests *requests) {
    return requests->count > 0 ? requests->ring[requests->first] : NULL;
}

/* Removes and returns the oldest request, which must exist. */
static inline struct conn_request *requests_take(struct requests *requests) {
    struct conn_request *request = requests->ring[requests->first];
    requests->first = (requests->first + 1) & (requests->size - 1);
    requests->count--;
    return request;
}

#endif
