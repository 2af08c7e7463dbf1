/*
 * A round in flight: one command on its way to the nodes, whose replies become votes. A flight
 * lives until its last reply, however long after the verdict; the lock that began it may have ended
 * by then.
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
#include "wire/reply.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The flights of a client. */
struct flights {
    struct context *context;
    const struct members *members;
    struct pool pool;
    struct pool permits; /* beside each flight for a permit */
    uint32_t out;        /* flights that wait for a reply, or that a lock looks at */
};

/* The taker of the verdict; `on_vote` is NULL where nobody waits, or nobody any more. */
struct flight_listener {
    /* A vote has come in; `decided`: this vote decided the round. From replies. */
    void (*on_vote)(void *owner, bool decided, redlock_vote vote);
    void *owner;
};

/* For flights whose votes nobody waits for. */
#define FLIGHT_UNATTENDED ((struct flight_listener){NULL, NULL})

/* A round as it is wanted: of which kind, for which lock, at which nodes. */
struct flight_plan {
    enum round_kind round;
    const struct kind *kind;
    struct key *key;
    const char *token;
    uint64_t now;
    uint32_t nodes;    /* mask: the nodes that are sent the command */
    uint64_t ttl;      /* counts for the validity */
    uint64_t node_ttl; /* how long nodes keep the key: the TTL, and the lock delay behind it */

    bool is_new;         /* ACQUIRE: a new acquisition; otherwise a top-up of a held lock */
    uint32_t permits;    /* ACQUIRE of a permit: the number of permits; otherwise 0 */
    uint64_t intent_ms;  /* ACQUIRE by a writer: for how long readers it meets make room */
    uint64_t fence;      /* fenced: the least that counters are raised to */
    uint32_t replicas;   /* the number of a node's replicas that must confirm a grant */
    uint32_t awaited;    /* SETTLE: mask of the nodes whose answers are waited for */
    uint32_t may_hold;   /* releases: mask of the nodes that may hold the key for us */
    uint64_t keep_until; /* releases: when the key has expired at every node */
    uint64_t stay_until; /* releases: until when the key is to stay; 0: not at all */
};

struct flight {
    struct conn_request request; /* of a SET, for set.c; a script's is its batch's */
    struct conn_request wait;    /* of the WAIT behind the SET */
    struct round round;
    struct flights *flights;
    struct flight_listener listener;
    struct flight_plan plan; /* its key is held; its token is the next field */
    char token[TOKEN_LENGTH + 1];
    uint32_t references;  /* replies to come, and the lock that looks at the votes */
    uint32_t asked;       /* mask: nodes whose replicas were asked */
    uint32_t unconfirmed; /* mask: nodes whose grant waits for its replicas */
    bool is_void;         /* the try was given up: a command that was not sent need not be */
    struct flight_detail *details;
};

void flights_init(struct flights *flights, struct context *context, const struct members *members);
void flights_finish(struct flights *flights);

/* Returns a flight with one reference, the caller's, and copies the plan; NULL: out of memory. */
struct flight *flight_create(struct flights *flights, struct flight_listener listener,
                             const struct flight_plan *plan);

/* Whether the verdict is still to come, and somebody waits for it. */
static inline bool flight_is_waited_for(const struct flight *flight) {
    return !flight->is_void && flight->listener.on_vote != NULL &&
           flight->round.verdict == ROUND_OPEN;
}

/* Adds a reference, and returns the flight. */
struct flight *flight_hold(struct flight *flight);

/* Drops a reference; the last one frees the flight. Takes NULL. */
void flight_drop(struct flight *flight);

/*
 * Before a command that takes the key is sent to the plan's nodes: beats the nodes whose trust is
 * old, and votes for the nodes that are not to be sent the command: twins, and nodes outside the
 * plan. Returns the mask of the others.
 */
uint32_t flight_prepare_take(struct flight *flight);

/* An outcome that says no more than the vote's name. */
#define PLAIN_VOTE(name) ((struct reply_outcome){.vote = REDLOCK_VOTE_##name})

/* Casts one node's vote; `detail` (may be NULL) is copied. */
void flight_vote(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail);

/* Notes that a WAIT was sent behind the command: a grant of the node counts when confirmed. */
void flight_asks_replicas(struct flight *flight, const struct node *node);

/* Casts the vote of a node whose replicas were asked, by the reply to the WAIT; or NULL. */
void flight_confirm(struct flight *flight, struct node *node, const struct reply *reply);

/* Casts the vote that the end of the connection is. */
void flight_vote_without_answer(struct flight *flight, struct node *node);

/* Casts the vote that an error reply is, or a reply that makes no sense. */
void flight_vote_error(struct flight *flight, struct node *node, const struct reply *reply);

/* Returns the detail of a node's vote; "". */
const char *flight_detail(const struct flight *flight, uint32_t node);

#endif
