/*
 * Questions to a server about itself, which decide whether its node's votes are trusted
 * (core/trust.h): INFO on each new connection, and beats, calls of a script that reads the server's
 * clock and marker. Replies come in the order of the commands, so a grant arrives after the answers
 * that decide whether it counts.
 *
 * A beat goes ahead of a command that takes or renews a key if the last beat is older than a
 * second. While requests begin to wait, pushes may grant keys without a command, so beats go on
 * (MEMBERS_ALERT). Otherwise only a keep-alive is sent, after guard_gap.
 */
#ifndef REDLOCK_NODE_GUARD_H
#define REDLOCK_NODE_GUARD_H

#include "core/trust.h"
#include "io/net.h"
#include "node/eval.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The age of the last beat from which one goes ahead of a command. */
#define GUARD_BEAT_NANOS (1000 * NANOS_PER_MS)

/* The longest time between two beats while pushes are expected: short enough that they count. */
#define GUARD_WAITING_NANOS (1650 * NANOS_PER_MS)

/* The longest time between two beats of any client. */
#define GUARD_GAP_MAX (10000 * NANOS_PER_MS)

/* The most beats that may await their answers: a slow server is asked as often as others. */
#define GUARD_BEATS_MAX 8

struct uplink;

enum guard_question {
    GUARD_SERVER,
    GUARD_REPLICATION,
    GUARD_MEMORY, /* only for a warning */
    GUARD_BEAT,
    GUARD_QUESTION_COUNT
};

/* The most questions under way: one of each kind, and further beats. */
#define GUARD_ASKED_MAX (GUARD_BEAT + GUARD_BEATS_MAX)

struct guard_asked {
    struct conn_request request;
    struct guard *guard;
    enum guard_question question;
    struct eval eval; /* of a beat */
    bool is_pending;
};

struct guard {
    struct uplink *uplink;
    void (*on_identity)(struct guard *guard); /* callback for a change of the run_id */
    void (*on_sound)(struct guard *guard);    /* callback for votes that count again */
    struct trust trust;
    uint64_t sound_until;   /* the instant until which votes count, unless an answer changes that */
    bool has_counted;       /* guard_counts was true after the last answer */
    bool was_reported;      /* the last event reported distrust */
    bool has_warned;        /* the server's eviction policy was logged */
    uint64_t beaten_at;     /* the time at which the last beat was sent */
    uint64_t gap;           /* the longest time until a keep-alive follows it */
    uint32_t unbeaten;      /* number of rounds since then */
    bool has_sent_text;     /* a beat on this connection carried the script's text */
    bool is_beat_due;       /* the first beat found no script at the server (guard_up) */
    uint64_t asked_role_at; /* the time at which the role was last asked for */
    bool is_role_beaten;    /* the last beat on this connection reported the role */
    char why[192];          /* the text of guard_why */
    struct guard_asked asked[GUARD_ASKED_MAX];
};

/*
 * Begins without answers. `uplink` must have been set up. Calls `on_identity` from replies, and
 * `on_sound` from guard_look_again.
 */
void guard_init(struct guard *guard, struct uplink *uplink,
                void (*on_identity)(struct guard *guard), void (*on_sound)(struct guard *guard));

/* Asks all questions on a new connection, and drops the connection if one cannot be sent. */
void guard_connected(struct guard *guard, uint64_t now);

/* Sends the first beat again if the server lacked the script. For when the uplink comes UP. */
void guard_up(struct guard *guard, uint64_t now);

/*
 * Sends a beat, and asks again the questions that were refused, and for the role if beats do not
 * report it. The uplink must be UP.
 */
void guard_beat(struct guard *guard, uint64_t now);

/*
 * Returns the longest time between two beats of a client: the shortest TTL that it has asked for, 1
 * to 10 s. A step of the clock may pass unseen if it is below `drift` times the gap. That much of
 * the TTL the holder of a lock does not use (core/validity.h).
 */
static inline uint64_t guard_gap(uint64_t shortest_ttl) {
    return nanos_max(GUARD_BEAT_NANOS, nanos_min(GUARD_GAP_MAX, shortest_ttl));
}

/* Returns the server's run_id; "" before the first answer. */
static inline const char *guard_identity(const struct guard *guard) {
    return guard->trust.run_id;
}

/*
 * Records that the node `name` is the same server and counts instead of this one; NULL: there is no
 * such node. `name` is not copied.
 */
static inline void guard_set_original(struct guard *guard, const char *name) {
    guard->trust.original = name;
}

/* Returns the name that guard_set_original was given, or NULL. */
static inline const char *guard_original(const struct guard *guard) {
    return guard->trust.original;
}

/*
 * Updates the verdict after a change of the trust, emits an event if it has changed, and calls
 * on_sound if votes count that did not count before. The guard calls this itself after an answer.
 */
void guard_look_again(struct guard *guard);

/* Returns the verdict on the votes for commands that are sent now, after a beat. */
struct trust_view guard_look(const struct guard *guard);

/* Returns whether the answer to a command that is sent now would count as a vote. */
static inline bool guard_counts(const struct guard *guard) {
    return trust_is_heard(&guard->trust) && guard_look(guard).fault == TRUST_NO_FAULT;
}

/* Returns the verdict on the vote being delivered, as of its arrival. */
struct trust_view guard_judge(const struct guard *guard);

/* Returns the verdict on a grant that arrives now, as a message on the channel. */
struct trust_view guard_judge_push(const struct guard *guard);

/*
 * Returns the instant until which a key that the node has just pushed is certain to exist; 0: not
 * known. `expires_ms` is the key's expiry, `time_us` the node's clock when it pushed the key.
 */
static inline uint64_t guard_key_stands_until(const struct guard *guard, uint64_t expires_ms,
                                              uint64_t time_us, uint64_t now) {
    return trust_key_stands_until(&guard->trust, expires_ms, time_us, now);
}

/* Returns the ms until distrust ends, rounded up; 0: it does not end by itself. */
uint64_t guard_distrust_ms(const struct trust_view *view);

/*
 * Returns why votes do not count, by this verdict; "" when they do. Valid until the next call, or
 * the guard's end.
 */
const char *guard_why(struct guard *guard, const struct trust_view *view);

#endif
