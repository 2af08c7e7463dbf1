/*
 * An operation: one command for one lock, from the lock to the nodes, and its votes back. The lock
 * fills it once; everything below reads it. It lives until the last reply, however long after the
 * verdict; its lock may have ended by then.
 */
#ifndef REDLOCK_ROUND_OPERATION_H
#define REDLOCK_ROUND_OPERATION_H

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

/* An operation has room for the answers of OPERATION_STEP nodes, or of a multiple of that. */
#define OPERATION_STEP 8
#define OPERATION_POOLS (REDLOCK_MAX_NODES / OPERATION_STEP)

/* The operations of a client. */
struct operations {
    struct context *context;
    const struct members *members;
    struct pool pools[OPERATION_POOLS]; /* one for each room for answers */
    struct pool permits;                /* of struct permits, which a try for a permit has */
    uint32_t out; /* number of operations that wait for a reply, or that a lock refers to */
};

/* The owner of an operation and its callback; `on_vote` is NULL if no owner waits, or no more. */
struct operation_listener {
    /* Reports a vote, cast from a reply or inside rounds_add; `decided`: it decided the round. */
    void (*on_vote)(void *owner, bool decided, redlock_vote vote);
    void *owner;
};

/* The listener of operations whose votes no owner waits for. */
#define OPERATION_UNATTENDED ((struct operation_listener){NULL, NULL})

/* The position of a QUEUE in its turn. */
enum operation_order {
    OPERATION_AFTER_RELEASES,  /* after the releases of the turn */
    OPERATION_BEFORE_RELEASES, /* before the releases, one of which lets the lease lead: nodes then
                                  push the key */
    OPERATION_AT_ONCE          /* now, before the release of the token that it replaces */
};

/* In the order of use: a vote touches the first 128 bytes, unless its answer carries more. */
struct operation {
    struct operations *operations;
    struct operation_listener listener;
    const struct kind *kind;
    uint32_t references;  /* number of replies to come, plus other holders of the operation */
    uint32_t unconfirmed; /* mask: nodes whose grant waits for their replicas */
    uint32_t asked;       /* mask: nodes whose replicas were asked */
    uint32_t replicas;    /* number of a node's replicas that must confirm a grant */
    uint32_t nodes;       /* mask: the nodes to send the command to */
    uint32_t may_hold;    /* releases: mask of the nodes that may hold the key for us */
    uint8_t pool;         /* index in operations->pools */
    uint8_t order;        /* QUEUE: enum operation_order */
    bool asks_for_entry;  /* QUEUE: it was sent to a node with a channel */
    bool is_void;         /* the try was given up: commands not sent yet are dropped */
    struct round round;
    struct lock_arguments arguments; /* holds a reference to the key */
    uint32_t request;                /* number of the request that the operation is for; 0: none */
    uint32_t foreign;    /* QUEUE: mask of nodes where it is first after a foreign holder */
    uint32_t unwatched;  /* mask of those that have not been asked to watch the key */
    uint64_t keep_until; /* releases: the instant at which the key has expired at every node */
    uint64_t stay_until; /* releases: the instant up to which the key stays; 0: none */
    struct operation_detail *details;
    struct operation *tried;           /* DIAGNOSE: the failed try that it explains; or NULL */
    STAILQ_ENTRY(operation) sent_link; /* in the owner's list of operations to be written */
    struct conn_request set;           /* the SET; the request of a script is in its call */
    struct conn_request wait;          /* the WAIT after the SET */
    struct round_answer answers[];
};

void operations_init(struct operations *operations, struct context *context,
                     const struct members *members);
void operations_finish(struct operations *operations);

/*
 * Creates an operation for a copy of `token` and a key; `permits` is not 0 for a try for one of so
 * many permits. The caller begins it (operation_begin), and fills in what its command needs.
 * Returns the operation, unattended, with one reference, the caller's; NULL when out of memory.
 */
struct operation *operation_create(struct operations *operations, const struct kind *kind,
                                   struct key *key, const char *token, uint32_t permits);

/*
 * Begins the operation's round at the client's nodes of now: from `ttl`, in nanoseconds, follows
 * the validity. `awaited`: of round_begin.
 */
void operation_begin(struct operation *operation, enum round_kind round, uint64_t now, uint64_t ttl,
                     uint32_t awaited);

/*
 * Makes a begun operation the release of a token that the nodes of `may_hold`, a mask, may hold,
 * and that has expired at all of them at `until`. `ticket`: of the queue entry to give up as well,
 * or 0. Before `stay_until` (0: never) the key is left in place.
 */
void operation_set_release(struct operation *operation, uint32_t may_hold, uint64_t ticket,
                           uint64_t until, uint64_t stay_until);

/* Returns the script of the operation's command; SCRIPT_NONE: the command is SET. */
enum script operation_script(const struct operation *operation);

/*
 * Returns the script that releases a key: before `stay_until` (0: never) one that leaves the key
 * there; with a ticket, one that gives up an entry in the queue as well.
 */
enum script operation_release_script(const struct kind *kind, uint64_t ticket, uint64_t stay_until,
                                     uint64_t now);

/* Returns whether the operation is a release. */
static inline bool operation_is_release(const struct operation *operation) {
    return operation->round.kind == ROUND_RELEASE || operation->round.kind == ROUND_DIAGNOSE;
}

/* Returns whether the operation is a try, which takes the key, or asks for an entry. */
static inline bool operation_is_try(const struct operation *operation) {
    return operation->round.kind == ROUND_ACQUIRE || operation->round.kind == ROUND_QUEUE;
}

/* Returns whether the round is undecided, and an owner waits for it. */
static inline bool operation_is_waited_for(const struct operation *operation) {
    return !operation->is_void && operation->listener.on_vote != NULL &&
           operation->round.verdict == ROUND_OPEN;
}

/* Adds a reference, and returns the operation. */
struct operation *operation_hold(struct operation *operation);

/* Drops a reference, the last of which frees the operation; `operation` may be NULL. */
void operation_drop(struct operation *operation);

/*
 * Prepares a command that takes the key: sends a heartbeat to every member that had none for a
 * second, and casts the votes of the members that are not sent the command, which are duplicates
 * and nodes that the operation does not name. Returns the mask of the nodes to send the command to.
 */
uint32_t operation_prepare_take(struct operation *operation);

/* Sends heartbeats likewise ahead of a renewal, to the nodes that it is sent to. */
void operation_send_beats(const struct operation *operation);

/* An outcome that carries nothing but the vote. */
#define PLAIN_VOTE(name) ((struct reply_outcome){.vote = REDLOCK_VOTE_##name})

/*
 * Casts a node's vote; `detail` (may be NULL) is copied. A grant, unless of a release, is cast as
 * UNTRUSTED if the node is not trusted, and waits for operation_confirm if replicas were asked.
 */
void operation_vote(struct operation *operation, struct node *node,
                    const struct reply_outcome *outcome, const char *detail);

/* Records that a WAIT was sent after the command: a grant of the node counts once confirmed. */
void operation_asks_replicas(struct operation *operation, const struct node *node);

/*
 * Casts the vote of a node whose replicas were asked, by the reply to the WAIT (may be NULL). Does
 * nothing if the node did not grant.
 */
void operation_confirm(struct operation *operation, struct node *node, const struct reply *reply);

/* Casts a grant that the node has pushed, unless the node is not trusted. */
void operation_push(struct operation *operation, struct node *node, const struct push *push);

/* Records that the node leaves the key open to all for a while; notifies the owner as of a vote. */
void operation_record_open(struct operation *operation, const struct node *node, uint64_t open_ms);

/* Records that the node offers a permit that became free; notifies the owner as of a vote. */
void operation_record_permit(struct operation *operation, const struct node *node, uint32_t permit);

/* Casts the vote of a node that was sent nothing: REFUSED (it refuses the login) or UNREACHABLE. */
void operation_vote_unsent(struct operation *operation, struct node *node);

/* Casts UNREACHABLE: there was no memory to send the command to the node. */
void operation_vote_out_of_memory(struct operation *operation, struct node *node);

/*
 * Casts the vote for a NULL reply. If there was a connection: ERROR if the login was refused,
 * otherwise BROKEN. Without one: the vote of operation_vote_unsent.
 */
void operation_vote_without_answer(struct operation *operation, struct node *node);

/* Casts ERROR for an error reply, or for a reply that makes no sense. */
void operation_vote_error(struct operation *operation, struct node *node,
                          const struct reply *reply);

/* Returns the detail of a node's vote, or ""; valid as long as the operation. */
const char *operation_detail(const struct operation *operation, uint32_t node);

#endif
