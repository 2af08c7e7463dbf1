/*
 * Trust decides whether a node's votes count: the node's answers about itself go in, a verdict
 * comes out. Pure: the guard (lib/node/guard.c) asks the node, and reads the clock. The checks:
 *
 *  - Restarts ("Distributed Locks with Redis", section "Performance, crash recovery and fsync":
 *    delayed restarts, here enforced by the client). A server that has been up for less than
 *    max_ttl may have forgotten a lock that a client still relies on.
 *  - Memory. A marker key records, by the node's clock, since when the node has kept its data. So
 *    an empty memory is noticed even if the server was not restarted (FLUSHALL, a promoted
 *    replica). The heartbeat states which memory the client knows, by the marker's beginning, its
 *    last confirmation and the replication id. The node begins the marker again if its memory is
 *    another one: restored, exchanged (SWAPDB), or back from a replica, which may lack just the
 *    last keys. All clients see the new marker, even those that have never seen the old one. A
 *    replication id that changed while this client sent no heartbeats is suspicious to this client
 *    alone.
 *  - Roles. A replica is not independent of its master, and a promoted one may lack keys that its
 *    master had granted.
 *  - Clock. Readings of the server's clock, each certain to within its round trip, must fit into
 *    the range that `drift` allows since earlier readings (Marzullo's intersection of intervals). A
 *    clock belongs to a machine: its readings outlive the runs of the server.
 *  - Age. A heartbeat proves the node's state at its own time only. If the last heartbeat that was
 *    answered is too old when a vote arrives, the state may have changed since.
 *
 * Heartbeats are sent when they matter. Answers come in order, so a heartbeat ahead of a command
 * protects its vote. While a client sends no commands, it needs heartbeats only as readings of the
 * clock: a clock that moves by less than `drift` times the gap between two readings passes unseen.
 * The holder of a lock gives up `drift` times its TTL, so the gap must be no longer than the TTL of
 * the locks (guard.h, guard_gap).
 *
 * If a node was restarted or promoted, has lost its memory, or its clock moved, its votes do not
 * count for max_ttl: by then all keys that it may have lost have expired. That holds for renewals,
 * too. Finding the key there proves nothing: an acquisition under way may still count the grant
 * that the node has lost, and need just one more. (Once the loss is known, such an acquisition does
 * not count the grant either: `lost_at`.) Meanwhile a lock needs a quorum of other nodes. A broken
 * connection voids no grant: if the node has lost its keys, no client counts its votes for longer
 * than that grant is valid.
 *
 * A node whose last heartbeat is too old grants nothing until it answers again, but its renewals
 * count. Commands are carried out in order, so a heartbeat that reports a loss comes between the
 * command that took the key and a renewal more than a second later.
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
    TRUST_BEAT,   /* a heartbeat: its clock and its marker */
    TRUST_TOPIC_COUNT
};

enum trust_fault {
    TRUST_NO_FAULT,
    TRUST_NOT_ASKED,  /* the node has not answered on this connection yet */
    TRUST_REFUSED,    /* the node refuses to answer */
    TRUST_DUPLICATE,  /* another node is the same server */
    TRUST_REPLICA,    /* the node is no master */
    TRUST_CLOCK,      /* the node's clock moved relative to ours */
    TRUST_RESTARTED,  /* the node was restarted */
    TRUST_PROMOTED,   /* the node was a replica */
    TRUST_UNWATCHED,  /* the node may have been a replica, and its marker does not show it */
    TRUST_FORGETFUL,  /* the node's marker is young, or was missing */
    TRUST_STALE,      /* the node answers heartbeats too late */
    TRUST_FAULT_COUNT /* faults from TRUST_CLOCK to TRUST_FORGETFUL end by themselves */
};

struct trust_terms {
    redlock_guards guards;
    bool is_durable; /* the node keeps its data over restarts, according to its operator */
    uint64_t max_ttl;
    uint64_t max_age; /* the largest age of the last answered heartbeat, since it ran; also the
                         longest time that an answer may take */
    double drift;
};

struct trust {
    struct trust_terms terms;
    char run_id[TRUST_RUN_ID_MAX + 1];  /* "": not known yet */
    char lineage[TRUST_RUN_ID_MAX + 1]; /* the replication id of the node's memory; "": not known */
    uint64_t heard_at;                  /* time of the last answer of this run */
    bool is_replica;
    const char *original;              /* another node that is the same server; NULL: none */
    uint32_t answered;                 /* mask of topics answered on this connection */
    uint32_t refused;                  /* mask of topics refused */
    char refusal[TRUST_REFUSAL_MAX];   /* the text of the last refusal */
    bool is_forbidden;                 /* the user lacks a right, by the last refusal */
    uint64_t until[TRUST_FAULT_COUNT]; /* the ends of the faults that end by themselves */
    uint64_t lost_at;   /* the time of the last report that the node may have lost keys that it had
                           granted; 0: never */
    bool is_beating;    /* a heartbeat was answered on this connection */
    uint64_t beaten_at; /* the earliest time at which the last answered heartbeat can have run */
    bool has_clock;     /* the clock was read at least once */
    int64_t clock_low, clock_high; /* bounds of the node's clock less ours ... */
    uint64_t clock_at;             /* ... as of this instant of ours */
    int64_t clock_moved;           /* the last movement beyond drift, in nanoseconds */
    uint64_t clock_took;           /* the time within which it happened */
    bool has_time;                 /* the server has reported the time without a heartbeat ... */
    int64_t time_ahead;            /* ... and this lead over our clock, in nanoseconds */
    uint64_t first_us;             /* the beginning of the marker, by the node's clock */
    uint64_t last_us;              /* the newest time of the node's marker */
};

/* The answer to a heartbeat that was sent and received at these times. */
struct trust_beat {
    uint64_t sent_at, received_at;
    uint64_t time_us; /* the node's clock */
    uint64_t age_us;  /* the age of the marker */
    uint64_t last_us; /* the last confirmation of the marker; never goes back in a sound memory */
    const char *lineage; /* the replication id of the memory; NULL: not reported */
};

/* The verdict on a node: its votes count unless it has a fault. */
struct trust_view {
    enum trust_fault fault;
    uint64_t until; /* the end of the fault; 0: it does not end by itself */
};

void trust_init(struct trust *trust, const struct trust_terms *terms);

/* Begins a new connection, on which the node has to answer all questions again. */
void trust_connected(struct trust *trust);

/*
 * Handles the answer to TRUST_SERVER, received at `at`. `run_id` is copied, and cut if too long;
 * `uptime_s` is 0 if not known.
 */
void trust_server(struct trust *trust, const char *run_id, uint64_t uptime_s, uint64_t at);

/* Handles the answer to TRUST_ROLE, received at `at`. */
void trust_role(struct trust *trust, bool is_master, uint64_t at);

/*
 * Handles the answer to a heartbeat. Returns false if the clock moved by more than drift allows;
 * clock_moved and clock_took then describe the movement.
 */
bool trust_beat(struct trust *trust, const struct trust_beat *beat);

/* Handles a refusal to answer. `is_forbidden`: our user lacks the right to ask. `why` is copied. */
void trust_refused(struct trust *trust, enum trust_topic topic, bool is_forbidden, const char *why);

/*
 * Returns whether the node has answered, or refused to answer, TRUST_SERVER and TRUST_ROLE on this
 * connection: a replica or a duplicate is known by then, whatever the guards.
 */
bool trust_is_heard(const struct trust *trust);

/* Returns the node's fault, or TRUST_NO_FAULT, for a vote that arrives at `at`. */
struct trust_view trust_judge(const struct trust *trust, uint64_t at);

/*
 * Returns the node's fault, or TRUST_NO_FAULT, for a command that is sent now, after a heartbeat.
 * `asked_at` is the time at which the oldest heartbeat without an answer was sent; NANOS_NEVER:
 * there is none. Without one the node is not stale, however old the last answer is.
 */
struct trust_view trust_look(const struct trust *trust, uint64_t asked_at, uint64_t now);

/*
 * Returns the instant until which the node's grants count, if they count now. NANOS_NEVER: until
 * another answer changes that.
 */
uint64_t trust_fresh_until(const struct trust *trust);

/*
 * Reads the server's clock from its answer to TRUST_SERVER, sent and received at these times. No
 * trust depends on it: it serves trust_clock where there are no heartbeats. `wall_ahead` is the
 * lead of this machine's wall clock over our clock, in nanoseconds. It is used as the server's lead
 * unless it is wrong by more than a second: one answer of a busy server is less exact than
 * synchronized wall clocks, and clients should agree.
 */
void trust_time(struct trust *trust, uint64_t time_us, uint64_t sent_at, uint64_t received_at,
                int64_t wall_ahead);

/*
 * Stores in `ahead` the best estimate of the node's lead over our clock, in nanoseconds. Returns
 * false if there is none yet: before the first heartbeat or, without guards, before trust_time.
 */
bool trust_clock(const struct trust *trust, int64_t *ahead);

/*
 * Returns the instant, on our clock, until which a key that expires at the node at `expires_ms` is
 * certain to exist there, as reported at `now`; 0 if that cannot be known. `time_us` is the node's
 * clock when it set the expiry: if that is further ahead than heartbeats and drift allow, the clock
 * has jumped since the last heartbeat.
 */
uint64_t trust_key_stands_until(const struct trust *trust, uint64_t expires_ms, uint64_t time_us,
                                uint64_t now);

/* Appends the fault in words: "it was restarted". */
void trust_describe(const struct trust *trust, enum trust_fault fault, struct text *text);

#endif
