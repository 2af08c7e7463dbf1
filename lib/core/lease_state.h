/*
 * A lease as data: the terms of its request, its state, and the one thing that it waits for.
 *
 *   ACQUIRING  -> HELD        a quorum granted the key
 *              -> RAISING     a quorum did, but the counters of a fenced lock differ
 *              -> ACQUIRING   the try failed and another permit is free: a hop
 *              -> QUEUED      the nodes have answered, and have a place for the waiter
 *              -> BACKOFF     the try failed and another one will follow
 *              -> SETTLING    the last try failed and nodes denied it
 *              -> OVER        the last try failed elsewise, was canceled, or found no memory
 *   RAISING    -> RAISING     a node's counter turned out to be larger
 *              -> HELD, BACKOFF, SETTLING, OVER as from ACQUIRING
 *   QUEUED     -> ACQUIRING   the place is asked for again, or given up for a new one
 *              -> HELD, RAISING, BACKOFF, SETTLING, OVER as from ACQUIRING
 *   BACKOFF    -> ACQUIRING   the delay is over
 *              -> OVER        the time to wait is over, or canceled
 *   SETTLING   -> OVER        the deniers have answered, are late, or canceled
 *   HELD       -> RENEWING    a renewal is due, or the application extends
 *              -> HELD        a renewal counts late, or none is due any more
 *              -> LOST        the validity ends
 *              -> RELEASING   released, or closed
 *   RENEWING   -> HELD        the round has ended
 *              -> RENEWING    an extension or a hurried renewal supersedes the round
 *              -> LOST        the key is gone, or the validity ends
 *              -> RELEASING   released, or closed
 *   LOST       -> RELEASING   released, or closed
 *   RELEASING  -> OVER        the round has ended, or found no memory
 *
 * lease_set_state is the only writer of `state`, and asserts that its move is one of these.
 */
#ifndef REDLOCK_CORE_LEASE_STATE_H
#define REDLOCK_CORE_LEASE_STATE_H

#include "base/nanos.h"

#include <assert.h>
#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* Up to SETTLING the lock is being acquired (lease_is_acquiring). */
enum lease_state {
    LEASE_ACQUIRING, /* a round asks for the key */
    LEASE_RAISING,   /* a quorum granted the key; a round makes its counters agree on the fence */
    LEASE_QUEUED,    /* places in the queues of nodes; their grants are waited for */
    LEASE_BACKOFF,   /* a try failed; the pause before the next one */
    LEASE_SETTLING,  /* the last try failed; a round asks the nodes that denied what they hold */
    LEASE_HELD,
    LEASE_RENEWING, /* held, while a round renews or extends it */
    LEASE_LOST,
    LEASE_RELEASING,
    LEASE_OVER
};

/* The terms of a request. Durations in nanoseconds. Constant, but an extension changes `ttl`. */
struct lease_terms {
    double drift;
    uint64_t ttl;
    uint64_t node_timeout;
    uint64_t retry_delay;
    uint64_t retry_delay_max;
    uint64_t give_up_at; /* the instant after which no try begins; NANOS_NEVER: no bound */
    uint32_t retries;    /* tries after the first; UINT32_MAX: no bound */
    uint64_t min_validity;
    bool watchdog;
    uint64_t max_hold; /* NANOS_NEVER: no bound */
    bool fenced;
    uint64_t min_hold;   /* since the start of the round that acquired the lock */
    uint64_t lock_delay; /* time beyond the TTL for which nodes keep the key */
    bool queues;         /* tries ask for a place in the queue of the key */
    uint64_t claim;      /* queues: time for which a node keeps the key that it has pushed */
    bool trusts_pushes;  /* queues: a quorum of pushes is told at once, and renewed soon */
    uint32_t permits;    /* the number of permits of the semaphore; 0: no semaphore */
};

struct lease {
    struct lease_terms terms;
    enum lease_state state;
    uint32_t members;       /* mask: the nodes asked; changes with the client's list */
    redlock_status failure; /* the reason why the last try failed */
    bool extending;         /* the round of RENEWING is an extension by the application */
    uint64_t extension_ttl; /* its TTL, which becomes that of the terms if it succeeds */
    bool is_unrenewed;      /* the last renewal failed, or has been under way for long */
    uint32_t hurried;       /* hurried renewals since the last one that succeeded */
    redlock_status loss;    /* the reason why it is LOST */
    uint32_t tries;
    uint32_t permit;    /* the permit tried or held; in BACKOFF, the one tried next */
    uint32_t hops;      /* tries without a pause before them, each for another permit */
    uint32_t hops_left; /* hops allowed before the next pause */
    uint32_t may_hold;  /* mask: nodes that may hold the key, or a place, for the current token */
    uint32_t yields;    /* places given up for new ones, since the last try that was not */
    uint64_t asked_at;  /* the instant at which the latest QUEUE was sent */
    uint64_t settle_at; /* the instant at which grants of less than a quorum are given up */
    uint64_t poll_at;   /* the instant at which the place is asked for again */
    uint64_t fence;     /* the counter that a quorum agrees on; 0: not fenced */
    uint32_t topped_up; /* mask: nodes topped up since the last round was sent */
    uint64_t begun_at;
    uint64_t told_at; /* end of the acquisition, with or without success; 0: under way */
    uint64_t acquired_at;
    uint64_t validity_end; /* 0 unless held */
    uint64_t lost_at;      /* the instant at which the loss is told, shortly before validity_end */
    uint64_t renew_at;     /* NANOS_NEVER: no renewal is planned */
    uint64_t phase;        /* one of the instants at which the lock renews (core/renewal.h) */
    uint64_t longest_ttl;  /* the longest time that a node was asked to keep the key */
    uint64_t stay_until;   /* the end of the time in which a release leaves the key; 0: none */
    uint64_t wake_at;      /* NANOS_NEVER: the lease waits for no instant */
    uint64_t patience;     /* time allowed to the round under way, or to the last one */
    uint64_t useless_at;   /* the instant from which the round under way is of no use */
    uint64_t seed;         /* of the jitter */
};

/* For each state the mask of those that may follow. */
extern const uint16_t lease_moves[LEASE_OVER + 1];

static inline void lease_set_state(struct lease *lease, enum lease_state state) {
    assert(lease_moves[lease->state] >> state & 1);
    lease->state = state;
}

static inline bool lease_is_acquiring(const struct lease *lease) {
    return lease->state <= LEASE_SETTLING;
}

static inline bool lease_is_held(const struct lease *lease) {
    return lease->state == LEASE_HELD || lease->state == LEASE_RENEWING;
}

/* Returns whether the lease waits for the verdict of a round. */
static inline bool lease_awaits_round(const struct lease *lease) {
    const uint32_t awaiting = 1u << LEASE_ACQUIRING | 1u << LEASE_RAISING | 1u << LEASE_SETTLING |
                              1u << LEASE_RENEWING | 1u << LEASE_RELEASING;
    return awaiting >> lease->state & 1;
}

/* Returns whether a renewal of the watchdog is under way, not an extension by the application. */
static inline bool lease_is_watchdog_renewing(const struct lease *lease) {
    return lease->state == LEASE_RENEWING && !lease->extending;
}

/* Returns whether a validity that ends at `end` is longer than the least asked for. */
static inline bool lease_leaves_validity(const struct lease *lease, uint64_t end, uint64_t now) {
    return end > nanos_add(now, lease->terms.min_validity);
}

/*
 * Sets the deadline, `wake_at`, of a round that is sent now, and is of no use from `useless_at` on.
 * To be called again when the round has been written.
 */
void lease_await_round(struct lease *lease, uint64_t now, uint64_t useless_at);

const char *lease_state_name(enum lease_state state);

#endif
