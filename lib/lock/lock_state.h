/*
 * A lock as data: a handle, and its links to the lists and the line in which it waits for its turn.
 */
#ifndef REDLOCK_LOCK_LOCK_STATE_H
#define REDLOCK_LOCK_LOCK_STATE_H

#include "base/wheel.h"
#include "core/lease.h"
#include "round/send.h"
#include "wire/key.h"
#include "wire/kind.h"
#include "wire/token.h"

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
    LOCK_RENEW_NOW = 16,   /* a node has come up */
    LOCK_ASK_AGAIN = 32,   /* the queue of a node may have begun anew */
    LOCK_KEY_CHANGED = 64, /* the key may have changed at a node */
    LOCK_UNWATCHED = 128,  /* nodes are to watch the key, from now on or again */
    LOCK_LEADING = 256,    /* the lock has become a leader of its cohort */
    LOCK_STARTED = 512     /* the first try may begin */
};

struct lock_callback {
    redlock_cb *call; /* NULL: none */
    void *arg;
};

TAILQ_HEAD(lock_head, redlock_lock);

/* Locks in the order in which they came. */
struct lock_queue {
    struct lock_head list;
    unsigned count;
};

/* The queue that a lock is in. The last three are dealt with in turns, the last of them first. */
enum lock_list {
    LOCK_RESTING,   /* nothing to deal with */
    LOCK_UNRENEWED, /* likewise, and the last renewal failed */
    LOCK_STARTING,  /* likewise, and the first try is held back */
    LOCK_CLOSED,    /* likewise, and closed by the client */
    LOCK_ENDED,     /* while the client closes: handles that may still be asked */
    LOCK_READY,     /* an event or news to deal with */
    LOCK_DUE,       /* a verdict to deal with, whose validity is running out */
    LOCK_OVERDUE,   /* a loss to be told: the validity has ended while others were before it */
    LOCK_LISTS
};

/* The part of a lock that stands in the queue, asks for a permit, or has its key watched. */
struct lock_wait {
    struct key *name;      /* the semaphore's; NULL: the lock is no permit */
    struct watch *watch;   /* of the first of the keys that nodes watch, or NULL */
    struct cohort *cohort; /* the cohort that the lock is in, or NULL */
    uint64_t ticket;       /* the request's, for an entry in the queue; 0: none drawn yet */
    uint64_t entry_ticket; /* the ticket under which the token has entries; 0: it has none */
    TAILQ_ENTRY(redlock_lock) cohort_link;
    LIST_ENTRY(redlock_lock) waiter_link;
    uint32_t permit;    /* the number of the permit whose key the lock's is */
    bool is_waiter;     /* the lock is in locks->waiters */
    bool has_handoff;   /* the holder is to hand the lock over to this one */
    bool is_leader;     /* the lock is a leader of its cohort */
    bool may_be_queued; /* an ask for an entry under the token may have been heard */
    bool is_makeshift;  /* the ticket is by our own wall clock */
};

/*
 * A lock at rest, which is held while no round is under way, is this struct and its key; a client
 * may have a million of them. test/unit/sizes.c holds the size.
 */
struct redlock_lock {
    struct locks *locks;
    struct key *key;
    struct flight *flight; /* the latest round; NULL: none, or it is over, and all is known of it */
    struct lock_wait *wait;   /* NULL: none */
    struct wheel_entry alarm; /* of lease.wake_at */
    struct lease lease;
    TAILQ_ENTRY(redlock_lock) link;
    struct lock_callback on_done;  /* of the acquisition; behind it, of an extension */
    struct lock_callback on_ended; /* of the loss; from the release on, of the release */
    uint32_t granted;              /* mask: without a flight: the votes of the latest round */
    uint32_t unsent;               /* mask: likewise */
    uint32_t request;              /* the number of the request, from 1; behind 2^32 - 1 comes 1 */
    unsigned char token[TOKEN_BYTES];
    uint16_t events;       /* mask of enum lock_event */
    uint8_t notifications; /* mask of enum lease_notification that are to be told */
    int8_t done;           /* redlock_status for on_done */
    int8_t ended;          /* redlock_status for on_ended */
    uint8_t kind;          /* kind_number */
    uint8_t list;          /* enum lock_list */
    bool is_closed : 1;    /* closed by its client */
    bool is_let_go : 1;    /* released by the application */
    bool is_parting : 1;   /* likewise, and to be handed over in the lock's next turn */
    bool is_notified : 1;  /* the end of the release was told */
    bool has_waited : 1;   /* in line, or for the next try */
    bool was_renewed : 1;  /* without a flight: the latest round was a renewal */
};

static inline const struct kind *lock_kind(const redlock_lock *lock) {
    return kind_at(lock->kind);
}

/* Returns the round of a lock's flight, or NULL. */
static inline struct round *lock_round(const redlock_lock *lock) {
    return lock->flight != NULL ? &lock->flight->round : NULL;
}

#endif
