/*
 * A round in flight: one command on its way to the nodes, whose replies become votes. It lives
 * until its last reply, however long after the verdict that comes; the lock that began it may be
 * gone by then.
 */
#ifndef REDLOCK_FLIGHT_H
#define REDLOCK_FLIGHT_H

#include "context.h"
#include "core/permits.h"
#include "core/round.h"
#include "io/net.h"
#include "key.h"
#include "wire/command.h"
#include "wire/reply.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct node;

/* Who waits for the verdict; `on_vote` is NULL when nobody does, or nobody any more. */
struct flight_listener {
    /* A vote has come in; `decided`: it was the one that decided the round. */
    void (*on_vote)(void *owner, bool decided, redlock_vote vote);
    void *owner;
};

struct flight {
    struct conn_request request; /* of a SET; a script's keys wait in their batch */
    struct conn_request wait;    /* of the WAIT behind it */
    struct round round;
    struct context *context;
    struct flight_listener listener;
    struct key *key;
    char token[TOKEN_LENGTH + 1];
    uint32_t references; /* replies to come, and the lock that looks at the votes */
    uint32_t may_hold;   /* releases: mask of the nodes that may hold the key for us */
    uint64_t keep_until; /* releases: when the key has expired at every node */
    uint64_t stay_until; /* releases: until then the key is to stay; 0: not at all */
    uint64_t node_ttl;   /* how long the nodes are to keep the key */
    bool is_fenced;
    uint64_t fence;       /* of fenced locks: what their counters are raised to, at least */
    unsigned step;        /* 1: it is a new acquisition, 0: a top-up; so much counters grow by */
    uint64_t intent_ms;   /* of a writer that meets readers: they make room for so long */
    uint32_t replicas;    /* so many of a node's have to confirm a grant */
    uint32_t asked;       /* mask: nodes whose replicas were asked */
    uint32_t unconfirmed; /* mask: nodes that granted it, but for that */
    bool is_void;         /* the try is given up: what has not been sent need not be */
    struct flight_detail *details;
};

/* What a flight is about. */
struct flight_plan {
    enum round_kind kind;
    struct key *key;
    const char *token;
    uint64_t now;
    uint64_t ttl;
    uint64_t lock_delay; /* behind the TTL */
    uint32_t awaited;    /* of ROUND_SETTLE */
    uint32_t may_hold;   /* of a release, like the next two */
    uint64_t keep_until;
    uint64_t stay_until;
    bool is_fenced;
    uint64_t fence;
    unsigned step;      /* 1: a new acquisition */
    uint64_t intent_ms; /* of a writer */
    uint32_t replicas;
    uint32_t permits; /* of a try for a permit: of how many; else 0 */
};

extern const struct pool_kind flight_kind;
extern const struct pool_kind permits_kind;

/* For flights whose votes nobody waits for. */
#define FLIGHT_UNATTENDED ((struct flight_listener){NULL, NULL})

/* A flight with one reference, the caller's; NULL when out of memory. */
struct flight *flight_create(struct context *context, struct flight_listener listener,
                             const struct flight_plan *plan);

/* Whether its verdict is still to come, and somebody waits for that. */
static inline bool flight_is_waited_for(const struct flight *flight) {
    return !flight->is_void && flight->listener.on_vote != NULL &&
           flight->round.verdict == ROUND_OPEN;
}

struct flight *flight_hold(struct flight *flight);
void flight_drop(struct flight *flight); /* takes NULL */

/* Sends SET NX with the flight's TTL to these nodes; the others vote UNREACHABLE at once. */
void flight_send_set(struct flight *flight, uint32_t nodes);

/*
 * For a script that takes, to these nodes: who is not to be sent it votes at once. Returns a mask
 * of those who are.
 */
uint32_t flight_prepare_take(struct flight *flight, uint32_t nodes);

/* A vote that says no more than its name. */
#define PLAIN_VOTE(name) ((struct reply_outcome){.vote = REDLOCK_VOTE_##name})

/* One node's vote; `detail` (may be NULL) is copied. */
void flight_vote(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail);

/* The node was sent a WAIT behind its call; and the answer to that, or NULL. */
void flight_asks_replicas(struct flight *flight, const struct node *node);
void flight_confirm(struct flight *flight, struct node *node, const struct reply *reply);

/* How long a WAIT may take: what it says is to come before the round is over. */
uint64_t flight_wait_ms(const struct context *context);

/* The vote that a broken connection or an error reply is, for scripts and SET alike. */
void flight_vote_without_answer(struct flight *flight, struct node *node);
void flight_vote_error(struct flight *flight, struct node *node, const struct reply *reply);

/* What was noted with a node's vote; "". */
const char *flight_detail(const struct flight *flight, uint32_t node);

#endif
