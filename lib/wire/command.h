/*
 * Commands as bytes, in RESP2 (redis.io/docs/reference/protocol-spec): arrays of bulk strings, so
 * that every argument is binary-safe. All append to `out`; a failed append shows in out->failed.
 */
#ifndef REDLOCK_WIRE_COMMAND_H
#define REDLOCK_WIRE_COMMAND_H

#include "base/bytes.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

/* The hexadecimal digits of a token. */
#define TOKEN_LENGTH 40

/* A command of `count` NUL-terminated words. */
void command_words(struct bytes *out, unsigned count, const char *const *words);

/*
 * SET key value NX PX ttl: takes the key if nobody has it (Redlock step 2). The value is the token;
 * and, with an owner, a '/' and that.
 */
void command_set(struct bytes *out, const char *key, size_t key_length, const char *token,
                 const char *owner, uint64_t ttl_ms);

/* WAIT: how many replicas have confirmed what was written before on the connection? */
void command_wait(struct bytes *out, uint32_t replicas, uint64_t timeout_ms);

/* A key's name: any bytes. */
struct script_name {
    const char *bytes;
    size_t length;
};

/* What a script is to do for one lock; SCRIPT_INSPECT takes the name only. */
struct script_lock {
    const struct script_name *names; /* of its keys */
    unsigned name_count;
    const char *token;
    const char *owner;  /* "": none */
    uint64_t ttl_ms;    /* but for SCRIPT_RELEASE */
    unsigned step;      /* 1: it is a new acquisition; 0: a top-up */
    uint64_t intent_ms; /* of a writer: for how long readers are to make room; 0: they need not */
    uint32_t permits;   /* for SCRIPT_PERMIT: of how many the key is one */
    bool is_fenced;     /* it has counters; the rest is for those */
    uint64_t fence;
    uint64_t idle_ms; /* how long a counter lives without use; 0: for ever */
};

/* A call of a script for many locks, as it is collected. */
struct script_call {
    struct bytes keys, arguments;
    unsigned key_count, argument_count;
};

void script_call_init(struct script_call *call, const redlock_allocator *allocator);
void script_call_finish(struct script_call *call);
void script_call_clear(struct script_call *call);
void script_call_add(struct script_call *call, enum script script, const struct script_lock *lock);

/* How many items the answer to it has for so many locks, which have so many keys together. */
static inline unsigned script_items(enum script script, unsigned locks, unsigned names) {
    return script == SCRIPT_TAKE ? locks : names;
}

/* Returns how many names a call has for each key of a lock: the key, and those beside it. */
unsigned script_names(enum script script);

static inline size_t script_call_length(const struct script_call *call) {
    return call->keys.length + call->arguments.length;
}

/* The call: with EVALSHA, or with EVAL and the script's text, which also loads it. */
void command_script(struct bytes *out, enum script script, bool with_text,
                    const struct script_call *call);

#endif
