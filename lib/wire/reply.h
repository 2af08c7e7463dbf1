/* What servers answer, and what it means. */
#ifndef REDLOCK_WIRE_REPLY_H
#define REDLOCK_WIRE_REPLY_H

#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reply_type { REPLY_STATUS, REPLY_ERROR, REPLY_INTEGER, REPLY_NIL, REPLY_STRING };

/* One answer; `text` is valid while it is being delivered. */
struct reply {
    enum reply_type type;
    const char *text; /* STATUS, ERROR, STRING: `length` bytes and a NUL */
    size_t length;
    int64_t integer;
};

/* How an error answer is taken. Whatever it says, the command was not carried out. */
enum reply_error {
    REPLY_ERROR_TRY_LATER,     /* loading, busy, out of memory, replica without master ... */
    REPLY_ERROR_MISCONFIGURED, /* an operator has to mend it: wrong password, read-only ... */
    REPLY_ERROR_NO_SCRIPT,     /* EVALSHA of a script that the server does not have */
    REPLY_ERROR_UNKNOWN        /* taken as TRY_LATER */
};

enum reply_error reply_classify(const struct reply *reply);

/* Whether it says that the server does not have the script that was called. */
static inline bool reply_lacks_script(const struct reply *reply) {
    return reply->type == REPLY_ERROR && reply_classify(reply) == REPLY_ERROR_NO_SCRIPT;
}

/* Whether it is the status `text`, such as "OK". */
bool reply_is_status(const struct reply *reply, const char *text);

/* What one lock's part in the answer of a script says. */
struct reply_outcome {
    redlock_vote vote;
    uint32_t other_ttl_ms; /* DENIED: what the holder's key has left */
    uint64_t fence;        /* GRANTED, of a fenced lock: its counter; 0: none */
    const char *free;      /* of a permit that was not granted: see reply_says_free */
    uint32_t free_length;
};

/* The vote that the answer to SET ... NX is. */
struct reply_outcome reply_to_set(const struct reply *reply);

/*
 * Reads the `count` items that `script` answers into `outcomes`. False when it is not of the form
 * that the script gives (wire/script.h). A counter out of range is an ERROR of its item alone.
 */
bool reply_to_script(const struct reply *reply, enum script script, struct reply_outcome *outcomes,
                     unsigned count);

/* Which of a lock's keys counts: a node has the lock only where it has all of them. */
const struct reply_outcome *reply_combine(const struct reply_outcome *outcomes, unsigned count);

/* Whether a permit of the semaphore is free at the node; while the reply is delivered. */
bool reply_says_free(const struct reply_outcome *outcome, uint32_t permit);

/* The answer of SCRIPT_INSPECT. */
enum reply_view_kind {
    REPLY_VIEW_FREE,
    REPLY_VIEW_HELD,
    REPLY_VIEW_NO_EXPIRY,
    REPLY_VIEW_NO_STRING
};

struct reply_view {
    enum reply_view_kind kind;
    uint64_t ttl_ms;   /* HELD */
    uint64_t fence;    /* the counter; 0: none */
    uint32_t readers;  /* how many share it */
    const char *value; /* `length` bytes, valid while the reply is delivered */
    size_t length;
};

/* False when it is not of that form. */
bool reply_to_inspect(const struct reply *reply, struct reply_view *view);

/* The answer of SCRIPT_BEAT, in microseconds. */
struct reply_beat {
    uint64_t time_us; /* the server's clock */
    uint64_t age_us;  /* of the marker */
    uint64_t last_us; /* when the marker was confirmed last */
};

/* False when it is not of that form. */
bool reply_to_beat(const struct reply *reply, struct reply_beat *beat);

/*
 * A field of what INFO answers, such as "run_id"; copied into `value`, cut to its `capacity`. False
 * when it is not there.
 */
bool reply_info(const struct reply *reply, const char *field, char *value, size_t capacity);

#endif
