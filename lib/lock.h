/* The handle of one lock: carries out what its lease (core/lease.h) decides. */
#ifndef REDLOCK_LOCK_H
#define REDLOCK_LOCK_H

#include "base/pool.h"
#include "context.h"
#include "core/lease.h"
#include "flight.h"
#include "io/loop.h"
#include "key.h"

#include <redlock.h>
#include <stdbool.h>
#include <sys/queue.h>

/* What waits for the lock's next turn. A mask. */
enum lock_event {
    LOCK_DECIDED = 1,
    LOCK_WOKEN = 2,
    LOCK_LATE_VOTE = 4,
    LOCK_NO_MEMORY = 8,
    LOCK_HURRIED = 16 /* a node has come up */
};

/*
 * The most locks of each queue that one turn deals with: some milliseconds of work, after which the
 * loop sees to the timers and sockets of the application. The rest waits for its next iteration.
 */
#define LOCKS_PER_TURN 1024

struct lock_callback {
    redlock_cb *call; /* NULL: nobody wants to know */
    void *arg;
};

TAILQ_HEAD(lock_list, redlock_lock);

/* Locks with something to deal with, in the order in which that came up. */
struct lock_queue {
    struct lock_list list;
    unsigned count;
};

/* The locks of a client. */
struct locks {
    struct context *context;
    struct pool pool;
    struct lock_list all;       /* those whose handle has not ended */
    struct lock_list ended;     /* while the client closes: handles that may still be asked */
    struct lock_list sent;      /* those whose round is written at the end of this turn */
    struct lock_queue decided;  /* those with a verdict: its validity is running out */
    struct lock_queue ready;    /* those with any other event, or news, to deal with */
    struct lock_list unrenewed; /* those whose last renewal failed */
    bool has_read;              /* in this turn: whatever had arrived has been read */
};

struct redlock_lock {
    struct locks *locks;
    struct lease lease;
    struct timer timer;
    struct key *name; /* of a semaphore; NULL: it is a lock of its own */
    uint32_t permit;  /* of which `key` is; of a semaphore */
    struct key *key;
    char token[TOKEN_LENGTH + 1];
    uint32_t replicas;        /* of a node that have to confirm what it grants */
    struct flight *flight;    /* the latest round; its verdict is waited for when it is open */
    struct flight *tried;     /* the failed try that a SETTLE explains, for the report; or NULL */
    unsigned events;          /* mask of enum lock_event */
    struct lock_queue *queue; /* that it is in; or NULL */
    bool is_unrenewed;        /* in locks->unrenewed */
    bool is_closed;           /* by its client: at the end of locks->all */
    TAILQ_ENTRY(redlock_lock) all_link;
    TAILQ_ENTRY(redlock_lock) ready_link;
    bool is_sent; /* in locks->sent */
    TAILQ_ENTRY(redlock_lock) sent_link;
    TAILQ_ENTRY(redlock_lock) unrenewed_link;

    unsigned news; /* mask of enum lease_news that are to be told */
    redlock_status acquired, extended, loss, released;
    struct lock_callback on_acquired, on_extended, on_lost, on_released;
};

void locks_init(struct locks *locks, struct context *context);
void locks_finish(struct locks *locks);

/* A lock that is not under way yet, from a checked request; NULL when out of memory. */
redlock_lock *lock_create(struct locks *locks, const redlock_request *request,
                          redlock_cb *on_acquired, void *arg);

/* Does what the lease, which was in the state `before`, has decided. */
void lock_carry_out(redlock_lock *lock, const struct lease_update *update, enum lease_state before,
                    uint64_t now);

/* redlock_acquire, of a client that is not closing. */
redlock_status locks_acquire(struct locks *locks, const redlock_request *request,
                             redlock_cb *on_acquired, void *arg, redlock_lock **handle);

/*
 * Deals with the locks that are ready, LOCKS_PER_TURN of them at the most. Callbacks of the
 * application are called here and nowhere else. Locks that become ready meanwhile stay so. While
 * the client closes, locks that are not closed yet are, as many.
 */
void locks_turn(struct locks *locks);

/* The loop was away: its timers may have stood still, and locks look at the clock themselves. */
void locks_wake(struct locks *locks);

/* The nodes of the client are others now. */
void locks_move(struct locks *locks);

/* All that was collected has been written: the rounds' deadlines count from now. */
void locks_sent(struct locks *locks);

/* Whether a lock has something to deal with. */
bool locks_are_ready(const struct locks *locks);

/* Renews at once what could not be renewed: a node has come up. */
void locks_hurry(struct locks *locks);

/* Whether the client, which closes, has locks that it has not closed yet. */
bool locks_are_open(const struct locks *locks);

#endif
