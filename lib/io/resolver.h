/*
 * Resolves names to numeric addresses, without blocking the loop (libevent's evdns; /etc/hosts
 * first). The system's settings are read anew for each lookup.
 */
#ifndef REDLOCK_IO_RESOLVER_H
#define REDLOCK_IO_RESOLVER_H

#include "io/loop.h"

struct lookup;

struct resolver {
    const struct loop *loop;
    unsigned pending; /* lookups with events left in the loop, canceled ones included */
};

/* Maximum number of addresses told for a name, and the size of one, IPv6 included. */
#define RESOLVER_ADDRESSES_MAX 8
#define RESOLVER_ADDRESS_SIZE 46

/* Numeric addresses, in the order of the answer. */
struct addresses {
    unsigned count;
    char list[RESOLVER_ADDRESSES_MAX][RESOLVER_ADDRESS_SIZE];
};

/*
 * Tells the result of a lookup. `addresses` is NULL when there are none; then `why` says why. Both
 * are valid during the call.
 */
typedef void resolver_cb(void *arg, const struct addresses *addresses, const char *why);

/* Makes a resolver. It needs no finish once no lookup is pending. */
void resolver_init(struct resolver *resolver, const struct loop *loop);

/* Returns whether `host` is a numeric address, which needs no lookup. */
bool resolver_is_numeric(const char *host);

/*
 * Looks up `host`. The callback may come before the call returns: then, and when out of memory, the
 * return value is NULL.
 */
struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg);

/*
 * Cancels a lookup, or NULL: its callback will not be called. The lookup stays pending for a few
 * milliseconds.
 */
void lookup_cancel(struct lookup *lookup);

#endif
