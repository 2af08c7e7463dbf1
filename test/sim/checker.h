/* What the parts of the checker share. Everybody else includes check.h. */
#ifndef REDLOCK_SIM_CHECKER_H
#define REDLOCK_SIM_CHECKER_H

#include "check.h"

#define NO_TOKEN UINT32_MAX

static inline struct checker *checker_of(const struct world *world) {
    return world->checker;
}

/* The number of a token that was given out; NO_TOKEN: it is none of ours. */
uint32_t check_token_of(const struct checker *checker, const char *text, size_t length);

/* key_count: it is none of ours. */
unsigned check_key_of(const struct checker *checker, const struct word *name);

/* NULL: nobody holds a lock with it. */
struct hold *check_hold_of(const struct checker *checker, uint32_t token);

/* Until when a lock claims to be valid, by its process's clock; 0: it does not. */
uint64_t check_claimed_end(const redlock_lock *lock);

/* While a lock is valid a quorum of servers keeps its key for so long. */
void check_backing(struct checker *checker, const struct hold *hold);

#endif
