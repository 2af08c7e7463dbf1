/*
 * The kinds of locks, and the script that each step of a lock's life calls: one row for each kind.
 * A new kind is a row in kind.c, its scripts, and their tests.
 */
#ifndef REDLOCK_WIRE_KIND_H
#define REDLOCK_WIRE_KIND_H

#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>

/* The features that a request asks for: a mask. Shared locks are READER or WRITER. */
enum kind_feature {
    KIND_FENCED = 1,
    KIND_SEVERAL = 2, /* keys */
    KIND_PERMIT = 4,
    KIND_READER = 8,
    KIND_WRITER = 16
};

struct kind {
    unsigned features;
    char form;           /* of the entries in queues (scripts/parts/queue.lua); 0: none */
    enum script take;    /* by a new acquisition; SCRIPT_NONE: the command SET */
    enum script queue;   /* by one that waits in the queue; SCRIPT_NONE: the kind has no queue */
    enum script top_up;  /* at a node that lacks the key of a lock that is held; or SCRIPT_NONE */
    enum script renew;   /* renews */
    enum script release; /* deletes, or passes on */
    enum script leave;   /* releases, and gives up the place in the queue */
    enum script stay;    /* gives the key back, but leaves it there for a time */
};

/* Returns the kind with just these features, or NULL. */
const struct kind *kind_of(unsigned features);

/* Return the number of a kind, below 256, and the kind of a number. */
unsigned kind_number(const struct kind *kind);
const struct kind *kind_at(unsigned number);

static inline bool kind_is_fenced(const struct kind *kind) {
    return kind->features & KIND_FENCED;
}

#endif
