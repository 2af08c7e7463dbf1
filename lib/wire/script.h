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
 *     t        there, but no lock: it is not a string; or its counter cannot be counted on: it is
 *              no whole number, below 0, or not below 2^53 after this step
 *     h<ms>f<map>, pf<map>, tf<map>
 *              the same of a permit, and which of its semaphore are free at the node: hexadecimal
 *              digits, four permits each, the first digit and its lowest bit for the first permit
 *
 * TAKE is for what SET cannot do. It takes all keys of a lock, or none. Beside each key of a fenced
 * lock stands its counter, which outlives the lock: TAKE sets all of them to the larger of `fence`
 * and what the largest is, or one more than that (`step`). KEEP renews a key, and raises its
 * counter to `fence`, or keeps one that is there already alive, which takes no memory; RENEW is for
 * keys without a counter. STAY gives a key back, but leaves it
 * there for so long, with a value that nobody has: zeros for the token.
 *
 * PERMIT takes a permit: as SET does, or, fenced, as TAKE with a step of 1. Its key is
 * "<name>:<i>", and those of the others, which it looks at when it cannot have that one, differ in
 * <i> alone. (They are not among its keys: 256 of them would be many to send.)
 *
 * SHARE, SHARE_KEEP and SHARE_END take, renew and release the share of a reader. The key holds
 * REDLOCK_SHARED_VALUE and the list of readers their values, each with its expiry by the server's
 * clock; key and list expire with the last of them. Who is listed and has not expired holds the key
 * there, as long as it has that value: a list without such a key is a stale one, and so is such a
 * key without a reader, which is left to its expiry. SHARE lets nobody in (step 1) while there is a
 * writer's note, but who is in and who is topped up (step 0).
 * WRITE takes the key as SET or TAKE do. Where it meets readers it leaves a note for `intent`
 * milliseconds, unless there is one that lasts longer.
 *
 * INSPECT only looks, and answers `<what> <ttl> <counter> <readers> <value>`: f free, h held, p
 * without expiry, t no string; the counter is 0 where it is none.
 *
 * BEAT reads the server's clock, and keeps the marker: a key of the value `<first>:<last>:<run_id>`
 * that says when a client found none, when one last confirmed it, and at which run of which server.
 * A marker that was confirmed last before the caller saw it confirmed is a restored one, and one of
 * another run came with the memory of another server (a replica's, promoted or not): either begins
 * anew. Where INFO is not permitted the run is not looked at. The marker is written at most once a
 * second. A server that is out of memory (OOM), or cannot save (MISCONF), does not write, and
 * answers all the same. The answer is `<clock> <age> <last>`: all in microseconds, the age of the
 * marker and the others by the server's clock. The age is 0 where there is no marker, or a restored
 * one, and neither could be begun anew; <last> is then what the caller knew, and always a time that
 * was written.
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
    SCRIPT_INSPECT, /* keys: key, readers, counter; for one lock */
    SCRIPT_PERMIT,  /* arguments: token, TTL, fence or 0, counter's TTL or 0, number of permits */
    SCRIPT_SHARE,   /* keys: key, readers, writer; arguments: value, TTL, step */
    SCRIPT_SHARE_KEEP,   /* keys: key, readers; arguments: value, TTL */
    SCRIPT_SHARE_END,    /* keys: key, readers; arguments: value */
    SCRIPT_WRITE,        /* keys: key, readers, writer; arguments: value, TTL, intent */
    SCRIPT_WRITE_FENCED, /* keys: and counter; arguments: and fence, counter's TTL or 0 */
    SCRIPT_COUNT,
    SCRIPT_NONE = SCRIPT_COUNT /* no script, but the command SET */
};

/*
 * What stands behind the name of a key in that of its counter, if it is fenced; of the list of its
 * readers, and of the note of a writer that waits, if it is shared.
 */
#define COUNTER_SUFFIX "::fence"
#define READERS_SUFFIX "::readers"
#define WRITER_SUFFIX "::writer"

/* The hexadecimal digits of a script's SHA-1, without a NUL. */
#define SCRIPT_SHA_LENGTH 40

/* Scripts from this one on are not loaded ahead: the first call on a connection has the text. */
#define SCRIPT_FIRST_LAZY SCRIPT_BEAT

/*
 * A call that has a server look at so many keys takes no further lock: this bounds for how long it
 * keeps the server from others. (Its last lock may have REDLOCK_MAX_KEYS more, or be a permit of
 * REDLOCK_MAX_PERMITS.)
 */
#define SCRIPT_MAX_KEYS 64

/*
 * Whether it may make a key: what is released in the same turn is released first, and it is not
 * sent again for a lock that has moved on meanwhile.
 */
static inline bool script_takes(enum script script) {
    return script == SCRIPT_TAKE || script == SCRIPT_PERMIT || script == SCRIPT_SHARE ||
           script == SCRIPT_WRITE || script == SCRIPT_WRITE_FENCED;
}

/* Whether it tells the counter of what it has done, where there is one. */
static inline bool script_counts(enum script script) {
    return script == SCRIPT_TAKE || script == SCRIPT_PERMIT || script == SCRIPT_KEEP ||
           script == SCRIPT_WRITE_FENCED;
}

const char *script_text(enum script script);
const char *script_sha(enum script script);

#endif
