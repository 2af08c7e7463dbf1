/*
 * The locks of a client: each handle, and the lists in which it waits for its turn. A lock's lease
 * (core/lease.h) decides, and lock.c carries the decisions out.
 */
#ifndef REDLOCK_LOCK_LOCKS_H
#define REDLOCK_LOCK_LOCKS_H

#include "base/pool.h"
#include "lock/alarms.h"
#include "lock/cohorts.h"
#include "lock/counts.h"
#include "lock/latest.h"
#include "lock/lock_state.h"
#include "lock/waiters.h"
#include "lock/watches.h"
#include "node/context.h"
#include "round/send.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The longest sentence of redlock_explain. */
#define LOCKS_EXPLANATION_MAX 2048

/*
 * The most locks of a queue that one turn deals with: some milliseconds of work, after which the
 * loop sees to the timers and sockets of the application. The rest waits for the next iteration.
 * A loss is less work, and more urgent.
 */
#define TURN_LOCKS_MAX 1024
#define TURN_OVERDUE_MAX 8192

STAILQ_HEAD(flight_queue, flight);

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
    struct pool waits; /* of struct lock_wait */
    struct lock_queue queues[LOCK_LISTS];
    struct flight_queue sent; /* locks' rounds that are written at the end of this turn */
    struct alarms alarms;
    struct waiters waiters;
    struct watches watches;
    struct cohorts cohorts;
    struct terms_table terms;
    struct latest latest;
    struct locks_back back[REDLOCK_MAX_NODES];
    struct counts counts;
    const redlock_lock *in_turn; /* the lock whose turn it is: not put in `ready`; or NULL */
    bool has_read;               /* the replies that had arrived were read in this turn */
    char explanation[LOCKS_EXPLANATION_MAX];
};

/* Returns false when out of memory; locks_finish is due all the same. */
bool locks_init(struct locks *locks, struct context *context, struct members *members,
                struct rounds *rounds);
void locks_finish(struct locks *locks);

/*
 * Creates a lock from a checked request, which may be known to be like the latest; its lease is not
 * begun. Returns NULL without memory.
 */
redlock_lock *locks_create(struct locks *locks, const redlock_request *request, bool is_like_latest,
                           redlock_cb *on_acquired, void *arg);

/*
 * Ends a handle whose last callback has returned. While the client closes the handle stays valid,
 * until on_closed: a holder does not know that the client gave up the lock by itself.
 */
void locks_end(redlock_lock *lock);

/* Puts a lock in the queue for its next turn, unless it is in one already, or in its turn now. */
void locks_ready(redlock_lock *lock);

/* Raises an event, and puts the lock in the queue for it. */
void locks_raise(redlock_lock *lock, enum lock_event event);

/* Takes a lock out of the queue that it is in, if any. */
void locks_unqueue(redlock_lock *lock);

/* Moves a lock to its place among those that have nothing to deal with. */
void locks_move_home(redlock_lock *lock);

/* Moves a lock that has nothing to deal with by its lease's is_unrenewed. */
static inline void locks_record_unrenewed(redlock_lock *lock) {
    if (lock->list == (lock->lease.is_unrenewed ? LOCK_RESTING : LOCK_UNRENEWED)) {
        locks_move_home(lock);
    }
}

/* Records that a lock's round is written at the end of this turn: turn_sent starts its deadline. */
void locks_record_sent(redlock_lock *lock);

/* Returns whether a handle has not ended. */
bool locks_have_any(const struct locks *locks);

/* Calls `visit` for each lock of an entry, in which it may raise events for any lock. */
void locks_visit(struct locks *locks, enum lock_list list, void (*visit)(redlock_lock *lock));

/* Calls `visit` for each lock that has not ended, as locks_visit does; for some of them twice. */
void locks_visit_all(struct locks *locks, void (*visit)(redlock_lock *lock));

/*
 * Returns a lock that has not been closed by its client, and that no turn deals with; NULL: there
 * is none.
 */
static inline redlock_lock *locks_first_open(const struct locks *locks) {
    redlock_lock *first = TAILQ_FIRST(&locks->queues[LOCK_RESTING].list);
    if (first == NULL) {
        first = TAILQ_FIRST(&locks->queues[LOCK_UNRENEWED].list);
    }
    return first != NULL ? first : TAILQ_FIRST(&locks->queues[LOCK_STARTING].list);
}

/* Marks a lock as closed by its client. */
void locks_record_closed(redlock_lock *lock);

/* Drops the lock's reference to `*flight`, if any, and takes no more of its votes. */
static inline void locks_let_go(struct flight **flight) {
    if (*flight != NULL) {
        (*flight)->listener = FLIGHT_UNATTENDED;
        flight_drop(*flight);
        *flight = NULL;
    }
}

#endif
