/* The locks that are held for HTTP clients. */
#ifndef HOLDS_H
#define HOLDS_H

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gateway;
struct connection;

/* Size of an owner's name with its NUL, as the library bounds it. */
#define OWNER_SIZE 65
/* Hexadecimal digits of an id, and a NUL: the gateway's run, the index, 128 random bits. */
#define HOLD_ID_SIZE 49
#define HOLD_SECRET_SIZE 16

struct hold {
    struct gateway *gateway;
    redlock_lock *lock;            /* NULL: not requested yet */
    bool is_held;                  /* whether the lock is acquired */
    struct connection *connection; /* connection that is being answered; NULL: answered */
    size_t slot;
    unsigned char secret[HOLD_SECRET_SIZE];
    redlock_mode mode;
    uint64_t ttl_ms;
    uint64_t until_ms; /* end of the validity that the HTTP client got, or a moment later */
    char owner[OWNER_SIZE];
    char *key; /* encoded as in a path */
};

/* Slots of all holds. An unused slot is NULL, and its index is in `empty`. */
struct holds {
    struct hold **slots;
    size_t *empty;
    size_t limit;
    size_t count;
    uint32_t run; /* random number of this run of the gateway */
};

/* Returns whether there was memory. */
bool holds_init(struct holds *holds, size_t limit);

/* Frees the slots and the remaining holds. */
void holds_finish(struct holds *holds);

/*
 * Creates a hold, with a new id, for a lock that is yet to be acquired. `key` is copied. Returns
 * NULL when out of memory, or if all slots are taken.
 */
struct hold *holds_add(struct gateway *gateway, const char *key);

/* Writes the id. Returns `text`. */
char *hold_id(const struct hold *hold, char text[HOLD_ID_SIZE]);

/*
 * Returns the hold with that id and key, if its lock is acquired; otherwise NULL, and *is_foreign
 * is whether the id belongs to another gateway, or to another run of this one.
 */
struct hold *holds_find(struct holds *holds, const char *id, const char *key, bool *is_foreign);

/*
 * Frees a hold whose lock has ended, or no longer belongs to the gateway. If it was the last one, a
 * closing gateway ends.
 */
void hold_drop(struct hold *hold);

/* Records the validity of the lock, which is about to be sent to the HTTP client. */
void hold_promise(struct hold *hold);

/* Releases an acquired lock and drops the hold, without notice to the HTTP client. */
void hold_give_back(struct hold *hold);

/* Does the same when the validity sent to the HTTP client is over; for a lock that has lapsed. */
void hold_give_back_in_time(struct hold *hold);

#endif
