/*
 * Releases that a node is owed: they did not get through, and are sent again when the node takes
 * commands again. A node that was away would otherwise keep a key for a whole TTL after its return.
 * A debt lapses when its key has expired at the node.
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

/* The most debts of one node; keys of further releases are left to their TTL. */
#define DEBTS_MAX 65536

/* The least bound on the bytes of debts; theirs is that of a node's queue, which may be short. */
#define DEBTS_BYTES_LEAST ((size_t)64 * 1024)

/* A release: of which key, by which token. */
struct owed {
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t until;      /* when the key has expired at the node */
    uint64_t stay_until; /* until when the key is to stay, without an owner; 0: not at all */
};

struct debt {
    STAILQ_ENTRY(debt) link;
    struct owed owed; /* its key is held; its token is the next field */
    char token[TOKEN_LENGTH + 1];
};

struct debts {
    const redlock_allocator *allocator;
    STAILQ_HEAD(debt_list, debt) list;
    size_t count;
    size_t bytes; /* of debts and keys; a key that several debts share counts for each */
    size_t max_bytes;
    size_t sweep_at;      /* the count at which expired debts are looked for */
    uint64_t first_until; /* no debt lapses earlier */
};

/* `max_bytes` bounds what debts take, with their keys. */
void debts_init(struct debts *debts, const redlock_allocator *allocator, size_t max_bytes);
void debts_finish(struct debts *debts);

/* Copies a release. False when a bound or want of memory refuses it: the key's TTL frees it. */
bool debts_add(struct debts *debts, const struct owed *owed, uint64_t now);

/* Drops the debts whose keys have expired by now. */
void debts_drop_expired(struct debts *debts, uint64_t now);

/* Removes and frees the first debt, which there is. */
void debts_drop_first(struct debts *debts);

#endif
