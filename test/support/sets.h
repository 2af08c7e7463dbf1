/* The members of a sorted set in a store. Scores are whole numbers. */
#ifndef REDLOCK_TEST_SETS_H
#define REDLOCK_TEST_SETS_H

#include "words.h"

#include <stdbool.h>
#include <stdint.h>

#define SET_NAME_MAX 640

struct member {
    char name[SET_NAME_MAX];
    size_t length;
    uint32_t hash; /* of the name */
    int64_t score;
};

struct set {
    struct member *list; /* unsorted */
    unsigned count, capacity;
};

void set_finish(struct set *set);

/* Returns the member; NULL when it is not in the set. */
const struct member *set_find(const struct set *set, const struct word *name);

/* Adds a member, or changes its score. Returns whether it is new. */
bool set_put(struct set *set, const struct word *name, int64_t score);

/* Removes a member. Returns whether it was in the set. */
bool set_remove(struct set *set, const struct word *name);

/* Removes all members with scores up to `score`. Returns their number. */
unsigned set_remove_up_to(struct set *set, int64_t score);

unsigned set_count_from(const struct set *set, int64_t score);

/*
 * Returns the next member after `last` (NULL: the first) by score, then by name; NULL at the end.
 */
const struct member *set_next(const struct set *set, const struct member *last);

/* Returns the member with the largest score; NULL when the set is empty. */
const struct member *set_last(const struct set *set);

#endif
