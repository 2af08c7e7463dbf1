/*
 * Encodes commands in RESP2 (redis.io/docs/reference/protocol-spec) as arrays of bulk strings, so
 * that every argument is binary-safe. All functions append to `out`, and set out->failed when out
 * of memory.
 */
#ifndef REDLOCK_WIRE_COMMAND_H
#define REDLOCK_WIRE_COMMAND_H

#include "base/bytes.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

/* Length of a token in hexadecimal digits. */
#define TOKEN_LENGTH 40

/* Length of the prefix shared by the tokens of all tries of a waiter for permits: its entry's id.
 */
#define ENTRY_ID_LENGTH 20

/* Appends a command of `count` NUL-terminated words. */
void command_words(struct bytes *out, unsigned count, const char *const *words);

/*
 * Appends SET key value NX PX ttl, which takes the key if it is free (Redlock step 2). The value is
 * the token, followed by '/' and the owner unless `owner` is "".
 */
void command_set(struct bytes *out, const char *key, size_t key_length, const char *token,
                 const char *owner, uint64_t ttl_ms);

/*
 * Appends WAIT, which answers how many replicas have confirmed all writes of the connection so far:
 * as soon as `replicas` have, or else after `timeout_ms`.
 */
void command_wait(struct bytes *out, uint32_t replicas, uint64_t timeout_ms);

/* Appends GETRANGE, which answers the first TOKEN_LENGTH bytes of a key's value, "" if missing. */
void command_look(struct bytes *out, const char *key, size_t key_length);

/* The name of a key: any bytes. */
struct script_name {
    const char *bytes;
    size_t length;
};

/* One lock in a script call. SCRIPT_INSPECT uses only the names and `named`. */
struct script_lock {
    const struct script_name *names; /* of the lock's keys */
    unsigned name_count;
    const char *token;
    const char *owner;       /* "": none */
    uint64_t ttl_ms;         /* SCRIPT_STAY: time to stay; unused by releases */
    unsigned step;           /* 1: acquisition; 0: top-up */
    uint64_t intent_ms;      /* writers: how long new readers are kept out; 0: not at all */
    uint32_t permits;        /* SCRIPT_PERMIT: number of permits of the semaphore */
    bool is_fenced;          /* whether the keys have counters */
    uint64_t fence;          /* fenced: minimum for the counters */
    uint64_t idle_ms;        /* fenced: TTL of an unused counter; 0: no expiry */
    uint64_t reservation_ms; /* waiters: how long the server keeps a pushed key for the waiter */
    char form;               /* waiters: form of the queue entry (scripts/parts/queue.lua) */
    uint64_t ticket;         /* waiters: position in the queue, lowest first */
    uint32_t named; /* SCRIPT_INSPECT: number of waiters to name; 0: do not read the queue */
};

/* A script call for many locks, while it is being collected. */
struct script_call {
    struct bytes keys, arguments;
    unsigned key_count, argument_count;
    const char *channel; /* the client's channel at the node, for scripts that take it; "": none */
};

void script_call_init(struct script_call *call, const redlock_allocator *allocator);
void script_call_finish(struct script_call *call);

/* Removes all locks, but keeps the memory. */
void script_call_clear(struct script_call *call);

/* Adds the keys and arguments of a lock. */
void script_call_add(struct script_call *call, enum script script, const struct script_lock *lock);

/* Returns the encoded length of the keys and arguments, in bytes. */
static inline size_t script_call_length(const struct script_call *call) {
    return call->keys.length + call->arguments.length;
}

/* Appends the call: EVALSHA or, `with_text`, EVAL, which also loads the script. */
void command_script(struct bytes *out, enum script script, bool with_text,
                    const struct script_call *call);

#endif
