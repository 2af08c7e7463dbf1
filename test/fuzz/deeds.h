/*
 * The deeds of the targets that have a client, one after the other, as the input decides: each is a
 * byte that selects the deed, and the bytes that the deed needs.
 */
#ifndef REDLOCK_FUZZ_DEEDS_H
#define REDLOCK_FUZZ_DEEDS_H

#include "app.h"
#include "input.h"

struct run {
    struct app app;
    struct input input;
    unsigned peers; /* number of the client's nodes */
    uint64_t node_timeout_ms, max_ttl_ms;
    unsigned last; /* index of the newest lock, from which deeds on a lock count back */
};

/* Does a deed of the world: answers of nodes, ends of connections, the passing of time. */
void deed_of_world(struct run *run);

/* Does a deed of an application that uses locks in the usual way. */
void deed_of_lock(struct run *run);

/* Returns the lock that the next byte names; NULL when no lock may be used. */
struct hold *deed_pick(struct run *run);

#endif
