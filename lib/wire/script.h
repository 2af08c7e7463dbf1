/*
 * The scripts that servers run for us. But for INSPECT and BEAT each is for many locks at once:
 * locks that renew or release in the same turn of the loop travel together, and each gets its own
 * answer.
 *
 * Their answer is one string with an item per key, in order; of TAKE, with one per lock:
 *     y        done: the key had our token, or has it now
 *     y<n>     the same of a fenced lock: its counter is n now
 *     m        missing
 *     h<ms>    held by another, for so many milliseconds more
 *     p        there, but no lock: it never expires
 *     t        there, but no lock: it is not a string; or its counter is no number
 *     h<ms>f<map>, pf<map>, tf<map>
 *              the same of a permit, and which of its semaphore are free at the node: hexadecimal
 *              digits, four permits each, the first digit and its lowest bit for the first permit
 *
 * TAKE is for what SET cannot do. It takes all keys of a lock, or none. Beside each key of a fenced
 * lock stands its counter, which outlives the lock: TAKE sets all of them to the larger of `fence`
 * and what the largest is, or one more than that (`step`). KEEP renews a key, and raises its
 * counter to `fence`; RENEW is for keys without a counter. STAY gives a key back, but leaves it
 * there for so long, with a value that nobody has: zeros for the token.
 *
 * PERMIT takes a permit: as SET does, or, fenced, as TAKE with a step of 1. Its key is
 * "<name>:<i>", and those of the others, which it looks at when it cannot have that one, differ in
 * <i> alone. (They are not among its keys: 256 of them would be many to send.)
 *
 * INSPECT only looks, and answers `<what> <ttl> <counter> <value>`: f free, h held, p without
 * expiry, t no string; the counter is 0 where it is none.
 *
 * BEAT reads the server's clock, and keeps the marker: a key whose value, `<first>:<last>`, says
 * when a client found none, and when one last confirmed it. A marker that was confirmed last before
 * the caller saw it confirmed is a restored one, and begins anew. It is written at most once a
 * second. The answer is `<clock> <age> <last>`: all in microseconds, the age of the marker and the
 * others by the server's clock.
 */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

enum script {
    SCRIPT_RELEASE, /* arguments: a token per key */
    SCRIPT_RENEW,   /* arguments: a token and a TTL in milliseconds per key */
    SCRIPT_BEAT,    /* one key, the marker; its last confirmation that the caller knows of, or 0 */
    SCRIPT_TAKE, /* keys: all keys of a lock, all counters if it is fenced; arguments: token, TTL,
                    how many keys, whether fenced, fence, step, the counters' TTL or 0 */
    SCRIPT_KEEP, /* keys: key, counter; arguments: token, TTL, fence, the counter's TTL or 0 */
    SCRIPT_STAY, /* arguments: a token and a time to stay in milliseconds per key */
    SCRIPT_INSPECT, /* keys: key, counter; for one lock */
    SCRIPT_PERMIT,  /* arguments: token, TTL, fence or 0, counter's TTL or 0, number of permits */
    SCRIPT_COUNT
};

/* The hexadecimal digits of a script's SHA-1, without a NUL. */
#define SCRIPT_SHA_LENGTH 40

/* Scripts from this one on are not loaded ahead: the first call on a connection has the text. */
#define SCRIPT_FIRST_LAZY SCRIPT_BEAT

/*
 * A call with so many keys takes no further lock: it bounds for how long a call keeps a server from
 * others. (Its last lock may have REDLOCK_MAX_KEYS more.)
 */
#define SCRIPT_MAX_KEYS 64

const char *script_text(enum script script);
const char *script_sha(enum script script);

/* Whether it takes keys that are free: what is released in the same turn is released first. */
bool script_takes(enum script script);

#endif
