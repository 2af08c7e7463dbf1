/*
 * The Lua scripts that servers run for us. Each is a file, scripts/<name>.lua, whose first comment
 * is its contract: what it does, its keys, arguments and answer. The build embeds the files, with
 * their SHA-1 (scripts/embed.sh). All else that C knows of a script is its row in script.c.
 *
 * All but INSPECT, BEAT and PROBE serve many locks in one call: locks that renew or release in one
 * turn of the loop travel together. KEYS and ARGV then hold the keys and arguments of each key in
 * order (of each lock, for TAKE and QUEUE_SET), and the answer is one string with an item for each:
 *     y        done: the key had our value, or has it now
 *     y<n>     done, of a fenced lock: its counter is n now
 *     m        missing
 *     h<ms>    held by another, for so many milliseconds more
 *     p        there, but no lock: the key never expires
 *     t        there, but no lock: the key is not a string
 *     c        its counter is out of range: not a whole number, below 0, or not below 2^53 after
 *              this step
 *     h<ms>f<map>, pf<map>, tf<map>, cf<map>
 *              a permit refused, and the permits of its semaphore that are free at the node:
 *              hexadecimal digits, four permits each, the first digit and its lowest bit for the
 *              first permit
 *     h<ms>q<n>, h<ms>f<map>q<n>
 *              held, and the caller has an entry in the key's queue behind n others
 *     h<ms>q0w held by a foreign client, which tells nobody of its release: the caller, the
 *              first in the queue, is to watch the key
 * A '+' behind an item says that the call has stopped at ENTRIES_MAX entries of queues, with more
 * to come in the queue of this key: PASS is to go on, at once.
 *
 * A value is a token, or a token, '/' and the owner's label.
 */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum script {
    SCRIPT_RELEASE,       /* deletes keys */
    SCRIPT_RENEW,         /* raises the expiry of keys without a counter */
    SCRIPT_BEAT,          /* reads the server's clock, and keeps the marker */
    SCRIPT_PROBE,         /* publishes a message on a channel */
    SCRIPT_TAKE,          /* takes all keys of a lock or none, and raises their counters */
    SCRIPT_RENEW_FENCED,  /* raises the expiry of a key, and its counter */
    SCRIPT_STAY,          /* releases keys, but leaves them there for a while */
    SCRIPT_INSPECT,       /* tells who holds a key, and who waits for it */
    SCRIPT_PERMIT,        /* takes a permit, or tells which are free */
    SCRIPT_SHARE,         /* takes the share of a reader */
    SCRIPT_SHARE_RENEW,   /* raises the expiry of a share */
    SCRIPT_SHARE_RELEASE, /* ends a share */
    SCRIPT_WRITE, /* takes a key for a writer, or leaves its intent where readers hold the key */
    SCRIPT_WRITE_FENCED,   /* as WRITE, and raises the key's counter */
    SCRIPT_QUEUE,          /* takes a key, or an entry in its queue */
    SCRIPT_QUEUE_SET,      /* takes all keys of a lock, or an entry in the queue of one */
    SCRIPT_LEAVE,          /* gives up a key, or an entry in its queue */
    SCRIPT_SHARE_QUEUE,    /* takes the share of a reader, or an entry in the key's queue */
    SCRIPT_SHARE_LEAVE,    /* gives up a share, or an entry in the key's queue */
    SCRIPT_QUEUE_PERMIT,   /* takes a permit, or an entry in the line of its semaphore */
    SCRIPT_PERMIT_RELEASE, /* gives up a permit, or an entry in the line of its semaphore */
    SCRIPT_PASS,           /* goes on with the passing on of keys */
    SCRIPT_COUNT,
    SCRIPT_NONE = SCRIPT_COUNT /* no script, but the command SET */
};

/*
 * Suffixes of a key's name: the key of its counter, if fenced; of the list of its readers and of
 * the intent of a writer that waits, if shared; of the queue of those who wait in the queue; and,
 * of a semaphore's name, of the line for its permits. (Scripts name them by these macros.)
 */
#define COUNTER_SUFFIX "::fence"
#define READERS_SUFFIX "::readers"
#define WRITER_SUFFIX "::writer"
#define QUEUE_SUFFIX "::queue"
#define PERMITS_SUFFIX "::permits"

/* Why a node whose counter is out of range has no vote, and no answer. */
#define COUNTER_RUINED                                                                             \
    "its counter is used up, or is none: delete the key of the counter (" COUNTER_SUFFIX ") there"

/* The flag that stands at a server while a key may have a queue, and the life of both in ms. */
#define WAITING_KEY "redlock:waiting"
#define QUEUE_LIFE "60000"

/* The most by which a hint may be ahead of a server's clock, in us: a day (wire/fence.h). */
#define FENCE_AHEAD "86400000000"

/*
 * The number of entries of queues that a call handles, for all its keys; and the number of
 * reservations after which a waiter loses its entry that was told to ask again, and has not.
 */
#define ENTRIES_MAX "64"
#define SILENT_RESERVATIONS "4"

/*
 * The longest time in ms for which a queue may leave a key to anybody, or keep it for a waiter: a
 * reservation (OPTIONS_RESERVATION_MS). What is further ahead of the server's clock was written
 * before the clock was set back, or is a lie, and counts as over.
 */
#define OPEN_MAX "1000"

/* The hexadecimal digits of a script's SHA-1, without a NUL. */
#define SCRIPT_SHA_LENGTH 40

/*
 * Bounds for how long a call keeps the server from others: a call that has the server look at so
 * many keys takes no further lock. (Its last lock may have REDLOCK_MAX_KEYS more, or be a permit of
 * REDLOCK_MAX_PERMITS.)
 */
#define SCRIPT_MAX_KEYS 64

/* The form of a script's calls and answers, and the handling of its calls. */
struct script_info {
    /* names beside a lock's key: c: counter, r: readers, w: the intent of a waiting writer */
    const char *keys;
    /*
     * arguments: v: value, t: TTL, k: number of keys, x: whether fenced, s: step, n: intent,
     * f: fence, i: TTL of the counter, p: permits, c: reservation, e: form of the entry, q: ticket,
     * l: number of waiters to name
     */
    const char *arguments;
    bool has_channel; /* whether the node's channel goes before the arguments of all locks */
    bool by_lock;     /* whether arguments and items are for each lock, not for each key */
    bool is_loaded;   /* whether the handshake loads the script; else its first call has the text */
    bool takes;       /* whether the script may make a key */
    bool counts;      /* whether the script answers y<n> for a fenced lock */
    bool reports_free; /* whether the script looks at all permits of a semaphore, and tells which
                          are free */
    bool stays;        /* whether the TTL is the time for which a key that is given back stays */
};

/* One row for each script but SCRIPT_NONE. */
extern const struct script_info script_infos[SCRIPT_COUNT];

/*
 * Tells whether the script may make a key. Such a call goes behind the releases of its turn, and is
 * not sent again for a lock that has moved on meanwhile.
 */
static inline bool script_takes(enum script script) {
    return script_infos[script].takes;
}

/* Tells whether the script answers y<n> for a fenced lock. */
static inline bool script_counts(enum script script) {
    return script_infos[script].counts;
}

/* Returns the number of items in the answer for `locks` locks with `names` keys together. */
static inline unsigned script_items(enum script script, unsigned locks, unsigned names) {
    return script_infos[script].by_lock ? locks : names;
}

/* Returns how many names a call has for each key of a lock: the key, and those beside it. */
static inline unsigned script_names(enum script script) {
    return 1 + (unsigned)strlen(script_infos[script].keys);
}

struct script_source {
    const char *text;
    const char *sha; /* of the text: SCRIPT_SHA_LENGTH digits and a NUL */
};

/* Made by scripts/embed.sh. */
extern const struct script_source script_sources[SCRIPT_COUNT];

static inline const char *script_text(enum script script) {
    return script_sources[script].text;
}

static inline const char *script_sha(enum script script) {
    return script_sources[script].sha;
}

#endif
