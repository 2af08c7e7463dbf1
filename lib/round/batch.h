/*
 * A call of a script for many locks of a client: their releases, or renewals, go to a node as one
 * command. Each lock's answer is a vote in its own round.
 */
#ifndef REDLOCK_ROUND_BATCH_H
#define REDLOCK_ROUND_BATCH_H

#include "base/pool.h"
#include "io/net.h"
#include "node/call.h"
#include "node/context.h"
#include "node/members.h"
#include "round/flight.h"
#include "wire/command.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct batch;

/* The owner of a client's batches, and its callback. */
struct batch_listener {
    /*
     * Requests that a node is asked again, by a new batch, whose only reference goes to the owner.
     * Called from a reply; the owner may send the batch at once.
     */
    void (*on_repeat)(void *owner, struct batch *batch);
    void *owner;
};

/* The position of a call among those of its turn. */
enum batch_order {
    BATCH_BEFORE_RELEASES, /* asks for entries before the releases, or in one call with them */
    BATCH_FIRST,           /* releases and renews */
    BATCH_AFTER_RELEASES,  /* asks for entries after the releases, or in one call with them */
    BATCH_LAST,            /* takes keys */
    BATCH_ORDERS
};

/* The parts that all batches of a client share. */
struct batch_shared {
    struct context *context;
    const struct members *members;
    struct batch_listener listener;
    struct pool pool;
};

struct batch {
    struct conn_request request;
    struct conn_request wait; /* the WAIT after the call, if replicas must confirm grants */
    struct batch_shared *shared;
    struct call call;
    uint32_t nodes;    /* mask: the nodes that the call goes to */
    uint32_t replicas; /* the number of a node's replicas that must confirm a grant */
    enum batch_order order;
    uint32_t references; /* number of replies to come, plus other holders of the batch */
    unsigned releases;   /* QUEUE: number of flights, the last ones, that are releases */
    unsigned passes;     /* PASS: number of calls before it, each of which it continues */
    unsigned count;      /* number of flights */
    unsigned key_count;  /* number of keys of all flights */
    unsigned reads;      /* number of keys that the server may have to read for all flights */
    struct flight *flights[SCRIPT_MAX_KEYS];
    struct script_call arguments;
    STAILQ_ENTRY(batch) link;
};

void batch_shared_init(struct batch_shared *shared, struct context *context,
                       const struct members *members, struct batch_listener listener);
void batch_shared_finish(struct batch_shared *shared);

/*
 * Creates a call of `script`, without locks yet, for `nodes`, which are members. Returns the batch
 * with one reference, the caller's, or NULL when out of memory.
 */
struct batch *batch_create(struct batch_shared *shared, enum script script, uint32_t nodes,
                           uint32_t replicas, enum batch_order order);

/* Adds a flight; a batch takes at most SCRIPT_MAX_KEYS. A call of QUEUE gets its releases last. */
void batch_add(struct batch *batch, struct flight *flight);

/*
 * Returns whether a call of QUEUE may carry the releases of another call, of one key each and to
 * the same nodes: one command instead of two.
 */
bool batch_may_carry(const struct batch *batch, const struct batch *releases);

/* Adds the releases of another call to a call of QUEUE, and drops that other call. */
void batch_carry(struct batch *batch, struct batch *releases);

/*
 * Sends the call, once, without the tries that were given up since they were added. Nodes that
 * cannot be sent the call vote UNREACHABLE or REFUSED inside batch_send.
 */
void batch_send(struct batch *batch);

/* Drops a reference, the last of which frees the batch. */
void batch_drop(struct batch *batch);

/* Returns whether the call may take keys: such a call is sent after the releases of its turn. */
static inline bool batch_takes(const struct batch *batch) {
    return script_takes(batch->call.script);
}

#endif
