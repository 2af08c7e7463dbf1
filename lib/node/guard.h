/*
 * Questions to a server about itself, so that its node's votes can be trusted or not
 * (core/trust.h): INFO on each new connection, and a beat, which reads the server's clock and
 * marker, once a second. Replies come in the order of the commands: a grant arrives behind the
 * answers that say whether it counts.
 */
#ifndef REDLOCK_NODE_GUARD_H
#define REDLOCK_NODE_GUARD_H

#include "core/trust.h"
#include "io/net.h"
#include "node/call.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The time between two beats. */
#define GUARD_BEAT_NANOS (1000 * NANOS_PER_MS)

/* The most beats that may wait for their answers, so that a slow server is asked as often. */
#define GUARD_BEATS_MAX 8

struct uplink;

enum guard_question {
    GUARD_SERVER,
    GUARD_REPLICATION,
    GUARD_MEMORY, /* for a warning only */
    GUARD_BEAT,
    GUARD_QUESTION_COUNT
};

/* The most questions under way: one of each kind, and further beats. */
#define GUARD_ASKED_MAX (GUARD_BEAT + GUARD_BEATS_MAX)

struct guard_asked {
    struct conn_request request;
    struct guard *guard;
    enum guard_question question;
    struct call call; /* of a beat */
    bool is_pending;
};

struct guard {
    struct uplink *uplink;
    void (*on_identity)(struct guard *guard); /* callback for a change of the run_id */
    void (*on_sound)(struct guard *guard);    /* callback for votes that count again */
    struct trust trust;
    uint64_t sound_until;   /* instant up to which, or up to the next answer, nothing is wrong */
    bool has_counted;       /* by the last answer the votes counted: guard_counts */
    bool was_reported;      /* the last event said that the node is distrusted */
    bool has_warned;        /* the server's eviction policy was logged */
    uint64_t beaten_at;     /* the time at which the last beat was sent */
    uint64_t asked_role_at; /* the time of the last question for the role */
    bool is_role_beaten;    /* the last beat on this connection told the role */
    char why[192];
    struct guard_asked asked[GUARD_ASKED_MAX];
};

/*
 * Begins with no answers. `uplink` has been set up; `on_identity` is called from replies, and
 * `on_sound` from guard_look_again.
 */
void guard_init(struct guard *guard, struct uplink *uplink,
                void (*on_identity)(struct guard *guard), void (*on_sound)(struct guard *guard));

/* Asks all questions on a new connection, and drops the connection if one cannot be sent. */
void guard_connected(struct guard *guard, uint64_t now);

/*
 * Sends a beat, and asks the questions again that were refused; the role also where beats do not
 * tell it. The uplink is UP.
 */
void guard_beat(struct guard *guard, uint64_t now);

/* Returns the server's run_id; "" before the first answer. */
static inline const char *guard_identity(const struct guard *guard) {
    return guard->trust.run_id;
}

/*
 * Records that the node `name` is the same server and counts instead of this one; NULL: no node is.
 * `name` is not copied.
 */
static inline void guard_set_original(struct guard *guard, const char *name) {
    guard->trust.original = name;
}

/* Returns the name that guard_set_original has noted, or NULL. */
static inline const char *guard_original(const struct guard *guard) {
    return guard->trust.original;
}

/*
 * Works out the verdict after a change of the trust, emits an event when it has changed, and calls
 * on_sound when votes count that did not. After an answer the guard calls this function itself.
 */
void guard_look_again(struct guard *guard);

/* Returns the verdict on the server's votes now. */
struct trust_view guard_look(const struct guard *guard);

/* Returns whether a vote that is asked for now would count, if the server answers. */
static inline bool guard_counts(const struct guard *guard) {
    return trust_is_heard(&guard->trust) && guard_look(guard).fault == TRUST_NO_FAULT;
}

/* Returns the verdict on the vote under delivery, as of the instant of its arrival. */
struct trust_view guard_judge(const struct guard *guard);

/*
 * Returns the instant until which a key is certain to stand that the node has just pushed, with the
 * key's expiry and its clock then; 0 if that cannot be told.
 */
static inline uint64_t guard_key_stands_until(const struct guard *guard, uint64_t expires_ms,
                                              uint64_t time_us, uint64_t now) {
    return trust_key_stands_until(&guard->trust, expires_ms, time_us, now);
}

/* Returns the milliseconds until distrust ends, rounded up; 0: it does not end by itself. */
uint64_t guard_distrust_ms(const struct trust_view *view);

/*
 * Returns why votes do not count; "" when they do. Valid until the next call, or the guard's end.
 */
const char *guard_why(struct guard *guard);

#endif
