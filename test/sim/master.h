/*
 * A simulated Redis master: it reads the bytes that a client sends, keeps the keys, and runs the
 * library's real scripts on a real Lua. `redlock-sim-cases` checks it against a real server.
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

/* The longest text that it answers. */
#define MASTER_TEXT_MAX 2048

enum store_type { STORE_STRING, STORE_LIST, STORE_SET };

struct store_key {
    struct store_key *next; /* in its bucket */
    uint32_t hash;
    unsigned db;
    size_t name_length;
    char value[MASTER_VALUE_MAX];
    size_t value_length;
    enum store_type type;
    struct set set;
    int64_t expires_ms; /* by the master's clock; -1: never */
    uint64_t command;   /* the number of the command that made it */
    char name[];
};

struct master {
    struct world *world;
    unsigned index;
    struct tempo clock;
    unsigned db;                /* that of the connection whose command is carried out */
    struct store_key **buckets; /* a power of two of them, at least as many as keys */
    unsigned bucket_count, key_count;
    uint32_t scripts;   /* mask of enum script: those that it has loaded */
    uint64_t commands;  /* carried out so far */
    unsigned run;       /* how often it was started */
    int64_t started_ms; /* by its clock */
    unsigned replicas;  /* that confirm what they are sent */
    bool is_reticent;   /* its scripts may not ask for INFO */
    char text[MASTER_TEXT_MAX + 1];
};

void master_init(struct master *master, struct world *world, unsigned index);
void master_finish(struct master *master);

/* It is started anew at this true time. */
void master_start(struct master *master, uint64_t at);

/* It has been up for long, and its memory has been sound for as long. */
void master_seem_old(struct master *master, unsigned db);

/* Gives it the old marker of another one, as if it had been its replica for a moment. */
void master_seem_another(struct master *master, unsigned db, const struct master *other);

/* One of its keys, by a number below key_count, in no order; and evicts it. */
const struct store_key *master_nth(const struct master *master, unsigned number);
void master_evict(struct master *master, const struct store_key *key);

/* Forgets all keys (`FLUSHALL`, or a restart without data). */
void master_forget(struct master *master);
/* The same, but for the counters of fenced locks. */
void master_forget_locks(struct master *master);

/* Carries out one command. The answer is valid until the next. */
struct reply master_run(struct master *master, const struct words *words);

/* The key in the current database, unless it is not there or has expired; NULL. */
const struct store_key *master_find(struct master *master, const char *name, size_t length);

/* By its own clock. */
int64_t master_now_ms(const struct master *master);

/* The true time until which it certainly keeps what expires then, by its clock; -1: never. */
uint64_t master_keeps_until(const struct master *master, int64_t expires_ms);

#endif
