/* The members of a sorted set that the simulated master keeps. Scores are whole numbers. */
#ifndef REDLOCK_SIM_SETS_H
#define REDLOCK_SIM_SETS_H

#include "words.h"

#include <stdbool.h>
#include <stdint.h>

#define SET_NAME_MAX 64

struct member {
    char name[SET_NAME_MAX];
    size_t length;
    int64_t score;
};

struct set {
    struct member *list; /* in no order */
    unsigned count, capacity;
};

void set_finish(struct set *set);

/* NULL: it is not in it. */
const struct member *set_find(const struct set *set, const struct word *name);

/* True: it was not in it. */
bool set_put(struct set *set, const struct word *name, int64_t score);

/* True: it was in it. */
bool set_remove(struct set *set, const struct word *name);

/* Returns how many there were. */
unsigned set_remove_up_to(struct set *set, int64_t score);

unsigned set_count_from(const struct set *set, int64_t score);

/* The one with the largest score; NULL: it is empty. */
const struct member *set_last(const struct set *set);

#endif
