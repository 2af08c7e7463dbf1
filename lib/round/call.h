/*
 * The commands of operations: SET, or a call of a script for many locks of a client. Their
 * releases, or renewals, go to a node as one command. Each lock's answer is a vote in its own
 * operation.
 */
#ifndef REDLOCK_ROUND_CALL_H
#define REDLOCK_ROUND_CALL_H

#include "base/pool.h"
#include "io/net.h"
#include "node/eval.h"
#include "round/operation.h"
#include "wire/command.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct call;

/* The owner of a client's calls, and its callback. */
struct call_listener {
    /*
     * Requests that a node is asked again, by a new call, whose only reference goes to the owner.
     * Called from a reply; the owner may send the call at once.
     */
    void (*on_repeat)(void *owner, struct call *call);
    void *owner;
};

/* The position of a call among those of its turn. */
enum call_order {
    CALL_BEFORE_RELEASES, /* asks for entries before the releases, or in one call with them */
    CALL_FIRST,           /* releases and renews */
    CALL_AFTER_RELEASES,  /* asks for entries after the releases, or in one call with them */
    CALL_LAST,            /* takes keys */
    CALL_ORDERS
};

/* The parts that all calls of a client share. */
struct calls {
    struct context *context;
    const struct members *members;
    struct call_listener listener;
    struct pool pool;
};

struct call {
    struct conn_request request;
    struct conn_request wait; /* the WAIT after the call, if replicas must confirm grants */
    struct calls *calls;
    struct eval eval;
    uint32_t nodes;    /* mask: the nodes that the call goes to */
    uint32_t replicas; /* the number of a node's replicas that must confirm a grant */
    enum call_order order;
    uint32_t references; /* number of replies to come, plus other holders of the call */
    unsigned releases;   /* QUEUE: number of operations, the last ones, that are releases */
    unsigned passes;     /* PASS: number of calls before it, each of which it continues */
    unsigned count;      /* number of operations */
    unsigned key_count;  /* number of keys of all operations */
    unsigned reads;      /* number of keys that the server may have to read for all operations */
    struct operation *operations[SCRIPT_MAX_KEYS];
    struct script_call arguments;
    STAILQ_ENTRY(call) link;
};

void calls_init(struct calls *calls, struct context *context, const struct members *members,
                struct call_listener listener);
void calls_finish(struct calls *calls);

/*
 * Sends the SET of an operation to `nodes`, a mask, now. Nodes that cannot be sent it vote
 * UNREACHABLE or REFUSED inside this function.
 */
void call_send_set(struct operation *operation, uint32_t nodes);

/*
 * Creates a call of `script`, without locks yet, for `nodes`, which are members. Returns the call
 * with one reference, the caller's, or NULL when out of memory.
 */
struct call *call_create(struct calls *calls, enum script script, uint32_t nodes, uint32_t replicas,
                         enum call_order order);

/* Adds an operation; a call takes at most SCRIPT_MAX_KEYS. A call of QUEUE gets releases last. */
void call_add(struct call *call, struct operation *operation);

/*
 * Returns whether a call of QUEUE may carry the releases of another call, of one key each and to
 * the same nodes: one command instead of two.
 */
bool call_may_carry(const struct call *call, const struct call *releases);

/* Adds the releases of another call to a call of QUEUE, and drops that other call. */
void call_carry(struct call *call, struct call *releases);

/*
 * Sends the call, once, without the tries that were given up since they were added. Nodes that
 * cannot be sent the call vote UNREACHABLE or REFUSED inside call_send.
 */
void call_send(struct call *call);

/* Drops a reference, the last of which frees the call. */
void call_drop(struct call *call);

/* Returns whether the call may take keys: such a call is sent after the releases of its turn. */
static inline bool call_takes(const struct call *call) {
    return script_takes(call->eval.script);
}

#endif
