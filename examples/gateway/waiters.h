/* Requests for locks in progress. */
#ifndef WAITERS_H
#define WAITERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct connection;
struct exchange;
struct gateway;
struct hold;

/* A request for a lock. Its hold has the key, the owner and the terms. */
struct waiter {
    TAILQ_ENTRY(waiter) link;
    struct gateway *gateway;
    struct connection *connection; /* NULL: broken, and the request is being canceled */
    struct hold *hold;
    uint64_t since_ms;
};

/* All requests, the oldest first. */
struct waiters {
    TAILQ_HEAD(, waiter) list;
    size_t count;
};

/* POST /v1/locks/{key}: acquires a lock, and answers with the result. */
void acquire_serve(const struct exchange *exchange);

/* Cancels all requests: their callbacks answer that the gateway is closing. */
void waiters_close(struct waiters *waiters);

#endif
