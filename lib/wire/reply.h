/* Answers of servers, and their meaning. */
#ifndef REDLOCK_WIRE_REPLY_H
#define REDLOCK_WIRE_REPLY_H

#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum reply_type { REPLY_STATUS, REPLY_ERROR, REPLY_INTEGER, REPLY_NIL, REPLY_STRING };

/* One answer. `text` is valid only while the answer is delivered. */
struct reply {
    enum reply_type type;
    const char *text; /* STATUS, ERROR, STRING: `length` bytes and a NUL */
    size_t length;
    int64_t integer; /* INTEGER */
};

/* Kinds of error answers. After each of them the command was not carried out. */
enum reply_error {
    REPLY_ERROR_TRY_LATER,     /* loading, busy, out of memory, replica without master ... */
    REPLY_ERROR_MISCONFIGURED, /* for an operator to mend: read-only, a cluster ... */
    REPLY_ERROR_NO_ACCESS,     /* likewise: the login, the database, a right */
    REPLY_ERROR_NO_SCRIPT,     /* EVALSHA of a script that the server does not have */
    REPLY_ERROR_UNKNOWN        /* treated as TRY_LATER */
};

/* Classifies an ERROR by the first words of its text. */
enum reply_error reply_classify(const struct reply *reply);

/* Tells whether an operator has to mend it. */
static inline bool reply_is_for_operators(enum reply_error meaning) {
    return meaning == REPLY_ERROR_MISCONFIGURED || meaning == REPLY_ERROR_NO_ACCESS;
}

/* Tells whether the server lacks the script that was called. */
static inline bool reply_lacks_script(const struct reply *reply) {
    return reply->type == REPLY_ERROR && reply_classify(reply) == REPLY_ERROR_NO_SCRIPT;
}

/* Tells whether the reply is an error by which the ACL refuses the call itself, or one of its
 * keys. */
static inline bool reply_is_forbidden(const struct reply *reply) {
    return reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
}

/* Tells whether the user lacks the right for the call, or for a command inside its script. */
bool reply_lacks_right(const struct reply *reply);

/* Tells whether an error's text refuses the client: its login, its database or a right. */
bool reply_denies_access(const char *text);

/* Tells whether the reply is the status `text`, such as "OK". */
bool reply_is_status(const struct reply *reply, const char *text);

/* One item of a script's answer. */
struct reply_outcome {
    redlock_vote vote;
    uint32_t other_ttl_ms; /* DENIED: the TTL left to the holder's key */
    uint64_t fence;        /* GRANTED: the counter of a fenced lock; 0: none */
    const char *free;      /* a refused permit: the map that reply_says_free reads, in the reply */
    uint32_t free_length;  /* in digits; 0: no map */
    bool is_access_denied; /* ERROR, UNTRUSTED: the server refuses the client, or a right */
    bool lacks_right;      /* DENIED of a QUEUE: the user has no right to the queue */
    bool has_entry;        /* DENIED of a QUEUE: the waiter has an entry in the queue ... */
    uint32_t ahead;        /* ... behind so many waiters */
    bool is_foreign;       /* ... the first, behind a foreign holder */
    bool is_unfinished;    /* the call stopped at a bound: SCRIPT_PASS is to go on with the key */
};

/* Reads the answer to SET ... NX: GRANTED, DENIED or ERROR. */
struct reply_outcome reply_to_set(const struct reply *reply);

/*
 * Reads the `count` items of a script's answer into `outcomes`. Returns false when the answer is
 * not of the form of wire/script.h. A counter out of range is an ERROR of its item alone.
 */
bool reply_to_script(const struct reply *reply, enum script script, struct reply_outcome *outcomes,
                     unsigned count);

/* Returns whether an item of a script's answer is unfinished. */
bool reply_is_unfinished(const struct reply *reply);

/*
 * Returns the worst of a lock's `count` outcomes, one of each key: a node has the lock only where
 * the node has all of its keys.
 */
const struct reply_outcome *reply_combine(const struct reply_outcome *outcomes, unsigned count);

/* Tells whether a permit of the semaphore is free at the node. Only while the reply is
 * delivered. */
bool reply_says_free(const struct reply_outcome *outcome, uint32_t permit);

/* States of an inspected key. */
enum reply_view_kind {
    REPLY_VIEW_FREE,
    REPLY_VIEW_HELD,
    REPLY_VIEW_NO_EXPIRY,
    REPLY_VIEW_NO_STRING,
    REPLY_VIEW_NO_COUNTER /* the counter is out of range, whatever the key is */
};

/* The longest value of a waiter: a token, '/', and an owner of 64 bytes. */
#define REPLY_WAITER_MAX (40 + 1 + 64)

/* One of those who wait for an inspected key. */
struct reply_waiter {
    uint64_t ticket;
    const char *value; /* `length` bytes, valid only while the reply is delivered */
    size_t length;     /* 1 to REPLY_WAITER_MAX */
};

struct reply_view {
    enum reply_view_kind kind;
    uint64_t ttl_ms;       /* HELD */
    uint64_t fence;        /* the counter; 0: none */
    uint32_t readers;      /* the number of readers that share the key */
    uint32_t queue_length; /* the number of entries in the queue */
    uint32_t named;        /* the number of `waiters`, the first in the queue */
    struct reply_waiter waiters[REDLOCK_MAX_QUEUE_OWNERS];
    const char *value; /* `length` bytes, valid only while the reply is delivered */
    size_t length;
};

/* Reads the answer of SCRIPT_INSPECT. Returns false when it is of another form. */
bool reply_to_inspect(const struct reply *reply, struct reply_view *view);

#define REPLY_REPLICATION_ID_MAX 40

/* The answer of SCRIPT_BEAT, in microseconds. */
struct reply_beat {
    uint64_t time_us; /* the server's clock */
    uint64_t age_us;  /* of the marker */
    uint64_t last_us; /* of the marker's last confirmation, by the server's clock */
    char role[8];     /* "master", "slave", or "-" if the script may not ask */
    char id[REPLY_REPLICATION_ID_MAX + 1]; /* the replication id, or "-" */
};

/* Reads the answer of SCRIPT_BEAT. Returns false when it is of another form. */
bool reply_to_beat(const struct reply *reply, struct reply_beat *beat);

/*
 * Copies a field of the answer of INFO, such as "run_id", into `value`, cut to `capacity` - 1 bytes
 * and a NUL. Returns false when there is no such field.
 */
bool reply_info(const struct reply *reply, const char *field, char *value, size_t capacity);

#endif
