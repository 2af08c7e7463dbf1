/*
 * A lock's life, as decisions alone: events and the time go in, what is to be done comes out.
 *
 *   ACQUIRING -> HELD <-> RENEWING            HELD, RENEWING -> LOST
 *     |   \-> RAISING -> HELD                 HELD, RENEWING, LOST -> RELEASING -> OVER
 *     |   \-> BACKOFF -> ACQUIRING            any -> OVER when canceled or closed
 *     \-> SETTLING -> OVER                    RAISING fails as ACQUIRING does
 *
 * With permits, a try that failed is followed at once by one for another permit, if that is free.
 *
 * A lease waits for one thing at a time: the verdict of a round, or the instant `wake_at`, which
 * is also the round's deadline. It never reads a clock, sends nothing and allocates nothing; the
 * lock (lib/lock.c) carries out the update that each event returns.
 */
#ifndef REDLOCK_CORE_LEASE_H
#define REDLOCK_CORE_LEASE_H

#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

enum lease_state {
    LEASE_ACQUIRING, /* a round asks for the key */
    LEASE_RAISING,   /* a quorum granted it; a round has its counters agree on the fence */
    LEASE_BACKOFF,   /* a try failed, the next is to come */
    LEASE_SETTLING,  /* the last try failed; the nodes that denied are asked what they hold */
    LEASE_HELD,
    LEASE_RENEWING, /* held, and a round renews or extends it */
    LEASE_LOST,
    LEASE_RELEASING,
    LEASE_OVER
};

/* What the application asked for; constant but for `ttl`, which an extension changes. */
struct lease_terms {
    double drift;
    uint64_t ttl;
    uint64_t node_timeout;
    uint64_t retry_delay;
    uint64_t retry_delay_max;
    uint64_t give_up_at; /* no try begins after this; NANOS_NEVER: no bound */
    uint32_t retries;    /* tries after the first; UINT32_MAX: no bound */
    uint64_t min_validity;
    bool watchdog;
    uint64_t max_hold; /* NANOS_NEVER: no bound */
    bool fenced;
    uint64_t min_hold;   /* since the start of the round that acquired it */
    uint64_t lock_delay; /* for how much longer than the TTL the nodes keep the key */
    uint32_t permits;    /* it is any of so many; 0: it is a lock of its own */
};

struct lease {
    struct lease_terms terms;
    enum lease_state state;
    uint32_t members;       /* mask: the nodes that are asked; changes with the client's list */
    redlock_status failure; /* why the last try failed */
    bool extending;         /* the round of RENEWING is the application's ... */
    uint64_t extension_ttl; /* ... for so long: the terms' from when it has succeeded */
    bool is_unrenewed;      /* the last renewal failed, or has waited for long */
    uint32_t hurried;       /* renewals since one succeeded that did not await their time */
    redlock_status loss;    /* why it is LOST */
    uint32_t tries;
    uint32_t permit;    /* that is tried, or held; in BACKOFF, that is tried next */
    uint32_t hops;      /* tries that came at once, for another permit */
    uint32_t hops_left; /* how many may still come before the next pause */
    uint32_t may_hold;  /* mask: nodes that may hold the key under the current token */
    uint64_t fence;     /* what the counters of a quorum agree on; 0: it is not fenced */
    uint32_t topped_up; /* mask: nodes topped up since the last round that was sent */
    uint64_t begun_at;
    uint64_t told_at; /* when the acquisition ended, either way; 0: it has not */
    uint64_t acquired_at;
    uint64_t validity_end; /* 0 unless held */
    uint64_t lost_at;      /* when the loss is told: shortly before validity_end */
    uint64_t renew_at;     /* NANOS_NEVER when nothing is to be renewed */
    uint64_t phase;        /* an instant of those, a third of the TTL apart, at which it renews */
    uint64_t longest_ttl;  /* the longest a node was asked to keep the key */
    uint64_t stay_until;   /* before this a release leaves the key there; 0: never */
    uint64_t wake_at;      /* NANOS_NEVER when there is nothing to wake for */
    uint64_t patience;     /* how long the round that is waited for has, or the last one had */
    uint64_t useless_at;   /* when the round that is waited for is of no use any more */
    uint64_t seed;         /* for jitter */
};

/* What an application is told: which of its callbacks are due. A mask, and a status for each. */
enum lease_news { LEASE_ACQUIRED = 1, LEASE_EXTENDED = 2, LEASE_LOSS = 4, LEASE_RELEASED = 8 };

/* What one event leads to. In this order: undo, send, top up, arm the timer, tell. */
struct lease_update {
    uint32_t undo; /* mask: release the failed try's token at these nodes; nobody waits for it */

    bool send;             /* begin this round, on all nodes; all but ACQUIRE carry the fence */
    enum round_kind round; /* ACQUIRE comes with a fresh token, for the lease's permit */
    uint32_t awaited;      /* of SETTLE */

    uint32_t top_up;     /* mask: SET NX the current token at these nodes */
    uint64_t top_up_ttl; /* for so long */
    bool top_up_later;   /* once the news are told: lease_late_votes has it */

    unsigned news; /* mask of enum lease_news */
    redlock_status acquired;
    redlock_status extended;
    redlock_status loss;
    redlock_status released;
};

/* Begins to acquire at `members`, a mask of nodes. `seed` is for the jitter of this lease. */
void lease_start(struct lease *lease, const struct lease_terms *terms, uint32_t members,
                 uint64_t seed, uint64_t now, struct lease_update *update);

/*
 * Other nodes are asked from now on. Those that are new get the key of a lock that is held, so that
 * the next renewal finds it there. The round that is under way goes on with those it began with.
 */
void lease_move(struct lease *lease, uint32_t members, uint64_t now, struct lease_update *update);

/* The round that the lease waits for is decided; `now` is a fresh reading of the clock. */
void lease_decided(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update);

/*
 * The timer has fired, perhaps early. `round` is the one that the lease waits for, or NULL. When
 * the round's deadline is over, it is expired here.
 */
void lease_woken(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Votes have come in for a round that is decided. Where they complete the quorum of a renewal that
 * was given up, it has succeeded. Nodes that turn out to lack the key, where a quorum of the list
 * has it, are topped up. So are they after an acquisition, once it is told: a
 * yes is as fresh as the reading of the clock that it was decided by, and sending takes time.
 */
void lease_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update);

/*
 * Renews at once what could not be renewed: a node has come up. `round` is the latest. No more
 * often, between two renewals that succeeded, than there are nodes.
 */
void lease_hurry(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Reads anew why the last try failed, from its round: votes may have come since. To be called
 * before an event that may end the acquisition, so that its status is that of the votes then.
 */
void lease_reconsider(struct lease *lease, const struct round *tried);

/* Returns how far apart renewals are: a third of the TTL, or a little less. */
uint64_t lease_interval(const struct lease *lease);

/* Returns the TTL that the round which is to be sent asks for. */
uint64_t lease_round_ttl(const struct lease *lease);

/* The round that the last update asked for has been written: from now on the nodes have time. */
void lease_sent(struct lease *lease, uint64_t now);

/* The round that the last update asked for could not be sent: there was no memory for it. */
void lease_out_of_memory(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * What the application may ask for. Each returns REDLOCK_OK, or the status with which to refuse,
 * and then nothing has changed. `round` is the lease's latest round, or NULL.
 */
redlock_status lease_cancel(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update);
redlock_status lease_extend(struct lease *lease, uint64_t ttl, uint64_t now,
                            struct lease_update *update);
redlock_status lease_release(struct lease *lease, uint64_t now, struct lease_update *update);

/* The client closes: whatever is under way ends, and what is held is released. */
void lease_close(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * While a try is under way: within which time the next one reaches the nodes, if this one fails; 0:
 * it is the last one. At most a TTL.
 */
uint64_t lease_next_try_within(const struct lease *lease, uint64_t now);

/* Whether the lock is held and still certain to be ours; how long it still is; 0 if not. */
uint64_t lease_validity(const struct lease *lease, uint64_t now);

const char *lease_state_name(enum lease_state state);

#endif
