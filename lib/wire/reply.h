/* Server replies and their meaning. */
#ifndef REDLOCK_WIRE_REPLY_H
#define REDLOCK_WIRE_REPLY_H

#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum reply_type { REPLY_STATUS, REPLY_ERROR, REPLY_INTEGER, REPLY_NIL, REPLY_STRING };

/* One reply. `text` is valid only while the reply is being delivered. */
struct reply {
    enum reply_type type;
    const char *text; /* STATUS, ERROR, STRING: `length` bytes and a NUL */
    size_t length;
    int64_t integer; /* INTEGER */
};

/* Kinds of error replies. In all cases the command was not carried out. */
enum reply_error {
    REPLY_ERROR_TRY_LATER,     /* loading, busy, out of memory, replica without master ... */
    REPLY_ERROR_MISCONFIGURED, /* needs an operator: read-only, a cluster ... */
    REPLY_ERROR_NO_ACCESS,     /* needs an operator: login, database, missing right */
    REPLY_ERROR_NO_SCRIPT,     /* EVALSHA of a script that the server does not know */
    REPLY_ERROR_UNKNOWN        /* treated as TRY_LATER */
};

/* Classifies an ERROR by the beginning of its text. */
enum reply_error reply_classify(const struct reply *reply);

/* Returns whether the error persists until an operator fixes the setup. */
static inline bool reply_is_for_operators(enum reply_error meaning) {
    return meaning == REPLY_ERROR_MISCONFIGURED || meaning == REPLY_ERROR_NO_ACCESS;
}

/* Returns whether the server does not know the script that was called. */
static inline bool reply_lacks_script(const struct reply *reply) {
    return reply->type == REPLY_ERROR && reply_classify(reply) == REPLY_ERROR_NO_SCRIPT;
}

/* Returns whether the ACL refused the call itself or one of its keys. */
static inline bool reply_is_forbidden(const struct reply *reply) {
    return reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0;
}

/* Returns whether the user lacks the right for the call, or for a command inside its script. */
bool reply_lacks_right(const struct reply *reply);

/* Returns whether an error's text refuses the client: its login, its database or a right. */
bool reply_denies_access(const char *text);

/* Returns whether the reply is the status `text`, such as "OK". */
bool reply_is_status(const struct reply *reply, const char *text);

/* One item of a script's answer. */
struct reply_outcome {
    redlock_vote vote;
    uint32_t other_ttl_ms; /* DENIED: remaining TTL of the holder's key */
    uint64_t fence;        /* GRANTED: counter of a fenced lock; 0: none */
    const char *free;      /* permit refused: map for reply_says_free, inside the reply */
    uint32_t free_length;  /* length of the map in digits; 0: no map */
    bool is_access_denied; /* ERROR, UNTRUSTED: the server refuses the client, or a right */
    bool lacks_right;      /* DENIED by a queueing script: the user has no right to the queue */
    bool has_entry;        /* DENIED by a queueing script: the waiter has a queue entry */
    uint32_t ahead;        /* has_entry: number of waiters ahead */
    bool is_foreign;       /* has_entry, none ahead: a foreign client holds the key */
    bool is_unfinished;    /* whether the call stopped at a bound, and SCRIPT_PASS must go on */
};

/* Reads the answer to SET ... NX: GRANTED, DENIED or ERROR. */
struct reply_outcome reply_to_set(const struct reply *reply);

/*
 * Parses the `count` items of a script's answer into `outcomes`. Returns false when the answer does
 * not have the form of wire/script.h. A counter out of range makes only its own item an ERROR.
 */
bool reply_to_script(const struct reply *reply, enum script script, struct reply_outcome *outcomes,
                     unsigned count);

/* Returns whether any item of a script's answer is unfinished. */
bool reply_is_unfinished(const struct reply *reply);

/*
 * Returns the worst of a lock's `count` outcomes, one for each key: a node grants the lock only if
 * it grants all of its keys.
 */
const struct reply_outcome *reply_combine(const struct reply_outcome *outcomes, unsigned count);

/*
 * Returns whether a permit of the semaphore is free at the node. Call it only while the reply is
 * being delivered.
 */
bool reply_says_free(const struct reply_outcome *outcome, uint32_t permit);

/* States of an inspected key. */
enum reply_view_kind {
    REPLY_VIEW_FREE,
    REPLY_VIEW_HELD,
    REPLY_VIEW_NO_EXPIRY,
    REPLY_VIEW_NO_STRING,
    REPLY_VIEW_NO_COUNTER /* counter out of range, whatever the state of the key */
};

/* Maximum length of a waiter's value: a token, '/', and an owner of 64 bytes. */
#define REPLY_WAITER_MAX (40 + 1 + 64)

/* One waiter for an inspected key. */
struct reply_waiter {
    uint64_t ticket;
    const char *value; /* `length` bytes, valid only while the reply is being delivered */
    size_t length;     /* 1 to REPLY_WAITER_MAX */
};

struct reply_view {
    enum reply_view_kind kind;
    uint64_t ttl_ms;       /* HELD */
    uint64_t fence;        /* counter; 0: none */
    uint32_t readers;      /* number of readers that share the key */
    uint32_t queue_length; /* number of entries in the queue */
    uint32_t named;        /* number of `waiters`: the first in the queue */
    struct reply_waiter waiters[REDLOCK_MAX_QUEUE_OWNERS];
    const char *value; /* `length` bytes, valid only while the reply is being delivered */
    size_t length;
};

/* Parses the answer of SCRIPT_INSPECT. Returns false when it is malformed. */
bool reply_to_inspect(const struct reply *reply, struct reply_view *view);

#define REPLY_REPLICATION_ID_MAX 40

/* The answer of SCRIPT_BEAT: a node's heartbeat. */
struct reply_beat {
    uint64_t time_us; /* the server's clock */
    uint64_t age_us;  /* age of the marker */
    uint64_t last_us; /* last confirmation of the marker, by the server's clock */
    char role[8];     /* "master", "slave", or "-" if the script may not ask */
    char id[REPLY_REPLICATION_ID_MAX + 1]; /* replication id, or "-" */
};

/* Parses the answer of SCRIPT_BEAT. Returns false when it is malformed. */
bool reply_to_beat(const struct reply *reply, struct reply_beat *beat);

/*
 * Copies a field of INFO's answer, such as "run_id", into `value`, truncated to `capacity` - 1
 * bytes and a NUL. Returns false when there is no such field.
 */
bool reply_info(const struct reply *reply, const char *field, char *value, size_t capacity);

#endif
