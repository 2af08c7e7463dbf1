/*
 * A lease as data: the terms of its request, its state, and the one thing that it waits for.
 *   STARTING   -> ACQUIRING   the nodes are known, or the time to wait for that is over
 *              -> QUEUED      the same, but other requests of the client come first
 *              -> OVER        canceled
 *   ACQUIRING  -> HELD        a quorum granted the key
 *              -> RAISING     a quorum did, but the counters of a fenced lock differ
 *              -> ACQUIRING   the try failed and another permit is free: a permit retry
 *              -> QUEUED      a quorum of the nodes has answered; some may have an entry for it
 *              -> BACKOFF     the try failed and another one will follow
 *              -> DIAGNOSING  the last try failed and nodes denied it
 *              -> OVER        the last try failed without a denial, was canceled, or had no memory
 *   RAISING    -> RAISING     a node's counter turned out to be larger
 *              -> HELD, BACKOFF, DIAGNOSING, OVER as from ACQUIRING
 *   QUEUED     -> ACQUIRING   the entry is asked for again, or replaced: a requeue
 *              -> HELD, RAISING, BACKOFF, DIAGNOSING, OVER as from ACQUIRING
 *   BACKOFF    -> ACQUIRING   the delay is over
 *              -> OVER        the time to wait is over, or canceled
 *   DIAGNOSING -> OVER        the deniers have answered, are late, or canceled
 *   HELD       -> RENEWING    a renewal is due, or the application extends
 *              -> HELD        a renewal counts late, or none is due any more
 *              -> LOST        the validity ends
 *              -> RELEASING   released, or closed
 *   RENEWING   -> HELD        the round has ended
 *              -> RENEWING    an extension follows, or an early renewal supersedes the round
 *              -> LOST        the key is gone, or the validity ends
 *              -> RELEASING   released, or closed
 *   LOST       -> RELEASING   released, or closed
 *   RELEASING  -> OVER        the round has ended, or had no memory
 * lease_set_state is the only writer of `state`, and asserts that the move is one of these.
 */
#ifndef REDLOCK_CORE_LEASE_STATE_H
#define REDLOCK_CORE_LEASE_STATE_H

#include "base/nanos.h"
#include "core/ticks.h"
#include "core/update.h"

#include <assert.h>
#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* In the states up to DIAGNOSING the lock is being acquired (lease_is_acquiring). */
enum lease_state {
    LEASE_STARTING,   /* the first try waits until the nodes are known */
    LEASE_ACQUIRING,  /* a round asks for the key */
    LEASE_RAISING,    /* a quorum granted the key; a round makes its counters agree on the fence */
    LEASE_QUEUED,     /* the lease has entries in the queues of nodes, and waits for their grants */
    LEASE_BACKOFF,    /* a try failed; the pause before the next one */
    LEASE_DIAGNOSING, /* the last try failed; a round asks the nodes that denied what they hold */
    LEASE_HELD,
    LEASE_RENEWING, /* held, while a round renews or extends it */
    LEASE_LOST,
    LEASE_RELEASING,
    LEASE_OVER
};

/* Bounds on the timeouts of the client's nodes now, in nanoseconds: each has its own. */
struct patience {
    uint64_t least; /* the earliest that a silent node may be late after a command was sent */
    uint64_t most;
    bool is_opening; /* nodes give no queue entries yet, but may soon: then waiters ask again */
};

/* The terms of a request: constant, and shared by leases. Durations are in nanoseconds. */
struct lease_terms {
    uint64_t *seed;                  /* of the jitter */
    struct ticks *ticks;             /* of the client's renewals */
    const struct patience *patience; /* follows the nodes' answers */
    double drift;
    uint64_t ttl;              /* initial TTL: an extension changes the lease's */
    uint64_t connect_patience; /* the time that nodes have to connect once a quorum is up */
    uint64_t retry_delay;
    uint64_t retry_delay_max;
    uint64_t wait;    /* time within which the last try begins; NANOS_NEVER: no bound */
    uint32_t retries; /* tries after the first; UINT32_MAX: no bound */
    uint64_t min_validity;
    bool watchdog;
    uint64_t max_hold; /* NANOS_NEVER: no bound */
    bool fenced;
    uint64_t min_hold;    /* since the start of the round that acquired the lock */
    uint64_t lock_delay;  /* time beyond the TTL for which nodes keep the key */
    bool queues;          /* tries ask for an entry in the queue of the key */
    uint64_t reservation; /* queues: time for which a node keeps the key that it has pushed */
    bool trusts_pushes;   /* queues: a quorum of pushes is reported at once, and renewed soon */
    bool is_reader;
    uint32_t permits;  /* the number of permits of the semaphore; 0: no semaphore */
    bool watches;      /* nodes watch the key while it is held */
    uint32_t replicas; /* the number of a node's replicas that must confirm a grant */
};

/* The part of a lease whose lock is being acquired, or was not acquired. */
struct lease_trying {
    uint64_t give_up_at; /* the instant after which no try begins; NANOS_NEVER: no bound */
    uint64_t requeue_at; /* the instant of a requeue; STARTING: the latest start of the first try */
    uint64_t poll_at;    /* the instant at which the entry is asked for again */
    uint32_t may_queue;  /* mask: nodes that may have an entry from earlier tries for permits */
    uint32_t held_ms;  /* ms from begun_at for which a quorum keeps a holder's key; 0: not known */
    uint16_t requeues; /* number of requeues since the last try, or since all nodes denied */
    uint16_t permit_retries_left; /* permit retries allowed before the next pause */
    uint32_t trip_us;             /* time until a quorum answered the last ask, or its deadline */
};

/* The part of a lease whose lock is held, or was. */
struct lease_holding {
    uint64_t validity_end; /* 0: held no more */
    uint64_t lost_at; /* the instant at which the loss is reported, shortly before validity_end */
    uint64_t phase;   /* one of the instants at which the lock renews (core/renewal.h) */
    uint64_t stay_until; /* the end of the time in which a release leaves the key; 0: none */
    uint32_t topped_up;  /* mask: nodes topped up since the last round was sent */
    uint32_t to_top_up;  /* mask: those without room, whose top-up was not sent yet */
};

/*
 * Small, because a client may hold a million: the instants of a round under way are in the round,
 * and the two parts share their memory.
 */
struct lease {
    const struct lease_terms *terms;
    union {
        struct lease_trying trying;
        struct lease_holding holding; /* from hold_begin on */
    };
    uint64_t ttl; /* of the next round */
    uint64_t begun_at;
    uint64_t completed_at; /* end of the acquisition, with or without success; 0: under way */
    uint64_t wake_at;      /* NANOS_NEVER: the lease waits for no instant */
    uint64_t asked_at;     /* the instant at which the latest try or renewal was sent */
    uint64_t longest_ttl;  /* the longest time that a node was asked to keep the key */
    uint64_t fence;        /* the counter that a quorum agrees on, the last number of the range of
                              fences (wire/fence.h); 0: not fenced */
    uint32_t members;      /* mask: the nodes asked; changes with the client's list */
    uint32_t may_hold; /* mask: nodes that may hold the key, or an entry, for the current token */
    uint32_t tries;
    uint32_t permit_retries; /* tries without a pause before them, each for another permit */
    uint8_t change_rounds;   /* rounds in a row that followed change notifications; at most 255 */
    uint8_t early_renewals;  /* held: early renewals since the last one that succeeded */
    uint8_t state;           /* enum lease_state */
    uint8_t fences_used;     /* number of fences of the range that earlier holders had */
    uint8_t permit;          /* the permit tried or held; in BACKOFF, the one tried next */
    int8_t failure; /* redlock_status: the reason why the last try, or the request, failed */
    int8_t loss;    /* redlock_status: the reason why it is LOST */
    bool was_acquired : 1;
    bool extending : 1;        /* the application extends: by the round of RENEWING, or after it */
    bool renews : 1;           /* a renewal is planned, at wake_at unless the loss comes first */
    bool is_unrenewed : 1;     /* the last renewal failed, or has been under way for long */
    bool may_have_changed : 1; /* the key may have changed at a node since asked_at */
    bool has_new_token : 1;    /* the latest ask is a requeue: the old token is released after it */
};

/* The mask of the states that may follow each state. */
extern const uint16_t lease_moves[LEASE_OVER + 1];

void lease_set_state(struct lease *lease, enum lease_state state);

static inline bool lease_is_acquiring(const struct lease *lease) {
    return lease->state <= LEASE_DIAGNOSING;
}

static inline bool lease_is_held(const struct lease *lease) {
    return lease->state == LEASE_HELD || lease->state == LEASE_RENEWING;
}

/* Returns whether the lease waits for the verdict of a round. */
static inline bool lease_awaits_round(const struct lease *lease) {
    const uint32_t awaiting = 1u << LEASE_ACQUIRING | 1u << LEASE_RAISING | 1u << LEASE_DIAGNOSING |
                              1u << LEASE_RENEWING | 1u << LEASE_RELEASING;
    return awaiting >> lease->state & 1;
}

/* Returns whether a renewal of the watchdog is under way, and the application does not extend. */
static inline bool lease_is_watchdog_renewing(const struct lease *lease) {
    return lease->state == LEASE_RENEWING && !lease->extending;
}

/*
 * Returns a mask of the nodes that lack the key, and whose top-up waits until they have room. While
 * a renewal is under way these are none: it asks all nodes, and what it finds decides.
 */
static inline uint32_t lease_awaits_room(const struct lease *lease) {
    return lease->state == LEASE_HELD ? lease->holding.to_top_up : 0;
}

/* Returns whether a validity that ends at `end` is longer than the requested minimum. */
static inline bool lease_leaves_validity(const struct lease *lease, uint64_t end, uint64_t now) {
    return end > nanos_add(now, lease->terms->min_validity);
}

/* Sends a round for `update->ttl` that is useless from `usable_until` on (lease_await). */
void lease_send(struct lease *lease, enum round_kind kind, uint64_t now, uint64_t usable_until,
                struct lease_update *update);

/* Wakes the lease when nodes may be late, or when the round is useless if that comes first. */
void lease_await(struct lease *lease, uint64_t now, uint64_t usable_until);

const char *lease_state_name(enum lease_state state);

#endif
