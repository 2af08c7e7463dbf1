/*
 * The happy path: a turn handles overdue losses first, then locks with a verdict, whose validity is
 * running out, then all others; then it sends top-ups and requests that wait for room. All queues
 * are handled in slices, so that neither a crowd of locks nor an application that answers every
 * callback with a call keeps the loop from other work.
 *
 * A closing client closes its locks in slices, too. An event that concerns many locks is passed on
 * to each of them: a loop that was away (turn_wake), a node whose votes count again
 * (turn_renew_now), nodes that are known now (turn_start), a server that can push now
 * (turn_ask_again), a change of the nodes (turn_move).
 */
#include "lock/turn.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "lock/lock.h"

/* Closes open locks. Holders are notified before the releases go, at the turn's end. */
static void close_some(const struct locks *locks, unsigned most) {
    redlock_lock *lock;
    for (; most > 0 && (lock = locks_first_open(locks)) != NULL; most--) {
        lock_turn(lock);
    }
}

/* Returns the number of a queue's locks that this turn handles. */
static unsigned due_in(const struct lock_queue *queue, unsigned most) {
    return queue->count < most ? queue->count : most;
}

static void deal_with(const struct lock_queue *queue, unsigned count) {
    for (; count > 0 && queue->count > 0; count--) {
        redlock_lock *lock = TAILQ_FIRST(&queue->list);
        locks_unqueue(lock);
        lock_turn(lock);
    }
}

/*
 * Sends the top-ups that wait for a node, in their order, while it has room. If the node takes no
 * commands now, they wait no longer: the next renewals find what it lacks.
 */
static void top_up_at(struct locks *locks, const struct node *node, unsigned most) {
    struct lock_queue *lacking = &locks->queues[LOCK_LACKING + node->index];
    for (; most > 0 && lacking->count > 0 && node_admits(node); most--) {
        lock_has_room(TAILQ_FIRST(&lacking->list), node_bit(node));
    }
}

/* Sends a slice of the top-ups that wait, as far as their nodes have room. */
static void top_up(struct locks *locks) {
    uint32_t all = members_all(locks->members);
    uint32_t rest = locks_awaited(locks, all);
    struct node *node;
    /* Looked at first, so that requests that wait get a part of the room that is free now. */
    if (rest != 0 && !locks->admission.is_known) {
        locks_look_for_room(locks);
    }
    while ((node = members_take(locks->members, &rest)) != NULL) {
        top_up_at(locks, node, TURN_LOCKS_MAX / (unsigned)__builtin_popcount(all));
    }
}

/* Returns whether top-ups wait for nodes that have room: they were more than a slice. */
static bool may_top_up(const struct locks *locks) {
    uint32_t awaited = locks_awaited(locks, members_all(locks->members));
    return awaited != members_without_room(locks->members, awaited);
}

/* Begins the first tries of requests that wait, in their order, as far as the nodes have room. */
static void admit(struct locks *locks) {
    struct lock_head *waiting = &locks->queues[LOCK_STARTING].list;
    while (locks->members->are_known && !TAILQ_EMPTY(waiting) && locks_have_room(locks)) {
        redlock_lock *lock = TAILQ_FIRST(waiting);
        locks_admit(locks, lock->key->length);
        lock->is_admitted = true;
        locks_raise(lock, LOCK_STARTED);
        locks_unqueue(lock);
        lock_turn(lock);
    }
}

void turn_locks(struct locks *locks) {
    const struct lock_queue *overdue = &locks->queues[LOCK_OVERDUE];
    const struct lock_queue *decided = &locks->queues[LOCK_DUE];
    const struct lock_queue *ready = &locks->queues[LOCK_READY];
    /* Counted first: locks that this turn's callbacks queue wait for the next turn. */
    unsigned losses = due_in(overdue, TURN_OVERDUE_MAX);
    unsigned verdicts = due_in(decided, TURN_LOCKS_MAX);
    unsigned others = due_in(ready, TURN_LOCKS_MAX);
    locks->has_read = false;
    locks->admission = (struct admission){0};
    if (locks->context->is_closing) {
        close_some(locks, TURN_LOCKS_MAX - others); /* ready locks that are open close below */
    }
    deal_with(overdue, losses); /* first, since another client may hold these keys already */
    deal_with(decided, verdicts);
    deal_with(ready, others);
    if (!locks->context->is_closing) {
        top_up(locks);
        admit(locks);
    }
}

bool turn_has_more(const struct locks *locks) {
    return locks->queues[LOCK_OVERDUE].count > 0 || locks->queues[LOCK_DUE].count > 0 ||
           locks->queues[LOCK_READY].count > 0 ||
           (locks->admission.is_open && locks->queues[LOCK_STARTING].count > 0) ||
           (locks->context->is_closing ? locks_first_open(locks) != NULL : may_top_up(locks));
}

void turn_sent(struct locks *locks) {
    uint64_t now = STAILQ_EMPTY(&locks->sent) ? 0 : clock_now();
    while (!STAILQ_EMPTY(&locks->sent)) {
        struct operation *operation = STAILQ_FIRST(&locks->sent);
        STAILQ_REMOVE_HEAD(&locks->sent, sent_link);
        /* Redlock: validity counts from the round's start, the deadline only from here on. */
        if (operation->listener.on_vote != NULL) { /* still the latest round of its lock */
            redlock_lock *lock = operation->listener.owner;
            lease_sent(&lock->lease, &operation->round, now);
            lock_set_alarm(lock);
        }
        operation_drop(operation);
    }
}

static void wake(redlock_lock *lock) {
    /* After a pause, timers may be late: each lock looks at the time itself. */
    if (lock->lease.wake_at != NANOS_NEVER) {
        locks_raise(lock, LOCK_WOKEN);
    }
}

void turn_wake(struct locks *locks) {
    locks_visit_all(locks, wake);
}

static void renew_now(redlock_lock *lock) {
    if (lock->lease.is_unrenewed) {
        locks_raise(lock, LOCK_RENEW_NOW);
    }
}

/*
 * A lock with a failed renewal rests in UNRENEWED, or waits for room, or is queued; an overdue one
 * is past renewal.
 */
void turn_renew_now(struct locks *locks) {
    for (unsigned list = LOCK_LACKING; list < LOCK_RESTING; list++) {
        locks_visit(locks, (enum lock_list)list, renew_now);
    }
    locks_visit(locks, LOCK_UNRENEWED, renew_now);
    locks_visit(locks, LOCK_READY, renew_now);
    locks_visit(locks, LOCK_DUE, renew_now);
}

static void start_lock(redlock_lock *lock) {
    locks_raise(lock, LOCK_STARTED);
}

void turn_start(struct locks *locks) {
    if (!locks->members->are_known) { /* otherwise in order, as the nodes have room (admit) */
        locks_visit(locks, LOCK_STARTING, start_lock);
    }
    context_wake(locks->context);
}

void turn_ask_again(struct locks *locks, uint32_t node) {
    struct waiters *waiters = &locks->waiters;
    for (unsigned i = 0; i < waiters->list_count; i++) {
        redlock_lock *lock;
        LIST_FOREACH(lock, &waiters->lists[i], wait->waiter_link) {
            struct round *round = lock_round(lock);
            if (round != NULL) {
                /* This entry is from before the node could push: ask for it again. */
                round->queued &= ~node;
            }
            locks_raise(lock, LOCK_ASK_AGAIN);
        }
    }
    watches_lapsed(&locks->watches);
}

static void change_members(redlock_lock *lock) {
    struct lease_update update;
    uint64_t now = clock_now();
    /* Node change: held locks are topped up at new nodes, where the next renewal needs them. */
    lease_move(&lock->lease, members_all(lock->locks->members), now, &update);
    lock_carry_out(lock, &update, lock->lease.state, now);
}

void turn_move(struct locks *locks) {
    locks_visit_all(locks, change_members);
}
