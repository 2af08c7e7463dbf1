/* The locks that are held for HTTP clients. */
#ifndef HOLDS_H
#define HOLDS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gateway;
struct connection;

/* Bytes of an owner's name, with its NUL, as the library bounds it. */
#define OWNER_SIZE 65
/* Hexadecimal digits of an id, with a NUL: the gateway's run, the hold's place, 128 random bits. */
#define HOLD_ID_SIZE 49
#define HOLD_SECRET_SIZE 16

struct hold {
    struct gateway *gateway;
    redlock_lock *lock;            /* NULL: not asked for yet */
    bool is_held;                  /* whether the lock is acquired */
    struct connection *connection; /* one that is being told of the lock; NULL: it has been told */
    size_t slot;
    unsigned char secret[HOLD_SECRET_SIZE];
    redlock_mode mode;
    uint64_t ttl_ms;
    uint64_t until_ms; /* end of the validity that the HTTP client was told, or a moment later */
    char owner[OWNER_SIZE];
    char *key; /* as in a path */
};

/* Places of all holds. An empty place is NULL, and stands in `empty`. */
struct holds {
    struct hold **slots;
    size_t *empty;
    size_t limit;
    size_t count;
    uint32_t run; /* random number of this run of the gateway */
};

/* Returns whether there was memory. */
bool holds_init(struct holds *holds, size_t limit);

/* Frees the places, and holds that are left. */
void holds_finish(struct holds *holds);

/*
 * Makes a hold, with a fresh id, of a lock that is to be acquired. `key` is copied. Returns NULL
 * without memory, or where all places are taken.
 */
struct hold *holds_add(struct gateway *gateway, const char *key);

/* Writes the id. Returns `text`. */
char *hold_id(const struct hold *hold, char text[HOLD_ID_SIZE]);

/*
 * Returns the hold of that id and key, whose lock is acquired; or NULL. Then *is_foreign tells
 * whether the id is of another gateway, or of another run of this one.
 */
struct hold *holds_find(struct holds *holds, const char *id, const char *key, bool *is_foreign);

/*
 * Frees the hold, whose lock has ended or is not the gateway's any more. A closing gateway goes on
 * to its end when it was the last one.
 */
void hold_drop(struct hold *hold);

/* Records that the HTTP client is about to be told the validity of the lock. */
void hold_promise(struct hold *hold);

/* Releases the lock, which is acquired, and drops the hold; nobody is told. */
void hold_give_back(struct hold *hold);

/* Likewise, when the time is over that the HTTP client has been promised; the lock has lapsed. */
void hold_give_back_in_time(struct hold *hold);

#endif
