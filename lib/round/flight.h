/*
 * A round in flight: one command on its way to the nodes, whose replies become votes. A flight
 * lives until its last reply, however long after the verdict; its lock may have ended by then.
 */
#ifndef REDLOCK_ROUND_FLIGHT_H
#define REDLOCK_ROUND_FLIGHT_H

#include "base/pool.h"
#include "core/permits.h"
#include "core/round.h"
#include "io/net.h"
#include "node/context.h"
#include "node/members.h"
#include "node/node.h"
#include "wire/command.h"
#include "wire/key.h"
#include "wire/kind.h"
#include "wire/push.h"
#include "wire/reply.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A flight has room for the answers of FLIGHT_STEP nodes, or of a multiple of that. */
#define FLIGHT_STEP 8
#define FLIGHT_POOLS (REDLOCK_MAX_NODES / FLIGHT_STEP)

/* The flights of a client. */
struct flights {
    struct context *context;
    const struct members *members;
    struct pool pools[FLIGHT_POOLS]; /* one for each room for answers */
    struct pool permits;             /* of struct permits, which a flight for a permit has */
    uint32_t out; /* number of flights that wait for a reply, or that a lock refers to */
};

/* The owner of a round and its callback. `on_vote` is NULL if no owner waits, or none any more. */
struct flight_listener {
    /* Reports a vote, cast from a reply or inside round_send; `decided`: it decided the round. */
    void (*on_vote)(void *owner, bool decided, redlock_vote vote);
    void *owner;
};

/* The listener of flights whose votes no owner waits for. */
#define FLIGHT_UNATTENDED ((struct flight_listener){NULL, NULL})

/* The position of a QUEUE in its turn. */
enum flight_order {
    FLIGHT_AFTER_RELEASES,  /* after the releases of the turn */
    FLIGHT_BEFORE_RELEASES, /* before the releases, one of which lets the lease lead: nodes then
                               push the key */
    FLIGHT_AT_ONCE          /* now, before the release of the token that it replaces */
};

/* The description of a round: its kind, its lock, its nodes. Times and durations in nanoseconds. */
struct flight_plan {
    enum round_kind round;
    uint32_t nodes;   /* mask: the nodes to send the command to */
    uint64_t request; /* the number of the request that the round is for; 0: none */
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t now;
    uint64_t ttl;      /* the TTL from which the validity is computed */
    uint64_t node_ttl; /* the time for which nodes keep the key: the TTL and the lock delay */

    bool is_new;             /* ACQUIRE: a new acquisition; otherwise a top-up of a held lock */
    enum flight_order order; /* QUEUE */
    uint32_t permits;        /* ACQUIRE of a permit: the number of permits; otherwise 0 */
    uint32_t replicas;       /* the number of a node's replicas that must confirm a grant */
    uint64_t intent_ms;      /* ACQUIRE by a writer: the time for which new readers are kept out */
    uint64_t fence;          /* fenced: the smallest value that counters are raised to */
    uint64_t reservation;    /* QUEUE: the time for which a node keeps a key that it has pushed */
    uint64_t ticket;     /* QUEUE, and releases of a token that may have an entry in the queue: the
                            smallest comes first; 0: no entry */
    uint32_t awaited;    /* DIAGNOSE: mask of the nodes whose answers are waited for */
    uint32_t may_hold;   /* releases: mask of the nodes that may hold the key for us */
    uint64_t keep_until; /* releases: the instant at which the key has expired at every node */
    uint64_t stay_until; /* releases: the instant up to which the key stays; 0: none */
};

/* In the order of use: a vote touches the first 128 bytes, unless its answer carries more. */
struct flight {
    struct conn_request request; /* the SET (set.c); the request of a script is in its batch */
    struct flights *flights;
    struct flight_listener listener;
    uint32_t references;  /* number of replies to come, plus other holders of the flight */
    uint32_t unconfirmed; /* mask: nodes whose grant waits for their replicas */
    struct round round;
    struct flight_plan plan; /* holds a reference to the key; its token is the next field */
    char token[TOKEN_LENGTH + 1];
    bool asks_for_entry; /* QUEUE: it was sent to a node with a channel */
    bool is_void;        /* the try was given up: commands not sent yet are dropped */
    uint8_t pool;        /* index in flights->pools */
    uint32_t asked;      /* mask: nodes whose replicas were asked */
    uint32_t foreign;    /* QUEUE: mask of nodes where it is first after a foreign holder */
    uint32_t unwatched;  /* mask of those that have not been asked to watch the key */
    struct flight_detail *details;
    struct flight *tried;           /* DIAGNOSE: the failed try that it explains; or NULL */
    STAILQ_ENTRY(flight) sent_link; /* in the owner's list of rounds to be written */
    struct conn_request wait;       /* the WAIT after the SET */
    struct round_answer answers[];
};

void flights_init(struct flights *flights, struct context *context, const struct members *members);
void flights_finish(struct flights *flights);

/*
 * Creates a flight from a copy of `plan`, and begins its round; sends nothing. Returns the flight
 * with one reference, the caller's, or NULL when out of memory.
 */
struct flight *flight_create(struct flights *flights, struct flight_listener listener,
                             const struct flight_plan *plan);

/* Returns whether the round is a release. */
static inline bool flight_is_release(const struct flight *flight) {
    return flight->round.kind == ROUND_RELEASE || flight->round.kind == ROUND_DIAGNOSE;
}

/* Returns whether the round is undecided, and an owner waits for it. */
static inline bool flight_is_waited_for(const struct flight *flight) {
    return !flight->is_void && flight->listener.on_vote != NULL &&
           flight->round.verdict == ROUND_OPEN;
}

/* Adds a reference, and returns the flight. */
struct flight *flight_hold(struct flight *flight);

/* Drops a reference, the last of which frees the flight; `flight` may be NULL. */
void flight_drop(struct flight *flight);

/*
 * Prepares a command that takes the key: sends a heartbeat to every member that had none for a
 * second, and casts the votes of the members that are not sent the command, which are duplicates
 * and nodes outside the plan. Returns the mask of the nodes to send the command to.
 */
uint32_t flight_prepare_take(struct flight *flight);

/* An outcome that carries nothing but the vote. */
#define PLAIN_VOTE(name) ((struct reply_outcome){.vote = REDLOCK_VOTE_##name})

/*
 * Casts a node's vote; `detail` (may be NULL) is copied. A grant, unless of a release, is cast as
 * UNTRUSTED if the node is not trusted, and waits for flight_confirm if replicas were asked.
 */
void flight_vote(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail);

/* Records that a WAIT was sent after the command: a grant of the node counts once confirmed. */
void flight_asks_replicas(struct flight *flight, const struct node *node);

/*
 * Casts the vote of a node whose replicas were asked, by the reply to the WAIT (may be NULL). Does
 * nothing if the node did not grant.
 */
void flight_confirm(struct flight *flight, struct node *node, const struct reply *reply);

/* Casts a grant that the node has pushed, unless the node is not trusted. */
void flight_push(struct flight *flight, struct node *node, const struct push *push);

/* Records that the node leaves the key open to all for a while; notifies the owner as of a vote. */
void flight_record_open(struct flight *flight, const struct node *node, uint64_t open_ms);

/* Records that the node offers a permit that became free; notifies the owner as of a vote. */
void flight_record_permit(struct flight *flight, const struct node *node, uint32_t permit);

/* Casts the vote of a node that was sent nothing: REFUSED (it refuses the login) or UNREACHABLE. */
void flight_vote_unsent(struct flight *flight, struct node *node);

/*
 * Casts the vote for a NULL reply. If there was a connection: ERROR if the login was refused,
 * otherwise BROKEN. Without one: the vote of flight_vote_unsent.
 */
void flight_vote_without_answer(struct flight *flight, struct node *node);

/* Casts ERROR for an error reply, or for a reply that makes no sense. */
void flight_vote_error(struct flight *flight, struct node *node, const struct reply *reply);

/* Returns the detail of a node's vote, or ""; valid as long as the flight. */
const char *flight_detail(const struct flight *flight, uint32_t node);

#endif
