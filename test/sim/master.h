/*
 * A simulated Redis master: reads the bytes that a client sends, keeps the keys, and runs the
 * library's real scripts on a real Lua. `redlock-sim-cases` compares it with a real server.
 */
#ifndef REDLOCK_SIM_MASTER_H
#define REDLOCK_SIM_MASTER_H

#include "sets.h"
#include "tempo.h"
#include "words.h"
#include "world.h"

#include "wire/reply.h"

#include <stdbool.h>
#include <stdint.h>

#define MASTER_VALUE_MAX 96

/* Maximum length of a text in an answer. */
#define MASTER_TEXT_MAX 2048

enum store_type { STORE_STRING, STORE_LIST, STORE_SET };

struct store_key {
    struct store_key *next; /* next key in its bucket */
    uint32_t hash;
    unsigned db;
    size_t name_length;
    char value[MASTER_VALUE_MAX];
    size_t value_length;
    enum store_type type;
    struct set set;
    int64_t expires_ms; /* by the master's clock; -1: never */
    uint64_t command;   /* number of the command that made the key */
    char name[];
};

struct master {
    struct world *world;
    unsigned index;
    struct tempo clock;
    unsigned db;                /* database of the connection whose command is being carried out */
    struct store_key **buckets; /* a power of two of buckets, at least as many as keys */
    unsigned bucket_count, key_count;
    uint32_t scripts;   /* mask of enum script: the loaded ones */
    uint64_t commands;  /* number of commands carried out so far */
    unsigned run;       /* number of its starts */
    int64_t started_ms; /* instant of its start, by its clock */
    unsigned replicas;  /* number of replicas that confirm */
    bool is_reticent;   /* whether its scripts may not ask for INFO */
    char text[MASTER_TEXT_MAX + 1];
};

void master_init(struct master *master, struct world *world, unsigned index);
void master_finish(struct master *master);

/* Starts the master anew at a true time. */
void master_start(struct master *master, uint64_t at);

/* Makes the master look as if it had been up, and its memory sound, for long. */
void master_seem_old(struct master *master, unsigned db);

/* Gives the master the old marker of another one, as if it had been its replica for a moment. */
void master_seem_another(struct master *master, unsigned db, const struct master *other);

/* master_nth: returns a key by a number below key_count, in no order. master_evict: removes it. */
const struct store_key *master_nth(const struct master *master, unsigned number);
void master_evict(struct master *master, const struct store_key *key);

/* Forgets all keys (`FLUSHALL`, or a restart without data). */
void master_forget(struct master *master);
/* Forgets all keys but the counters of fenced locks. */
void master_forget_locks(struct master *master);

/* Carries out one command. The answer is valid until the next. */
struct reply master_run(struct master *master, const struct words *words);

/* Returns the key in the current database; NULL when it is not there or has expired. */
const struct store_key *master_find(struct master *master, const char *name, size_t length);

/* Returns the time of the master's own clock, in ms. */
int64_t master_now_ms(const struct master *master);

/*
 * Returns the true time until which the master certainly keeps a key that expires at `expires_ms`,
 * by its clock; -1: never.
 */
uint64_t master_keeps_until(const struct master *master, int64_t expires_ms);

#endif
