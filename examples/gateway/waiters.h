/* Requests for locks that are under way. */
#ifndef WAITERS_H
#define WAITERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct connection;
struct exchange;
struct gateway;
struct hold;

/* A request for a lock. Its hold tells the key, the owner, and the terms. */
struct waiter {
    TAILQ_ENTRY(waiter) link;
    struct gateway *gateway;
    struct connection *connection; /* NULL: it broke, and the request is being canceled */
    struct hold *hold;
    uint64_t since_ms;
};

/* All of them, the oldest first. */
struct waiters {
    TAILQ_HEAD(, waiter) list;
    size_t count;
};

/* POST /v1/locks/{key}: acquires a lock, and answers when that has ended. */
void acquire_serve(const struct exchange *exchange);

/* Cancels all requests: their callbacks answer that the gateway is closing. */
void waiters_close(struct waiters *waiters);

#endif
