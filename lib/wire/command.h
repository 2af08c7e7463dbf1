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

struct key;

/*
 * What commands say of one lock. A script takes the fields that its contract names, as numbers but
 * for the form and the value (script_sources).
 */
struct lock_arguments {
    struct key *key;         /* the first of its keys */
    const char *owner;       /* "": none */
    uint64_t ttl_ms;         /* SCRIPT_STAY: time to stay; QUEUE: 0: only enter the queue */
    uint64_t key_count;      /* number of its keys */
    uint64_t is_fenced;      /* 1: its keys have counters */
    uint64_t fence;          /* fenced: minimum for the counters */
    uint64_t counter_ttl_ms; /* fenced: TTL of an unused counter; 0: no expiry */
    uint64_t step;           /* 1: acquisition; 0: top-up */
    uint64_t intent_ms;      /* writers: how long new readers are kept out; 0: not at all */
    uint64_t permits;        /* number of permits of the semaphore */
    uint64_t reservation_ms; /* waiters: how long the server keeps a pushed key for the waiter */
    uint64_t ticket;         /* waiters: position in the queue, lowest first */
    uint64_t waiters_named;  /* number of waiters to name; 0: the queue is not read */
    char form;               /* form of the queue entry (scripts/parts/queue.lua) */
    char value[TOKEN_LENGTH + 1]; /* the token; sent with "/" and the owner after it */
};

/* Appends a command of `count` NUL-terminated words. */
void command_words(struct bytes *out, unsigned count, const char *const *words);

/* Appends SET key value NX PX ttl_ms, which takes the lock's key if free (Redlock step 2). */
void command_set(struct bytes *out, const struct lock_arguments *lock);

/*
 * Appends WAIT, which answers how many replicas have confirmed all writes of the connection so far:
 * as soon as `replicas` have, or else after `timeout_ms`.
 */
void command_wait(struct bytes *out, uint32_t replicas, uint64_t timeout_ms);

/* Appends GETRANGE, which answers the first TOKEN_LENGTH bytes of a key's value, "" if missing. */
void command_look(struct bytes *out, const char *key, size_t key_length);

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
void script_call_add(struct script_call *call, enum script script,
                     const struct lock_arguments *lock);

/* Returns the encoded length of the keys and arguments, in bytes. */
static inline size_t script_call_length(const struct script_call *call) {
    return call->keys.length + call->arguments.length;
}

/* Appends the call: EVALSHA or, `with_text`, EVAL, which also loads the script. */
void command_script(struct bytes *out, enum script script, bool with_text,
                    const struct script_call *call);

#endif
