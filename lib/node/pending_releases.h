/*
 * Releases that are owed to a node: they did not get through, and are sent again once the node
 * takes commands. Without pending releases a node that was away would keep a key for a whole TTL
 * after its return. A pending release lapses when its key has expired at the node.
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

/* The most pending releases of one node; the keys of further releases are left to their TTL. */
#define PENDING_RELEASES_MAX 65536

/* The least bound on the bytes of pending releases, which a smaller bound on a node's queue does
 * not lower. */
#define PENDING_RELEASES_BYTES_LEAST ((size_t)64 * 1024)

/* A release: its key, its token, and until when it is of use. */
struct release {
    uint64_t request; /* the number of the request that it was of; 0: none */
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t ticket;     /* of a token that may have an entry in the queue; 0: none */
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
    size_t bytes; /* of pending releases and keys; a key that several pending releases share counts
                     for each */
    size_t max_bytes;
    size_t sweep_at;      /* the count at which expired pending releases are looked for */
    uint64_t first_until; /* an instant before which no pending release lapses */
};

/* Begins without pending releases. `max_bytes`, or PENDING_RELEASES_BYTES_LEAST if that is more,
 * bounds their bytes. */
void pending_releases_init(struct pending_releases *pending, const redlock_allocator *allocator,
                           size_t max_bytes);

/* Frees all pending releases. */
void pending_releases_finish(struct pending_releases *pending);

/*
 * Adds a copy of a release, with a reference to its key. Returns false when a bound or want of
 * memory refuses the pending release: the key is left to its TTL.
 */
bool pending_releases_add(struct pending_releases *pending, const struct release *release,
                          uint64_t now);

/* Drops the pending releases whose keys have expired by now. */
void pending_releases_drop_expired(struct pending_releases *pending, uint64_t now);

/* Removes and frees the first pending release, which must exist. */
void pending_releases_drop_first(struct pending_releases *pending);

#endif
