/*
 * The locks of a client: each handle, and the lists in which it waits for its turn. A lock's lease
 * (core/lease.h) decides, and lock.c carries the decisions out.
 */
#ifndef REDLOCK_LOCK_LOCKS_H
#define REDLOCK_LOCK_LOCKS_H

#include "base/pool.h"
#include "lock/lines.h"
#include "lock/lock_state.h"
#include "lock/waiters.h"
#include "node/context.h"
#include "round/send.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The longest sentence of redlock_explain. */
#define LOCKS_EXPLANATION_MAX 2048

/* The keys that were pushed to nobody, and given back to their node, in the second from `since`. */
struct locks_back {
    uint64_t since;
    uint32_t count;
};

struct locks {
    struct context *context;
    struct members *members;
    struct rounds *rounds;
    struct pool pool;
    struct lock_list all;       /* handles that have not ended */
    struct lock_list ended;     /* while the client closes: handles that may still be asked */
    struct lock_list sent;      /* locks whose round is written at the end of this turn */
    struct lock_queue decided;  /* locks with a verdict, whose validity is running out */
    struct lock_queue ready;    /* locks with any other event, or news, to deal with */
    struct lock_list unrenewed; /* locks whose last renewal failed */
    struct waiters waiters;
    struct lines lines;
    struct locks_back back[REDLOCK_MAX_NODES];
    bool has_read; /* the replies that had arrived were read in this turn */
    char explanation[LOCKS_EXPLANATION_MAX];
};

void locks_init(struct locks *locks, struct context *context, struct members *members,
                struct rounds *rounds);
void locks_finish(struct locks *locks);

/* Creates a lock from a checked request; its lease is not begun. Returns NULL without memory. */
redlock_lock *locks_create(struct locks *locks, const redlock_request *request,
                           redlock_cb *on_acquired, void *arg);

/*
 * Ends a handle whose last callback has returned. While the client closes the handle stays valid,
 * until on_closed: a holder does not know that the client gave up the lock by itself.
 */
void locks_end(redlock_lock *lock);

/* Puts a lock in the queue for its next turn, unless it is in one already. */
void locks_ready(redlock_lock *lock);

/* Raises an event, and puts the lock in the queue for it. */
void locks_raise(redlock_lock *lock, enum lock_event event);

/* Takes a lock out of the queue that it is in, if any. */
void locks_unqueue(redlock_lock *lock);

/* Puts a lock in locks->unrenewed, or takes it out, by its lease's is_unrenewed. */
void locks_note_unrenewed(redlock_lock *lock);

/* Notes that a lock's round is written at the end of this turn: turn_sent starts its deadline. */
void locks_note_sent(redlock_lock *lock);

/* Returns the first lock that has not been closed by its client; NULL: there is none. */
static inline redlock_lock *locks_first_open(const struct locks *locks) {
    redlock_lock *first = TAILQ_FIRST(&locks->all);
    return first != NULL && !first->is_closed ? first : NULL;
}

/* Marks a lock as closed by its client. */
void locks_note_closed(redlock_lock *lock);

/* Drops the lock's reference to `*flight`, if any, and takes no more of its votes. */
static inline void locks_let_go(struct flight **flight) {
    if (*flight != NULL) {
        (*flight)->listener = FLIGHT_UNATTENDED;
        flight_drop(*flight);
        *flight = NULL;
    }
}

#endif
