/*
 * The scripts that servers run for us. RELEASE and RENEW are each for many keys at once: locks that
 * renew or release in the same turn of the loop travel together, and each key gets its own answer.
 *
 * Their answer is one string with an item per key, in order:
 *     y        done: the key had our token
 *     m        missing
 *     h<ms>    held by another, for so many milliseconds more
 *     p        there, but no lock: it never expires
 *     t        there, but no lock: it is not a string
 *
 * BEAT reads the server's clock, and keeps the marker: a key whose value, `<first>:<last>`, says
 * when a client found none, and when one last confirmed it. A marker that was confirmed last before
 * the caller saw it confirmed is a restored one, and begins anew. It is written at most once a
 * second. The answer is `<clock> <age> <last>`: all in microseconds, the age of the marker and the
 * others by the server's clock.
 */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stddef.h>

enum script {
    SCRIPT_RELEASE, /* arguments: a token per key */
    SCRIPT_RENEW,   /* arguments: a token and a TTL in milliseconds per key */
    SCRIPT_BEAT,    /* one key, the marker; its last confirmation that the caller knows of, or 0 */
    SCRIPT_COUNT
};

/* The hexadecimal digits of a script's SHA-1, without a NUL. */
#define SCRIPT_SHA_LENGTH 40

/* The most keys in one call: it bounds for how long a call keeps a server from others. */
#define SCRIPT_MAX_KEYS 64

const char *script_text(enum script script);
const char *script_sha(enum script script);

#endif
