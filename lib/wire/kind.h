/*
 * The kinds of locks, one row each: the script that carries out each step of the lock's life. A new
 * kind needs a row in kind.c, its scripts, and their tests.
 */
#ifndef REDLOCK_WIRE_KIND_H
#define REDLOCK_WIRE_KIND_H

#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>

/* A bit mask of the features of a request. Shared locks are READER or WRITER. */
enum kind_feature {
    KIND_FENCED = 1,
    KIND_SEVERAL = 2, /* several keys in one lock */
    KIND_PERMIT = 4,
    KIND_READER = 8,
    KIND_WRITER = 16
};

struct kind {
    unsigned features;
    char form;           /* form of its queue entries (scripts/parts/queue.lua); 0: none */
    enum script take;    /* acquires without queueing; SCRIPT_NONE: the command SET */
    enum script queue;   /* acquires or queues; SCRIPT_NONE: the kind has no queue */
    enum script top_up;  /* adds a node that lacks a held lock's key; SCRIPT_NONE: SET */
    enum script renew;   /* extends the key's expiry */
    enum script release; /* deletes the key, or passes it to the next waiter */
    enum script leave;   /* releases, and removes the queue entry */
    enum script stay;    /* releases, but leaves the key in place for a while */
};

/* Returns the kind with exactly these features, or NULL. */
const struct kind *kind_of(unsigned features);

/* Convert between a kind and its number, which is below 256. */
unsigned kind_number(const struct kind *kind);
const struct kind *kind_at(unsigned number);

static inline bool kind_is_fenced(const struct kind *kind) {
    return kind->features & KIND_FENCED;
}

#endif
