/*
 * The scripts that servers run for us, each for many keys at once: locks that renew or release in
 * the same turn of the loop travel together, and each key gets its own answer.
 *
 * The answer is one string with an item per key, in order:
 *     y        done: the key had our token
 *     m        missing
 *     h<ms>    held by another, for so many milliseconds more
 *     p        there, but no lock: it never expires
 *     t        there, but no lock: it is not a string
 */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stddef.h>

enum script {
    SCRIPT_RELEASE, /* arguments: a token per key */
    SCRIPT_RENEW,   /* arguments: a token and a TTL in milliseconds per key */
    SCRIPT_COUNT
};

/* The hexadecimal digits of a script's SHA-1, without a NUL. */
#define SCRIPT_SHA_LENGTH 40

/* The most keys in one call: it bounds for how long a call keeps a server from others. */
#define SCRIPT_MAX_KEYS 64

const char *script_text(enum script script);
const char *script_sha(enum script script);

#endif
