/*
 * The keys of a fake Redis master, and the commands that the library and its scripts send to it:
 * strings, sorted sets, lists (by their type alone), expiry, INFO, WAIT, and the library's own
 * scripts on a real Lua. `redlock-sim-cases` compares it with a real server.
 */
#ifndef REDLOCK_TEST_STORE_H
#define REDLOCK_TEST_STORE_H

#include "sets.h"
#include "words.h"

#include "wire/reply.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_VALUE_MAX 96
#define STORE_RUN_ID_LENGTH 40

/* Maximum length of a text in an answer. */
#define STORE_TEXT_MAX 2048

enum store_type { STORE_STRING, STORE_LIST, STORE_SET };

struct store_key {
    struct store_key *next; /* next key in its bucket */
    uint32_t hash;
    unsigned db;
    size_t name_length;
    char value[STORE_VALUE_MAX];
    size_t value_length;
    enum store_type type;
    struct set set;
    int64_t expires_ms; /* by the store's clock; -1: never */
    uint64_t command;   /* number of the command that created the key */
    char name[];
};

struct store {
    uint64_t (*clock)(const void *owner); /* reads the clock, in nanoseconds since 1970 */
    const void *owner;
    /*
     * Sends a text to the subscribers of a channel, and returns their number. NULL: there are none.
     */
    unsigned (*publish)(const void *owner, const struct word *channel, const struct word *text);
    /*
     * Returns the number of a channel's subscribers, without those of patterns. NULL: there are
     * none.
     */
    unsigned (*subscribers)(const void *owner, const struct word *channel);
    unsigned channels_asked;    /* channels of the PUBSUB NUMSUB that is running */
    unsigned db;                /* database of the connection whose command is running */
    struct store_key **buckets; /* a power of two of them, at least as many as keys */
    unsigned bucket_count, key_count;
    uint32_t scripts;   /* mask of enum script: the scripts loaded */
    uint64_t commands;  /* number of commands run so far, counted by the owner */
    int64_t started_ms; /* instant of the server's start, by its clock */
    unsigned replicas;  /* number of replicas that confirm writes */
    bool is_reticent;   /* scripts may not call INFO */
    bool is_replica;    /* the server is another master's replica, yet accepts writes */
    char run_id[STORE_RUN_ID_LENGTH + 1];
    unsigned promotions;           /* number of its promotions, each with a new history */
    char text[STORE_TEXT_MAX + 1]; /* the text of the last answer */
};

/* Initializes an empty store. `owner` is passed to `clock`. */
void store_init(struct store *store, uint64_t (*clock)(const void *owner), const void *owner);
void store_finish(struct store *store);

/* Runs one command. The answer is valid until the next command. */
struct reply store_run(struct store *store, const struct words *words);

/* Returns the key in the current database; NULL when it is missing or has expired. */
struct store_key *store_find(struct store *store, const char *name, size_t length);

/* Returns the key with a number below key_count, in no order. It may have expired. */
struct store_key *store_nth(const struct store *store, unsigned number);

/* Adds a missing key, as an empty string that never expires. */
struct store_key *store_add(struct store *store, const struct word *name);

void store_remove(struct store *store, struct store_key *key);

/* Removes all keys except those for which `keeps` (unless NULL) returns true. */
void store_forget(struct store *store, bool (*keeps)(const struct store_key *key));

/*
 * Sets a key in the current database to a string that expires after `ttl_ms`, or never if that is
 * 0.
 */
void store_put(struct store *store, const char *name, const char *value, uint64_t ttl_ms);

/* Returns the time of the store's clock, in ms. */
int64_t store_now_ms(const struct store *store);

/* Returns whether the key's name ends in `suffix`. */
bool store_key_ends(const struct store_key *key, const char *suffix);

/*
 * Makes the server look as if it had been up, with its memory intact, for `ms`: writes the marker
 * of the run `run_id` into the current database.
 */
void store_put_marker(struct store *store, const char *run_id, int64_t ms);

#endif
