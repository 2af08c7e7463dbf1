/*
 * The pending releases of a node: they did not get through, and are sent again once the node takes
 * commands. Without them, a node that was away would keep a key for up to a whole TTL after its
 * return. A pending release expires with its key at the node.
 */
#ifndef REDLOCK_NODE_PENDING_RELEASES_H
#define REDLOCK_NODE_PENDING_RELEASES_H

#include "wire/command.h"
#include "wire/key.h"
#include "wire/kind.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The most pending releases of a node; the keys of further releases are left to their TTL. */
#define PENDING_RELEASES_MAX 65536

/* The least bound on the bytes of pending releases, even if max_bytes is smaller. */
#define PENDING_RELEASES_BYTES_LEAST ((size_t)64 * 1024)

/* A release: its key, its token, and the time for which it is of use. */
struct release {
    uint32_t request; /* the number of the request that acquired the key; 0: none */
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t ticket;     /* the ticket of the token's queue entry, if it may have one; 0: none */
    uint64_t until;      /* the instant at which the key has expired at the node */
    uint64_t stay_until; /* the instant up to which the key stays, without an owner; 0: none */
};

struct pending_release {
    STAILQ_ENTRY(pending_release) link;
    struct release release; /* holds a reference to the key; its token is the next field */
    char token[TOKEN_LENGTH + 1];
};

struct pending_releases {
    const redlock_allocator *allocator;
    STAILQ_HEAD(pending_release_list, pending_release) list;
    size_t count;
    size_t bytes; /* number of bytes of releases and their keys; shared keys count for each */
    size_t max_bytes;
    size_t sweep_at;      /* the count at which expired pending releases are swept out */
    uint64_t first_until; /* an instant before which no pending release expires */
};

/*
 * Begins without pending releases. Their bytes are bounded by `max_bytes`, or by
 * PENDING_RELEASES_BYTES_LEAST if that is more.
 */
void pending_releases_init(struct pending_releases *pending, const redlock_allocator *allocator,
                           size_t max_bytes);

/* Frees all pending releases. */
void pending_releases_finish(struct pending_releases *pending);

/*
 * Adds a copy of a release, with a reference to its key. Returns false at a bound or without
 * memory: then the key is left to its TTL.
 */
bool pending_releases_add(struct pending_releases *pending, const struct release *release,
                          uint64_t now);

/* Drops the pending releases whose keys have expired. */
void pending_releases_drop_expired(struct pending_releases *pending, uint64_t now);

/* Removes and frees the first pending release, which must exist. */
void pending_releases_drop_first(struct pending_releases *pending);

#endif
