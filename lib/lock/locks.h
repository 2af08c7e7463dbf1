/*
 * The locks of a client: the handles, and the lists that they are in. A lock's lease (core/lease.h)
 * decides, and lock.c carries the decisions out.
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
#include "round/rounds.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The longest sentence of redlock_explain. */
#define LOCKS_EXPLANATION_MAX 2048

/*
 * The most locks of one queue that a turn handles: some milliseconds of work, after which the loop
 * serves the application's timers and sockets. The rest waits for the next iteration. Losses take
 * less work and are more urgent.
 */
#define TURN_LOCKS_MAX 1024
#define TURN_OVERDUE_MAX 8192

/* The most requests whose first try is sent between two turns. */
#define TURN_ADMITTED_MAX 2048

STAILQ_HEAD(operation_queue, operation);

/* A count of the pushed keys that had no waiter and went back, in the second from `since` on. */
struct locks_back {
    uint64_t since;
    uint32_t count;
};

/* The room for first tries until the next turn: commands are sent at the ends of turns. */
struct admission {
    bool is_known;
    bool is_open;      /* the nodes had room for some */
    uint32_t requests; /* that may still be sent */
    size_t bytes;      /* that their commands may have together */
};

struct locks {
    struct context *context;
    struct members *members;
    struct rounds *rounds;
    struct pool pool;
    struct pool waits;  /* of struct lock_wait */
    uint32_t listeners; /* number of locks that need the nodes' channels (locks_listen) */
    struct lock_queue queues[LOCK_LISTS];
    struct operation_queue sent; /* rounds of locks that are written at the end of this turn */
    struct alarms alarms;
    struct waiters waiters;
    struct watches watches;
    struct cohorts cohorts;
    struct terms_table terms;
    struct latest latest;
    struct locks_back back[REDLOCK_MAX_NODES]; /* by node */
    struct counts counts;
    const redlock_lock *in_turn; /* the lock whose turn it is, which locks_ready skips; or NULL */
    bool has_read;               /* all sockets were read in this turn */
    struct admission admission;
    char explanation[LOCKS_EXPLANATION_MAX];
};

/* Begins without locks. */
void locks_init(struct locks *locks, struct context *context, struct members *members,
                struct rounds *rounds);
void locks_finish(struct locks *locks);

/*
 * Creates a lock from a checked request, and does not begin its lease. `is_like_latest` is the
 * result of latest_is_like. Returns NULL when out of memory.
 */
redlock_lock *locks_create(struct locks *locks, const redlock_request *request, bool is_like_latest,
                           redlock_cb *on_acquired, void *arg);

/*
 * Ends a handle whose last callback has returned, and frees it. While the client closes, the handle
 * stays valid until on_closed: its holder may not know that the client gave up the lock.
 */
void locks_end(redlock_lock *lock);

/* Looks at the nodes' room for first tries. */
void locks_look_for_room(struct locks *locks);

/*
 * Returns whether the first try of one more request may be sent before the next turn. If not, the
 * lock waits in LOCK_STARTING, in the order of the requests.
 */
static inline bool locks_have_room(struct locks *locks) {
    if (!locks->admission.is_known) {
        locks_look_for_room(locks);
    }
    return locks->admission.requests > 0 && locks->admission.bytes > 0;
}

/* An estimate of the length of a command beyond its key. */
#define ADMITTED_BYTES 256

/* Counts a request whose first try is sent, for a key of this length. */
static inline void locks_admit(struct locks *locks, size_t key_length) {
    struct admission *admission = &locks->admission;
    size_t bytes = key_length + ADMITTED_BYTES;
    admission->requests--;
    admission->bytes -= bytes < admission->bytes ? bytes : admission->bytes;
}

/* Queues a lock for its next turn, unless it is queued already, or in its turn now. */
void locks_ready(redlock_lock *lock);

/* Raises an event, and queues the lock to handle it. */
void locks_raise(redlock_lock *lock, enum lock_event event);

/* Takes a lock out of the turns' queue that it is in, if any. */
void locks_unqueue(redlock_lock *lock);

/* Moves a lock to the list, of locks with nothing to handle, that its state belongs to. */
void locks_move_home(redlock_lock *lock);

/* Makes the nodes keep channels, from now until the lock is freed. */
void locks_listen(redlock_lock *lock);

/* Makes the lock handle that its key may have changed at `node`, a mask (core/change.h). */
void locks_key_changed(redlock_lock *lock, uint32_t node);

/* Moves a held lock with nothing to handle to the list that its lease calls for now. */
void locks_refile(redlock_lock *lock);

/* Returns, of `nodes`, a mask, those for whose room the top-ups of locks wait. */
uint32_t locks_awaited(const struct locks *locks, uint32_t nodes);

/* Records that a lock's round is written at the end of this turn: turn_sent sets its deadline. */
void locks_record_sent(redlock_lock *lock);

/* Returns whether any handle has not ended. */
bool locks_have_any(const struct locks *locks);

/* Calls `visit` for each lock of a list; `visit` may raise events for any lock. */
void locks_visit(struct locks *locks, enum lock_list list, void (*visit)(redlock_lock *lock));

/* Calls `visit` for each lock that has not ended, as locks_visit does; for some locks twice. */
void locks_visit_all(struct locks *locks, void (*visit)(redlock_lock *lock));

/* Returns a lock that the client has not closed, and that no queue of the turns holds, or NULL. */
static inline redlock_lock *locks_first_open(const struct locks *locks) {
    redlock_lock *first = NULL;
    for (unsigned list = 0; list <= LOCK_STARTING && first == NULL; list++) {
        first = TAILQ_FIRST(&locks->queues[list].list);
    }
    return first;
}

/* Marks a lock as closed by its client. */
void locks_record_closed(redlock_lock *lock);

/* Drops a lock's reference to `*operation`, if any; later votes are not reported to the lock. */
static inline void locks_let_go(struct operation **operation) {
    if (*operation != NULL) {
        (*operation)->listener = OPERATION_UNATTENDED;
        operation_drop(*operation);
        *operation = NULL;
    }
}

#endif
