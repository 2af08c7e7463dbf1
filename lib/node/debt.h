/*
 * Releases that are owed to a node: they did not get through, and are sent again once the node
 * takes commands. Without debts a node that was away would keep a key for a whole TTL after its
 * return. A debt lapses when its key has expired at the node.
 */
#ifndef REDLOCK_NODE_DEBT_H
#define REDLOCK_NODE_DEBT_H

#include "wire/command.h"
#include "wire/key.h"
#include "wire/kind.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The most debts of one node; the keys of further releases are left to their TTL. */
#define DEBTS_MAX 65536

/* The least bound on the bytes of debts, which a smaller bound on a node's queue does not lower. */
#define DEBTS_BYTES_LEAST ((size_t)64 * 1024)

/* A release: its key, its token, and until when it is of use. */
struct owed {
    uint64_t request; /* the number of the request that it was of; 0: none */
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t ticket;     /* of a token that may have an entry in line; 0: none */
    uint64_t until;      /* the instant at which the key has expired at the node */
    uint64_t stay_until; /* the instant up to which the key stays, without an owner; 0: none */
};

struct debt {
    STAILQ_ENTRY(debt) link;
    struct owed owed; /* holds a reference to the key; its token is the next field */
    char token[TOKEN_LENGTH + 1];
};

struct debts {
    const redlock_allocator *allocator;
    STAILQ_HEAD(debt_list, debt) list;
    size_t count;
    size_t bytes; /* of debts and keys; a key that several debts share counts for each */
    size_t max_bytes;
    size_t sweep_at;      /* the count at which expired debts are looked for */
    uint64_t first_until; /* an instant before which no debt lapses */
};

/* Begins without debts. `max_bytes`, or DEBTS_BYTES_LEAST if that is more, bounds their bytes. */
void debts_init(struct debts *debts, const redlock_allocator *allocator, size_t max_bytes);

/* Frees all debts. */
void debts_finish(struct debts *debts);

/*
 * Adds a copy of a release, with a reference to its key. Returns false when a bound or want of
 * memory refuses the debt: the key is left to its TTL.
 */
bool debts_add(struct debts *debts, const struct owed *owed, uint64_t now);

/* Drops the debts whose keys have expired by now. */
void debts_drop_expired(struct debts *debts, uint64_t now);

/* Removes and frees the first debt, which must exist. */
void debts_drop_first(struct debts *debts);

#endif
