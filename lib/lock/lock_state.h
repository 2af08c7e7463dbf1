/*
 * A lock as data: a handle, and its links to the lists and the line in which it waits for its turn.
 */
#ifndef REDLOCK_LOCK_LOCK_STATE_H
#define REDLOCK_LOCK_LOCK_STATE_H

#include "core/lease.h"
#include "io/loop.h"
#include "round/send.h"
#include "wire/command.h"
#include "wire/key.h"
#include "wire/kind.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Events that wait for the lock's next turn. A mask. */
enum lock_event {
    LOCK_DECIDED = 1,
    LOCK_WOKEN = 2,
    LOCK_LATE_VOTE = 4,
    LOCK_NO_MEMORY = 8,
    LOCK_HURRIED = 16,  /* a node has come up */
    LOCK_REQUEUED = 32, /* the queue of a node may have begun anew */
    LOCK_CONTENDS = 64  /* the lock is the next of its line to contend for the key */
};

struct lock_callback {
    redlock_cb *call; /* NULL: none */
    void *arg;
};

TAILQ_HEAD(lock_list, redlock_lock);

/* Locks with an event to deal with, in the order of the events. */
struct lock_queue {
    struct lock_list list;
    unsigned count;
};

struct redlock_lock {
    struct locks *locks;
    struct lease lease;
    struct timer timer;
    const struct kind *kind;
    struct key *name; /* the semaphore's; NULL: the lock is no permit */
    uint32_t permit;  /* the number of the permit whose key `key` is */
    struct key *key;
    char token[TOKEN_LENGTH + 1];
    uint32_t replicas;        /* the number of a node's replicas that must confirm a grant */
    struct flight *flight;    /* the latest round, whose verdict is waited for while it is open */
    struct flight *tried;     /* the failed try that a SETTLE explains, for the report; or NULL */
    unsigned events;          /* mask of enum lock_event */
    struct lock_queue *queue; /* the queue that the lock is in, or NULL */
    bool is_unrenewed;        /* the lock is in locks->unrenewed */
    bool is_closed;           /* closed by its client, and at the end of locks->all */
    bool is_sent;             /* the lock is in locks->sent */
    bool is_waiter;           /* the lock is in locks->waiters */
    bool is_gated;            /* the lock is behind the gate of its line */
    bool is_parting;          /* released, and to be handed over in the lock's next turn */
    struct line *line;        /* the line that the lock is in, or NULL */
    uint64_t ticket;          /* the request's, for a place in line; 0: none drawn yet */
    bool may_be_placed;       /* an ask for a place under the token may have been heard */
    bool is_makeshift;        /* the ticket is by our own wall clock */
    uint64_t placed;          /* the ticket under which the token has places; 0: it has none */
    TAILQ_ENTRY(redlock_lock) all_link;
    TAILQ_ENTRY(redlock_lock) ready_link;
    TAILQ_ENTRY(redlock_lock) sent_link;
    TAILQ_ENTRY(redlock_lock) unrenewed_link;
    LIST_ENTRY(redlock_lock) waiter_link;
    TAILQ_ENTRY(redlock_lock) line_link;

    unsigned news; /* mask of enum lease_news that are to be told */
    redlock_status acquired, extended, loss, released;
    struct lock_callback on_acquired, on_extended, on_lost, on_released;
};

#endif
