/* A simulated Redis master: a store, and a clock of its own. */
#ifndef REDLOCK_SIM_MASTER_H
#define REDLOCK_SIM_MASTER_H

#include "tempo.h"
#include "world.h"

#include "store.h"

struct master {
    struct store store;
    struct world *world;
    unsigned index;
    struct tempo clock;
    unsigned run; /* number of its starts */
};

void master_init(struct master *master, struct world *world, unsigned index);
void master_finish(struct master *master);

/* Starts the master anew at a true time. */
void master_start(struct master *master, uint64_t at);

/* Makes the master look as if it had been up, and its memory sound, for long. */
void master_seem_old(struct master *master, unsigned db);

/*
 * Takes all keys from the master but its marker, as if it had become the replica of a replica of
 * its own that lacked them, and a master again.
 */
void master_fail_back(struct master *master);

/* Gives the master the memory of another database, with an old marker: SWAPDB. */
void master_swap(struct master *master, unsigned db);

/* Gives the master the old marker of another one, as if it had been its replica for a moment. */
void master_seem_another(struct master *master, unsigned db, const struct master *other);

/*
 * Makes the master the replica of another one, or has it take over that one's memory once more: all
 * that was written to the replica is gone.
 */
void master_follow(struct master *master, unsigned db, const struct master *other);

/* Makes a replica a master again, with the memory that it has. */
void master_promote(struct master *master);

/* Forgets all keys (`FLUSHALL`, or a restart without data). */
void master_forget(struct master *master);
/* Forgets all keys but the counters of fenced locks. */
void master_forget_locks(struct master *master);

/* Carries out one command. The answer is valid until the next. */
static inline struct reply master_run(struct master *master, const struct words *words) {
    return store_run(&master->store, words);
}

/* Returns the key in the current database; NULL when it is not there or has expired. */
static inline const struct store_key *master_find(struct master *master, const char *name,
                                                  size_t length) {
    return store_find(&master->store, name, length);
}

/* Returns the time of the master's own clock, in ms. */
static inline int64_t master_now_ms(const struct master *master) {
    return store_now_ms(&master->store);
}

/*
 * Returns the true time until which the master certainly keeps a key that expires at `expires_ms`,
 * by its clock; -1: never.
 */
uint64_t master_keeps_until(const struct master *master, int64_t expires_ms);

#endif
