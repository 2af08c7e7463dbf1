/*
 * Names to numeric addresses, without blocking the loop (libevent's evdns; /etc/hosts first). The
 * settings of the system are read anew for each lookup.
 */
#ifndef REDLOCK_IO_RESOLVER_H
#define REDLOCK_IO_RESOLVER_H

#include "io/loop.h"

struct lookup;

struct resolver {
    const struct loop *loop;
    unsigned pending; /* lookups of which something is left in the loop, canceled ones included */
};

/* The most addresses of a name that are told, and the room for one: an IPv6 address. */
#define RESOLVER_ADDRESSES_MAX 8
#define RESOLVER_ADDRESS_SIZE 46

/* Numeric addresses, in the order of the answer. */
struct addresses {
    unsigned count;
    char list[RESOLVER_ADDRESSES_MAX][RESOLVER_ADDRESS_SIZE];
};

/* `addresses` is NULL when there is none, and `why` says why. Valid during the call. */
typedef void resolver_cb(void *arg, const struct addresses *addresses, const char *why);

/* Nothing is to be finished when no lookup is pending. */
void resolver_init(struct resolver *resolver, const struct loop *loop);

/* Whether `host` is a number already, for which no lookup is needed. */
bool resolver_is_numeric(const char *host);

/*
 * Looks up `host`. The callback may come before the call returns; then, and when there was no
 * memory, NULL is returned.
 */
struct lookup *resolver_start(struct resolver *resolver, const char *host, resolver_cb *on_done,
                              void *arg);

/* The callback will not be called. Takes NULL. The lookup stays pending for a few milliseconds. */
void lookup_cancel(struct lookup *lookup);

#endif
