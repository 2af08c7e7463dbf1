/*
 * The happy path: locks with a verdict come first, since validity is running out; then all others.
 * Both queues are dealt with in slices, so that neither a crowd of locks nor an application that
 * answers every callback with a call keeps the loop from other work.
 *
 * A closing client closes its locks in slices, too. An event that concerns many locks at once is
 * passed on to each of them: a loop that was away (turn_wake), a node that has come up
 * (turn_hurry), a change of the nodes (turn_move).
 */
#include "lock/turn.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "lock/lock.h"

/* Closes a slice of the locks. Each holder is told before the release leaves, at the turn's end. */
static void close_some(const struct locks *locks) {
    redlock_lock *lock;
    for (unsigned i = 0; i < TURN_LOCKS_MAX && (lock = locks_first_open(locks)) != NULL; i++) {
        lock_turn(lock);
    }
}

/* Returns the number of a queue's locks that this turn deals with. */
static unsigned due_in(const struct lock_queue *queue) {
    return queue->count < TURN_LOCKS_MAX ? queue->count : TURN_LOCKS_MAX;
}

static void deal_with(const struct lock_queue *queue, unsigned count) {
    for (; count > 0 && queue->count > 0; count--) {
        redlock_lock *lock = TAILQ_FIRST(&queue->list);
        locks_unqueue(lock);
        lock_turn(lock);
    }
}

void turn_locks(struct locks *locks) {
    unsigned verdicts = due_in(&locks->decided);
    unsigned others = due_in(&locks->ready);
    locks->has_read = false;
    if (locks->context->is_closing) {
        close_some(locks);
    }
    deal_with(&locks->decided, verdicts);
    deal_with(&locks->ready, others);
}

bool turn_has_more(const struct locks *locks) {
    return locks->decided.count > 0 || locks->ready.count > 0 ||
           (locks->context->is_closing && locks_first_open(locks) != NULL);
}

void turn_sent(struct locks *locks) {
    uint64_t now = TAILQ_EMPTY(&locks->sent) ? 0 : clock_now();
    while (!TAILQ_EMPTY(&locks->sent)) {
        redlock_lock *lock = TAILQ_FIRST(&locks->sent);
        TAILQ_REMOVE(&locks->sent, lock, sent_link);
        lock->is_sent = false;
        lease_sent(&lock->lease, now);
        lock_set_timer(lock);
    }
}

void turn_wake(struct locks *locks) {
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->all, all_link) {
        if (lock->lease.wake_at != NANOS_NEVER) {
            locks_raise(lock, LOCK_WOKEN);
        }
    }
}

void turn_hurry(struct locks *locks) {
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->unrenewed, unrenewed_link) {
        locks_raise(lock, LOCK_HURRIED);
    }
}

void turn_requeue(struct locks *locks) {
    struct waiters *waiters = &locks->waiters;
    for (unsigned i = 0; i < waiters->list_count; i++) {
        redlock_lock *lock;
        LIST_FOREACH(lock, &waiters->lists[i], waiter_link) {
            locks_raise(lock, LOCK_REQUEUED);
        }
    }
}

void turn_move(struct locks *locks) {
    uint32_t members = members_all(locks->members);
    redlock_lock *lock;
    TAILQ_FOREACH(lock, &locks->all, all_link) {
        struct lease_update update;
        uint64_t now = clock_now();
        lease_move(&lock->lease, members, now, &update);
        lock_carry_out(lock, &update, lock->lease.state, now);
    }
}
