/*
 * Commands as bytes, in RESP2 (redis.io/docs/reference/protocol-spec): arrays of bulk strings, so
 * that every argument is binary-safe. All functions append to `out`; without memory they set
 * out->failed.
 */
#ifndef REDLOCK_WIRE_COMMAND_H
#define REDLOCK_WIRE_COMMAND_H

#include "base/bytes.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

/* The hexadecimal digits of a token. */
#define TOKEN_LENGTH 40

/* The first digits of a token, alike in all tries of a waiter for permits: they name its place. */
#define ENTRY_ID_LENGTH 20

/* Appends a command of `count` NUL-terminated words. */
void command_words(struct bytes *out, unsigned count, const char *const *words);

/*
 * Appends SET key value NX PX ttl, which takes the key if nobody has it (Redlock step 2). The value
 * is the token, followed by '/' and the owner unless `owner` is "".
 */
void command_set(struct bytes *out, const char *key, size_t key_length, const char *token,
                 const char *owner, uint64_t ttl_ms);

/*
 * Appends WAIT, which answers how many replicas have confirmed all writes of the connection so far:
 * at once when there are `replicas`, otherwise after `timeout_ms`.
 */
void command_wait(struct bytes *out, uint32_t replicas, uint64_t timeout_ms);

/* Appends GETRANGE, which answers the first TOKEN_LENGTH bytes of a key's value; none: "". */
void command_look(struct bytes *out, const char *key, size_t key_length);

/* The name of a key: any bytes. */
struct script_name {
    const char *bytes;
    size_t length;
};

/* One lock in a script's call. SCRIPT_INSPECT reads the names, and `named`. */
struct script_lock {
    const struct script_name *names; /* of the lock's keys */
    unsigned name_count;
    const char *token;
    const char *owner;       /* "": none */
    uint64_t ttl_ms;         /* SCRIPT_STAY: the time to stay; unused by releases */
    unsigned step;           /* 1: an acquisition; 0: a top-up */
    uint64_t intent_ms;      /* of a writer: how long readers are to make room; 0: not at all */
    uint32_t permits;        /* SCRIPT_PERMIT: the number of permits of the semaphore */
    bool is_fenced;          /* whether the keys have counters; the rest is for those */
    uint64_t fence;          /* the counters' least number */
    uint64_t idle_ms;        /* a counter's life without use; 0: for ever */
    uint64_t reservation_ms; /* of a waiter: the time for which a key that was pushed is kept */
    char form;               /* of a waiter: the form of its entry (scripts/parts/queue.lua) */
    uint64_t ticket;         /* of a waiter: its place in the queue, the smallest first */
    uint32_t named; /* SCRIPT_INSPECT: the number of waiters to name; 0: no look at the queue */
};

/* The call of a script for many locks, while it is collected. */
struct script_call {
    struct bytes keys, arguments;
    unsigned key_count, argument_count;
    const char *channel; /* of the node that the call goes to, if the script takes one; "": none */
};

void script_call_init(struct script_call *call, const redlock_allocator *allocator);
void script_call_finish(struct script_call *call);

/* Removes all locks, and keeps the memory. */
void script_call_clear(struct script_call *call);

/* Adds the keys and arguments of a lock. */
void script_call_add(struct script_call *call, enum script script, const struct script_lock *lock);

/* Returns the length in bytes of the keys and arguments as they are sent. */
static inline size_t script_call_length(const struct script_call *call) {
    return call->keys.length + call->arguments.length;
}

/* Appends the call: EVALSHA or, `with_text`, EVAL, which also loads the script. */
void command_script(struct bytes *out, enum script script, bool with_text,
                    const struct script_call *call);

#endif
