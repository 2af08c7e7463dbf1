/*
 * The deeds of the targets that have a client, one after the other, as the input says. A deed is a
 * byte that names it, and the bytes that it needs.
 */
#ifndef REDLOCK_FUZZ_DEEDS_H
#define REDLOCK_FUZZ_DEEDS_H

#include "app.h"
#include "input.h"

struct run {
    struct app app;
    struct input input;
    unsigned peers; /* how many nodes the client has */
    uint64_t node_timeout_ms, max_ttl_ms;
    unsigned last; /* the newest lock: the deeds on a lock count back from it */
};

/* Deeds of the world: what nodes say, what becomes of connections, the passing of time. */
void deed_of_world(struct run *run);

/* Deeds of an application that uses locks as one does. */
void deed_of_lock(struct run *run);

/* The lock that the next byte names; NULL when there is none that may be used. */
struct hold *deed_pick(struct run *run);

#endif
