/*
 * Whether a node's vote counts: what a node says of itself goes in, a verdict comes out. Pure: the
 * guard (lib/guard.c) asks the node, and reads the clock.
 *
 *  - Restarts ("Distributed Locks with Redis", section "Performance, crash recovery and fsync":
 *    delayed restarts, here enforced by the client). A server that has been up for less than
 *    max_ttl may have forgotten a lock that somebody still relies on.
 *  - Memory. A marker key says since when a node has kept what it was told, by its own clock: an
 *    empty memory shows also where the server was not restarted (FLUSHALL, a promoted replica).
 *  - Roles. A replica is not independent of its master, and once promoted may lack what its master
 *    had granted.
 *  - Clock. Readings of the server's clock, each certain to within its round trip, must fit into
 *    what `drift` allows since the readings before them (Marzullo's intersection of intervals). A
 *    clock is the machine's: what is known of it outlives the runs of the server.
 *  - Age. What a beat has told holds for the time of that beat. Where the last one that was
 * answered was sent too long ago, something may have happened since.
 *
 * Who was restarted, is promoted or has forgotten grants nothing for max_ttl: by then all that it
 * may have forgotten has expired. But it may renew: what it renews it has, and whoever holds a lock
 * until then had it from nodes that have not forgotten. Nor does a node whose answers are too old
 * grant anything, until it answers again. A clock that cannot be trusted cannot keep a renewed key
 * either.
 */
#ifndef REDLOCK_CORE_TRUST_H
#define REDLOCK_CORE_TRUST_H

#include "base/text.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

#define TRUST_RUN_ID_MAX 64
#define TRUST_REFUSAL_MAX 128

/* What a node is asked. */
enum trust_topic {
    TRUST_SERVER, /* which run of which server it is, and for how long it has been up */
    TRUST_ROLE,   /* whether it is a master */
    TRUST_BEAT,   /* its clock, and its marker */
    TRUST_TOPIC_COUNT
};

enum trust_fault {
    TRUST_NO_FAULT,
    TRUST_NOT_ASKED,  /* it has not answered yet on this connection */
    TRUST_REFUSED,    /* it refuses to answer */
    TRUST_TWIN,       /* it is a server that another node is already */
    TRUST_REPLICA,    /* it is no master */
    TRUST_CLOCK,      /* its clock moved against ours */
    TRUST_RESTARTED,  /* it was restarted */
    TRUST_PROMOTED,   /* it was a replica */
    TRUST_FORGETFUL,  /* its marker is young, or was not there */
    TRUST_STALE,      /* it answered no beat for too long */
    TRUST_FAULT_COUNT /* those from TRUST_CLOCK to TRUST_FORGETFUL end by themselves */
};

struct trust_terms {
    redlock_guards guards;
    bool is_durable; /* it keeps what it was told over restarts: its operator says so */
    uint64_t max_ttl;
    uint64_t max_age; /* of the last beat that was answered, since it was sent */
    double drift;
};

struct trust {
    struct trust_terms terms;
    char run_id[TRUST_RUN_ID_MAX + 1]; /* "": never heard */
    uint64_t heard_at;                 /* the last time that this run was heard of */
    bool is_replica;
    const char *twin;                  /* the node that is the same server; or NULL */
    uint32_t answered;                 /* mask of topics, on this connection */
    uint32_t refused;                  /* mask of topics */
    char refusal[TRUST_REFUSAL_MAX];   /* what was said last to a topic refused */
    uint64_t until[TRUST_FAULT_COUNT]; /* when those end that do */
    bool is_beating;                   /* a beat was answered on this connection */
    uint64_t beaten_at;                /* when the last one that was answered had been sent */
    bool has_clock;                    /* whether there was a reading */
    int64_t clock_low, clock_high;     /* its clock less ours is between these ... */
    uint64_t clock_at;                 /* ... as of this instant of ours */
    int64_t clock_moved;               /* by how much more than allowed, last time */
    uint64_t clock_took;               /* within what time */
    uint64_t last_us;                  /* the newest time that its marker had */
};

/* A beat: what the node's clock and marker said to a question asked and answered at these times. */
struct trust_beat {
    uint64_t sent_at, received_at;
    uint64_t time_us; /* its clock */
    uint64_t age_us;  /* since when the marker stands */
    uint64_t last_us; /* when the marker was last confirmed; never goes back in a sound memory */
};

/* What to make of its votes: all count; only renewals do; none does. */
enum trust_verdict { TRUST_FULL, TRUST_YOUNG, TRUST_NONE };

struct trust_view {
    enum trust_verdict verdict;
    enum trust_fault fault;
    uint64_t until; /* when the fault ends; 0: not by itself */
};

void trust_init(struct trust *trust, const struct trust_terms *terms);

/* A new connection: it must say anew who it is. */
void trust_connected(struct trust *trust);

/*
 * Answers, received at `at`. `run_id` is cut when it is too long; `uptime_s` is 0 when it is not
 * known.
 */
void trust_server(struct trust *trust, const char *run_id, uint64_t uptime_s, uint64_t at);
void trust_role(struct trust *trust, bool is_master, uint64_t at);

/* False when the clock moved by more than drift allows: clock_moved and clock_took say how. */
bool trust_beat(struct trust *trust, const struct trust_beat *beat);

/* It refused to answer; `is_forbidden`: its user may not ask. `why` is copied. */
void trust_refused(struct trust *trust, enum trust_topic topic, bool is_forbidden, const char *why);

struct trust_view trust_look(const struct trust *trust, uint64_t now);

/* Returns until when its grants count, if they do; NANOS_NEVER: until something else is heard. */
uint64_t trust_fresh_until(const struct trust *trust);

/* The fault in words: "it was restarted". */
void trust_describe(const struct trust *trust, enum trust_fault fault, struct text *text);

#endif
