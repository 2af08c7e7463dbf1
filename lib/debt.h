/*
 * The releases that a node is owed: they did not get through, and are sent again when the node
 * can take them, so that one which was away does not keep a key for a whole TTL after it came
 * back. Each is kept until its key has expired anyway.
 */
#ifndef REDLOCK_DEBT_H
#define REDLOCK_DEBT_H

#include "key.h"
#include "wire/command.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The most that one node is owed; what is beyond is left to the keys' TTL. */
#define DEBTS_MAX 65536

/* Debts may take as many bytes at least: their bound is that of a queue, and that may be short. */
#define DEBTS_BYTES_LEAST ((size_t)64 * 1024)

/* A release: of which key, by which token. */
struct owed {
    struct key *key;
    const char *token;
    uint64_t until;      /* the key has expired at the node */
    uint64_t stay_until; /* the key is to stay until then; 0: it is not */
};

struct debt {
    STAILQ_ENTRY(debt) link;
    struct owed owed; /* the key is held; the token is: */
    char token[TOKEN_LENGTH + 1];
};

struct debts {
    const redlock_allocator *allocator;
    STAILQ_HEAD(debt_list, debt) list;
    size_t count;
    size_t bytes; /* of debts and keys: a key that several debts share counts for each */
    size_t max_bytes;
    size_t sweep_at;      /* the count at which all are looked at: many may have expired by then */
    uint64_t first_until; /* none expires before this */
};

/* `max_bytes`: what they may take, with their keys. */
void debts_init(struct debts *debts, const redlock_allocator *allocator, size_t max_bytes);
void debts_finish(struct debts *debts);

/* False when there are too many, or no memory: then only the key's TTL frees it. */
bool debts_add(struct debts *debts, const struct owed *owed, uint64_t now);

/* Drops those whose keys have expired by now. */
void debts_drop_expired(struct debts *debts, uint64_t now);

/* Removes and frees the first one. */
void debts_drop_first(struct debts *debts);

#endif
