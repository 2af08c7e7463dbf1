/*
 * Commands as bytes, in RESP2 (redis.io/docs/reference/protocol-spec): arrays of bulk strings, so
 * that every argument is binary-safe. All append to `out`; a failed append shows in out->failed.
 */
#ifndef REDLOCK_WIRE_COMMAND_H
#define REDLOCK_WIRE_COMMAND_H

#include "base/bytes.h"
#include "wire/script.h"

#include <stdint.h>

/* The hexadecimal digits of a token. */
#define TOKEN_LENGTH 40

/* A command of `count` NUL-terminated words. */
void command_words(struct bytes *out, unsigned count, const char *const *words);

/* SET key token NX PX ttl: takes the key if nobody has it (Redlock step 2). */
void command_set(struct bytes *out, const char *key, size_t key_length, const char *token,
                 uint64_t ttl_ms);

/*
 * A call of a script for many keys, in two steps: command_script_key appends one key to `keys`
 * and its arguments to `arguments` (ttl_ms is for SCRIPT_RENEW only); command_script puts the
 * call together, with EVALSHA, or with EVAL and the script's text, which also loads it.
 */
void command_script_key(enum script script, struct bytes *keys, struct bytes *arguments,
                        const char *key, size_t key_length, const char *token, uint64_t ttl_ms);
void command_script(struct bytes *out, enum script script, bool with_text, unsigned count,
                    const struct bytes *keys, const struct bytes *arguments);

#endif
