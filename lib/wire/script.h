/*
 * The Lua scripts that run on the servers. Each is a file, scripts/<name>.lua, that begins with its
 * contract: what it does, its keys, arguments and answer. The build embeds the files with their
 * SHA-1 (scripts/embed.sh). Each has a row in script.c, with everything else that C needs to know.
 *
 * All but INSPECT, BEAT and PROBE serve many locks in one call: locks that renew or release in the
 * same turn of the loop share a call. KEYS and ARGV then hold the keys and arguments key by key
 * (lock by lock for TAKE and QUEUE_SET), and the answer is one string with an item for each:
 *     y        done: the key had our value, or has it now
 *     y<n>     done, for a fenced lock: its counter is now n
 *     m        missing
 *     h<ms>    held by another client, with this TTL in ms
 *     p        not a lock: the key never expires
 *     t        not a lock: the key is not a string
 *     c        counter out of range: not a whole number, below 0, or not below 2^53 after this step
 *     h<ms>f<map>, pf<map>, tf<map>, cf<map>
 *              permit refused, and a map of the semaphore's permits that are free at the node:
 *              hexadecimal digits for four permits each, permit 0 in the lowest bit of the first
 *     h<ms>q<n>, h<ms>f<map>q<n>
 *              held; the caller has an entry in the key's queue, after n others
 *     h<ms>q0w held by a foreign client, which notifies nobody of its release: the caller, first in
 *              the queue, should watch the key
 *     h<ms>x, h<ms>f<map>x
 *              held; the caller has no right to the queue
 * A '+' after an item says that the call stopped at its bound of ENTRIES_MAX queue entries, with
 * this key's queue not finished: call PASS at once to go on.
 *
 * A value is a token, or a token, '/' and the owner's label.
 *
 * Called without keys, any script but PROBE does nothing, and answers with an empty string.
 */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum script {
    SCRIPT_RELEASE,       /* deletes keys, or passes them to the next waiter */
    SCRIPT_RENEW,         /* raises the expiry of keys without a counter */
    SCRIPT_BEAT,          /* reads the server's clock and maintains the marker */
    SCRIPT_PROBE,         /* publishes a message on a channel */
    SCRIPT_TAKE,          /* takes all keys of a lock or none, and advances their counters */
    SCRIPT_RENEW_FENCED,  /* raises the expiry of a key, and its counter */
    SCRIPT_STAY,          /* releases keys, but leaves them in place for a while */
    SCRIPT_INSPECT,       /* reports the holder of a key and its waiters */
    SCRIPT_PERMIT,        /* takes a permit, or reports which are free */
    SCRIPT_SHARE,         /* takes the share of a reader */
    SCRIPT_SHARE_RENEW,   /* raises the expiry of a share */
    SCRIPT_SHARE_RELEASE, /* ends a share */
    SCRIPT_WRITE, /* takes a key for a writer, or leaves an intent where readers hold the key */
    SCRIPT_WRITE_FENCED,   /* as WRITE, and advances the key's counter */
    SCRIPT_QUEUE,          /* takes a key, or queues for it */
    SCRIPT_QUEUE_SET,      /* takes all keys of a lock, or queues for one of them */
    SCRIPT_LEAVE,          /* gives up a key and the entry in its queue */
    SCRIPT_SHARE_QUEUE,    /* takes the share of a reader, or queues for the key */
    SCRIPT_SHARE_LEAVE,    /* gives up a share and the entry in the key's queue */
    SCRIPT_QUEUE_PERMIT,   /* takes a permit, or queues at its semaphore */
    SCRIPT_PERMIT_RELEASE, /* gives up a permit, or the entry in its semaphore's queue */
    SCRIPT_PASS,           /* continues to pass keys to waiters */
    SCRIPT_COUNT,
    SCRIPT_NONE = SCRIPT_COUNT /* no script, but the command SET */
};

/*
 * Suffixes of the keys beside a lock's key: its fence counter; for shared locks, the list of
 * readers and the intent of a waiting writer; its queue; and, after the name of a semaphore, the
 * queue for its permits. Scripts use these macros too.
 */
#define COUNTER_SUFFIX "::fence"
#define READERS_SUFFIX "::readers"
#define WRITER_SUFFIX "::writer"
#define QUEUE_SUFFIX "::queue"
#define PERMITS_SUFFIX "::permits"

/* The reason shown for a node whose vote does not count because its counter is out of range. */
#define COUNTER_RUINED                                                                             \
    "its counter is used up, or is none: delete the key of the counter (" COUNTER_SUFFIX ") there"

/*
 * The key that is set at a server while any key may have a queue, the sorted set of the keys that
 * may have one, and the TTL of both and of queues in ms.
 */
#define WAITING_KEY "redlock:waiting"
#define QUEUES_KEY "redlock:queues"
#define QUEUE_LIFE "60000"

/* Maximum lead of a counter's starting value over a server's clock, in us: 1 day (wire/fence.h). */
#define FENCE_AHEAD "86400000000"

/* Number of fences that an acquisition takes: FENCES_IN_RANGE (wire/fence.h). */
#define FENCE_RANGE "64"

/*
 * Maximum number of queue entries that one call handles, over all its keys; and the number of
 * reservations after which a waiter that was asked to retry, and has not, loses its entry.
 */
#define ENTRIES_MAX "64"
#define SILENT_RESERVATIONS "4"

/*
 * Maximum time in ms for which a queue may leave a key open to all clients, or reserve it for a
 * waiter: a reservation (OPTIONS_RESERVATION_MS). A time further ahead of the server's clock was
 * written before the clock was set back, or is a lie, and counts as over.
 */
#define OPEN_MAX "1000"

/* Length of a script's SHA-1 in hexadecimal digits. */
#define SCRIPT_SHA_LENGTH 40

/*
 * Bounds the time for which one call blocks the server: a call that makes the server look at this
 * many keys takes no further lock. Its last lock may exceed the bound by up to REDLOCK_MAX_KEYS
 * keys, or by the REDLOCK_MAX_PERMITS of a semaphore.
 */
#define SCRIPT_MAX_KEYS 64

/* How a server gets a script that it may lack. */
enum script_delivery {
    SCRIPT_TEXTED, /* the first call on a connection carries the text */
    SCRIPT_ASKED,  /* the handshake finds the script there, or loads it */
    SCRIPT_TRIED   /* calls go by SHA-1, and again with the text: no other command waits for them */
};

/* The form of a script's calls and answers, and how its calls are handled. */
struct script_info {
    /* keys beside a lock's key: c: counter, r: readers, w: intent of a waiting writer */
    const char *keys;
    enum script_delivery delivery; /* until this client has called the script */
    bool by_lock;                  /* whether arguments and items are per lock, not per key */
    bool takes;                    /* whether the script may create a key */
    bool counts;                   /* whether the script answers y<n> for a fenced lock */
    bool reports_free; /* whether the script looks at all permits of a semaphore and reports the
                          free ones */
    bool stays;        /* whether the TTL is the time for which a released key stays */
};

/* One row for each script but SCRIPT_NONE. */
extern const struct script_info script_infos[SCRIPT_COUNT];

/*
 * Returns whether the script may create a key. Such a call is sent after the releases of its turn,
 * and is not repeated for a lock that has given up the try in the meantime.
 */
static inline bool script_takes(enum script script) {
    return script_infos[script].takes;
}

/* Returns whether the script answers y<n> for a fenced lock. */
static inline bool script_counts(enum script script) {
    return script_infos[script].counts;
}

/* Returns the number of items in the answer for `locks` locks with `names` keys in total. */
static inline unsigned script_items(enum script script, unsigned locks, unsigned names) {
    return script_infos[script].by_lock ? locks : names;
}

/* Returns the number of KEYS for each key of a lock: the key itself and those beside it. */
static inline unsigned script_names(enum script script) {
    return 1 + (unsigned)strlen(script_infos[script].keys);
}

/* The most arguments of a script for one lock. */
#define SCRIPT_ARGUMENTS_MAX 8

struct script_source {
    const char *text;
    const char *sha;  /* of the text: SCRIPT_SHA_LENGTH digits and a NUL */
    bool has_channel; /* whether the client's channel precedes the arguments of all locks */
    /* the arguments for each lock: offsets in struct lock_arguments (wire/command.h), then 0 */
    uint8_t arguments[SCRIPT_ARGUMENTS_MAX + 1];
};

/* Generated by scripts/embed.sh, the arguments from the "-- arguments:" line of each script. */
extern const struct script_source script_sources[SCRIPT_COUNT];

static inline const char *script_text(enum script script) {
    return script_sources[script].text;
}

static inline const char *script_sha(enum script script) {
    return script_sources[script].sha;
}

#endif
