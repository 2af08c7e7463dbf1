/* A simulated Redis master: a store with a clock of its own. */
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

/* Restarts the master at a true time. */
void master_start(struct master *master, uint64_t at);

/* Makes the master look as if it had long been up, with its memory intact. */
void master_seem_old(struct master *master, unsigned db);

/*
 * Removes all keys but the marker, as if the master had become the replica of its own replica,
 * which lacked them, and then a master again.
 */
void master_fail_back(struct master *master);

/* Gives the master the memory of another database, with an old marker, as SWAPDB does. */
void master_swap(struct master *master, unsigned db);

/* Gives the master the old marker of another one, as if it had been its replica for a moment. */
void master_seem_another(struct master *master, unsigned db, const struct master *other);

/*
 * Makes the master the replica of another one, or makes it take over that one's memory again: all
 * that was written to the replica is lost.
 */
void master_follow(struct master *master, unsigned db, const struct master *other);

/* Makes a replica a master again, with its current memory. */
void master_promote(struct master *master);

/* Forgets all keys (`FLUSHALL`, or a restart without data). */
void master_forget(struct master *master);
/* Forgets all keys but the counters of fenced locks. */
void master_forget_locks(struct master *master);

/* Runs one command. The answer is valid until the next. */
static inline struct reply master_run(struct master *master, const struct words *words) {
    return store_run(&master->store, words);
}

/* Returns the key in the current database; NULL when it is missing or has expired. */
static inline const struct store_key *master_find(struct master *master, const char *name,
                                                  size_t length) {
    return store_find(&master->store, name, length);
}

/* Returns the time of the master's own clock, in ms. */
static inline int64_t master_now_ms(const struct master *master) {
    return store_now_ms(&master->store);
}

/*
 * Returns the true time until which the master is certain to keep a key that expires at
 * `expires_ms`, by its clock; -1: never.
 */
uint64_t master_keeps_until(const struct master *master, int64_t expires_ms);

#endif
