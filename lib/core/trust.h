/*
 * Trust decides whether a node's votes count: a node's answers about itself go in, a verdict comes
 * out. Pure: the guard (lib/node/guard.c) asks the node, and reads the clock. The checks:
 *
 *  - Restarts ("Distributed Locks with Redis", section "Performance, crash recovery and fsync":
 *    delayed restarts, here enforced by the client). A server that has been up for less than
 *    max_ttl may have forgotten a lock that a client still relies on.
 *  - Memory. A marker key tells since when a node has kept its data, by its own clock. So an empty
 *    memory shows even if the server was not restarted (FLUSHALL, a promoted replica). The beat
 *    says which memory the client knows, by the marker's beginning, its last confirmation and the
 *    replication id. The node begins the marker anew if its memory is another one: restored,
 *    exchanged (SWAPDB), or come back from a replica, which may lack just the last keys. All
 *    clients see the new marker, also those that have never seen the old one. A replication id that
 *    changed while this client did not look is suspicious to this client alone.
 *  - Roles. A replica is not independent of its master, and a promoted one may lack keys that its
 *    master had granted.
 *  - Clock. Readings of the server's clock, each certain to within its round trip, must fit into
 *    the range that `drift` allows since earlier readings (Marzullo's intersection of intervals).
 *    A clock belongs to a machine: its readings outlive the runs of the server.
 *  - Age. A beat proves the node's state at the time of that beat only. If the last beat that was
 *    answered was sent too long ago, the state may have changed since.
 *
 * The votes of a node that was restarted, was promoted, has forgotten, or whose clock moved do not
 * count for max_ttl: by then all keys that it may have lost have expired. That holds for renewals
 * too. A key that was left there since is no proof: an acquisition under way may still count the
 * grant that the node has lost, and need just one more. (Nor does such an acquisition count it,
 * once the loss is known: `lost_at`.) So a lock needs a quorum of other nodes meanwhile. A
 * connection that breaks voids no grant: if the node has lost its keys, no client counts its votes
 * for longer than that grant is valid.
 *
 * A node whose last beat is too old grants nothing until it answers again, but its renewals count:
 * commands are carried out in order, so a beat that tells of a loss stands between the command that
 * put the key there and a renewal more than a second later.
 */
#ifndef REDLOCK_CORE_TRUST_H
#define REDLOCK_CORE_TRUST_H

#include "base/text.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

#define TRUST_RUN_ID_MAX 64
#define TRUST_REFUSAL_MAX 128

/* The questions to a node. */
enum trust_topic {
    TRUST_SERVER, /* the run of its server, and its uptime */
    TRUST_ROLE,   /* master or replica */
    TRUST_BEAT,   /* its clock and its marker */
    TRUST_TOPIC_COUNT
};

enum trust_fault {
    TRUST_NO_FAULT,
    TRUST_NOT_ASKED,  /* the node has not answered yet on this connection */
    TRUST_REFUSED,    /* the node refuses to answer */
    TRUST_DUPLICATE,  /* another node is the same server */
    TRUST_REPLICA,    /* the node is no master */
    TRUST_CLOCK,      /* the node's clock moved against ours */
    TRUST_RESTARTED,  /* the node was restarted */
    TRUST_PROMOTED,   /* the node was a replica */
    TRUST_UNWATCHED,  /* the node may have been a replica while no beat was answered */
    TRUST_FORGETFUL,  /* the node's marker is young, or was missing */
    TRUST_STALE,      /* the node answered no beat for too long */
    TRUST_FAULT_COUNT /* faults from TRUST_CLOCK to TRUST_FORGETFUL end by themselves */
};

struct trust_terms {
    redlock_guards guards;
    bool is_durable; /* the node keeps its data over restarts, as its operator says */
    uint64_t max_ttl;
    uint64_t max_age; /* the oldest that the last answered beat may be, since it was sent */
    double drift;
};

struct trust {
    struct trust_terms terms;
    char run_id[TRUST_RUN_ID_MAX + 1];  /* "": not known yet */
    char lineage[TRUST_RUN_ID_MAX + 1]; /* the replication id of the node's memory; "": not known */
    uint64_t heard_at;                  /* the time of the last answer of this run */
    bool is_replica;
    const char *original;              /* another node that is the same server; NULL: none */
    uint32_t answered;                 /* mask of topics answered on this connection */
    uint32_t refused;                  /* mask of topics refused */
    char refusal[TRUST_REFUSAL_MAX];   /* the text of the last refusal */
    bool is_forbidden;                 /* the user lacks a right, by the last refusal */
    uint64_t until[TRUST_FAULT_COUNT]; /* the ends of the faults that end by themselves */
    uint64_t lost_at;                  /* the time at which it was last learned that the node may
                                          have lost keys that it had granted; 0: never */
    bool is_beating;                   /* a beat was answered on this connection */
    uint64_t beaten_at;                /* the time at which the last answered beat was sent */
    bool has_clock;                    /* the clock was read at least once */
    int64_t clock_low, clock_high;     /* the bounds of the node's clock less ours ... */
    uint64_t clock_at;                 /* ... as of this instant of ours */
    int64_t clock_moved;               /* the last movement beyond drift, in nanoseconds */
    uint64_t clock_took;               /* the time within which that happened */
    bool has_time;                     /* the server has told the time without a beat ... */
    int64_t time_ahead;                /* ... which was so much ahead of ours, in nanoseconds */
    uint64_t first_us;                 /* the beginning of the marker, by the node's clock */
    uint64_t last_us;                  /* the newest time of the node's marker */
};

/* The answer of the node's clock and marker to a beat sent and received at these times. */
struct trust_beat {
    uint64_t sent_at, received_at;
    uint64_t time_us; /* the node's clock */
    uint64_t age_us;  /* the age of the marker */
    uint64_t last_us; /* the last confirmation of the marker; never goes back in a sound memory */
    const char *lineage; /* the replication id of the memory; NULL: not told */
};

/* Whether the node's votes count: unless it has a fault. */
struct trust_view {
    enum trust_fault fault;
    uint64_t until; /* the end of the fault; 0: it does not end by itself */
};

void trust_init(struct trust *trust, const struct trust_terms *terms);

/* Begins a new connection, on which the node has to answer all questions anew. */
void trust_connected(struct trust *trust);

/*
 * Takes the answer to TRUST_SERVER, received at `at`. `run_id` is copied, and cut if too long;
 * `uptime_s` is 0 if not known.
 */
void trust_server(struct trust *trust, const char *run_id, uint64_t uptime_s, uint64_t at);

/* Takes the answer to TRUST_ROLE, received at `at`. */
void trust_role(struct trust *trust, bool is_master, uint64_t at);

/*
 * Takes the answer to a beat. Returns false if the clock moved by more than drift allows: then
 * clock_moved and clock_took tell how.
 */
bool trust_beat(struct trust *trust, const struct trust_beat *beat);

/* Takes a refusal to answer; `is_forbidden`: our user may not ask. `why` is copied. */
void trust_refused(struct trust *trust, enum trust_topic topic, bool is_forbidden, const char *why);

/*
 * Returns whether the node has answered on this connection, or refused to answer, TRUST_SERVER and
 * TRUST_ROLE: a replica or a duplicate is known by then, whatever the guards.
 */
bool trust_is_heard(const struct trust *trust);

/* Returns the node's fault now, or TRUST_NO_FAULT. */
struct trust_view trust_look(const struct trust *trust, uint64_t now);

/*
 * Returns the instant until which the node's grants count, if they count now; NANOS_NEVER: until
 * another answer changes that.
 */
uint64_t trust_fresh_until(const struct trust *trust);

/*
 * Takes the server's clock from its answer to TRUST_SERVER, sent and received at these times. No
 * trust depends on it: it serves trust_clock where there are no beats. `wall_ahead` is the lead of
 * this machine's wall clock over our clock, in nanoseconds. It counts as the server's, unless it is
 * wrong by more than a second: one answer of a busy server is less exact than wall clocks that are
 * kept in step, and clients are to agree.
 */
void trust_time(struct trust *trust, uint64_t time_us, uint64_t sent_at, uint64_t received_at,
                int64_t wall_ahead);

/*
 * Returns by how much the node's clock is ahead of ours, in nanoseconds, as well as it is known; or
 * false before the first beat, if trust_time has not been called without guards either.
 */
bool trust_clock(const struct trust *trust, int64_t *ahead);

/*
 * Returns the instant, on our clock, until which a key is certain to stand at the node that expires
 * there at `expires_ms`, told at `now`; 0 if that cannot be told. `time_us` is the node's clock
 * when it set the expiry: if that is further ahead than beats and drift allow, the clock has jumped
 * since the last beat.
 */
uint64_t trust_key_stands_until(const struct trust *trust, uint64_t expires_ms, uint64_t time_us,
                                uint64_t now);

/* Appends the fault in words: "it was restarted". */
void trust_describe(const struct trust *trust, enum trust_fault fault, struct text *text);

#endif
