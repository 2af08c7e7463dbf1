/*
 * Resolves names to numeric addresses without blocking the loop (c-ares; /etc/hosts first). Each
 * lookup reads the system's settings again. A build without c-ares refuses names.
 */
#ifndef REDLOCK_IO_RESOLVER_H
#define REDLOCK_IO_RESOLVER_H

#include "io/loop.h"

struct lookup;

struct resolver {
    redlock_loop *loop;
    const redlock_allocator *allocator;
    unsigned pending; /* lookups with watches or timers in the loop, including canceled ones */
};

/* Maximum number of addresses reported for a name; size of one, including IPv6. */
#define RESOLVER_ADDRESSES_MAX 8
#define RESOLVER_ADDRESS_SIZE 46

/* Numeric addresses in the order of the DNS answers, IPv4 first. */
struct addresses {
    unsigned count;
    char list[RESOLVER_ADDRESSES_MAX][RESOLVER_ADDRESS_SIZE];
};

/*
 * Reports the result of a lookup. `addresses` is NULL if there are none; `why` is the reason. Both
 * are valid only during the call.
 */
typedef void resolver_cb(void *arg, const struct addresses *addresses, const char *why);

/* Initializes a resolver, which needs no finish function once no lookup is pending. */
void resolver_init(struct resolver *resolver, redlock_loop *loop,
                   const redlock_allocator *allocator);

/* Returns whether `host` is a numeric address, which needs no lookup. */
bool resolver_is_numeric(const char *host);

/*
 * Looks up `host`. `on_done` may be called before this call returns, as it is when out of memory:
 * then the return value is NULL. The lookup is over when `on_done` is called.
 */
struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg);

/*
 * Cancels a lookup; NULL is allowed. Its callback is not called. The lookup stays pending until
 * the loop's next iteration.
 */
void lookup_cancel(struct lookup *lookup);

#endif
