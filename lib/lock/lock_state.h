/*
 * A lock as data: a handle, and its links to the client's lists and to its cohort.
 */
#ifndef REDLOCK_LOCK_LOCK_STATE_H
#define REDLOCK_LOCK_LOCK_STATE_H

#include "base/wheel.h"
#include "core/lease.h"
#include "round/rounds.h"
#include "wire/key.h"
#include "wire/kind.h"
#include "wire/token.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Events that await the lock's next turn: a mask. */
enum lock_event {
    LOCK_DECIDED = 1,      /* the latest round has a verdict */
    LOCK_WOKEN = 2,        /* the alarm fired */
    LOCK_LATE_VOTE = 4,    /* a vote after the verdict, or a push, may change what is known */
    LOCK_NO_MEMORY = 8,    /* a round could not be sent */
    LOCK_RENEW_NOW = 16,   /* a node's votes count again */
    LOCK_ASK_AGAIN = 32,   /* a server can push from now on: its entries must be asked for again */
    LOCK_KEY_CHANGED = 64, /* the key may have changed at a node */
    LOCK_UNWATCHED = 128,  /* nodes must be asked, for the first time or again, to watch the key */
    LOCK_LEADING = 256,    /* the lock has become a leader of its cohort */
    LOCK_STARTED = 512     /* the first try may begin */
};

struct lock_callback {
    redlock_cb *call; /* NULL: none */
    void *arg;
};

TAILQ_HEAD(lock_head, redlock_lock);

/* Locks in order of arrival. */
struct lock_queue {
    struct lock_head list;
    unsigned count;
};

/* The list that a lock is in. Turns handle the locks of the last 3, those of the last one first. */
enum lock_list {
    LOCK_LACKING, /* nothing to handle; a top-up waits for room at node 0. The lists of the other
                     nodes follow */
    LOCK_RESTING = LOCK_LACKING + REDLOCK_MAX_NODES, /* nothing to handle */
    LOCK_UNRENEWED, /* nothing to handle; the last renewal failed */
    LOCK_STARTING,  /* nothing to handle; the first try is held back */
    LOCK_CLOSED,    /* nothing to handle; closed by the client */
    LOCK_ENDED,     /* ended handles that the application may still use, while the client closes */
    LOCK_READY,     /* an event or a notification to handle */
    LOCK_DUE,       /* a verdict to handle, whose validity is running out */
    LOCK_OVERDUE,   /* a loss to report: the validity ended while the lock was in another queue */
    LOCK_LISTS
};

/* The part of a lock that only wait queues, permits and watched keys need. */
struct lock_wait {
    struct key *name;      /* the semaphore's name; NULL: the lock is no permit */
    struct watch *watch;   /* the lock's watches, linked by `next`; NULL: none */
    struct cohort *cohort; /* the lock's cohort, or NULL */
    uint64_t ticket;       /* the request's ticket for the wait queue; 0: not drawn yet */
    uint64_t entry_ticket; /* the ticket of the token's queue entries; 0: no entries */
    TAILQ_ENTRY(redlock_lock) cohort_link;
    LIST_ENTRY(redlock_lock) waiter_link;
    uint32_t permit;     /* the number of the permit that `key` belongs to */
    bool is_waiter;      /* the lock is in locks->waiters */
    bool has_handoff;    /* a hand-off from the holder is granted to this lock */
    bool is_leader;      /* the lock is a leader of its cohort */
    bool may_be_queued;  /* a QUEUE before the latest round may have left an entry for the token */
    bool needs_channels; /* counted in locks->listeners */
    bool is_makeshift;   /* the ticket comes from our own wall clock, not the masters' */
};

/*
 * A lock at rest (held, no round under way) is this struct and its key. A client may have a million
 * of them: test/unit/sizes.c bounds the size.
 */
struct redlock_lock {
    struct locks *locks;
    struct key *key;
    struct operation
        *operation;         /* the latest round; NULL: none, or over and kept as the masks below */
    struct lock_wait *wait; /* NULL: none */
    struct wheel_entry alarm; /* the alarm for lease.wake_at */
    struct lease lease;
    TAILQ_ENTRY(redlock_lock) link;
    struct lock_callback on_done;  /* for the acquisition; later, for an extension */
    struct lock_callback on_ended; /* for the loss; once release is called, for the release */
    uint32_t granted; /* mask, if operation is NULL: nodes that granted in the latest round */
    uint32_t unsent;  /* mask, if operation is NULL: nodes that the latest round was not sent to */
    uint32_t request; /* the request's number: starts at 1 and wraps from 2^32 - 1 to 1 */
    unsigned char token[TOKEN_BYTES];
    uint16_t events;       /* mask of enum lock_event */
    uint8_t notifications; /* mask of enum lease_notification: not delivered yet */
    int8_t done;           /* redlock_status for on_done */
    int8_t ended;          /* redlock_status for on_ended */
    uint8_t kind;          /* kind_number */
    uint8_t list;          /* enum lock_list */
    bool is_admitted : 1;  /* the first try may be sent (turn.c, admit) */
    bool is_closed : 1;    /* closed by its client */
    bool is_let_go : 1;    /* released by the application */
    bool is_parting : 1;   /* released, and due for handover in the lock's next turn */
    bool is_notified : 1;  /* the end of the release was reported */
    bool has_waited : 1;   /* the request waited, in the queue or for its next try */
    bool was_renewed : 1;  /* if operation is NULL: the latest round was a renewal */
};

static inline const struct kind *lock_kind(const redlock_lock *lock) {
    return kind_at(lock->kind);
}

/* Returns the lock's latest round, or NULL. */
static inline struct round *lock_round(const redlock_lock *lock) {
    return lock->operation != NULL ? &lock->operation->round : NULL;
}

#endif
