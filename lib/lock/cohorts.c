/*
 * The happy path: cohorts_join makes the first request of a cohort its leader; later ones wait.
 * cohorts_acquired makes the leader the holder, and grants hand-offs to the first waiters.
 * cohorts_hand_over makes the next of these the holder. cohorts_leave makes room for a leader.
 *
 * What goes wrong: a holder that leaves without a handover cancels the hand-offs that are left, and
 * the first waiter leads. Without memory for a cohort, a request asks the nodes by itself. A cohort
 * lives as long as any lock is in it.
 */
#include "lock/cohorts.h"

#include "lock/lock_state.h"
#include "node/context.h"

/* The most leaders of a cohort of readers, which nodes let in together. */
#define READERS 64

struct cohort {
    LIST_ENTRY(cohort) link;
    struct cohorts *cohorts;
    redlock_lock *holder; /* NULL where a lock cannot be handed over */
    struct lock_head leaders;
    struct lock_head waiting;
    unsigned leader_count;
    unsigned waiting_count;
    unsigned handoffs; /* number of hand-offs that are left, for the first of `waiting` */
};

static const struct pool_kind cohort_kind = {.size = sizeof(struct cohort), .max_spares = 256};

void cohorts_init(struct cohorts *cohorts, struct context *context) {
    cohorts->context = context;
    pool_init(&cohorts->pool, &context->allocator, &cohort_kind, NULL);
    for (unsigned i = 0; i < COHORTS_LISTS; i++) {
        LIST_INIT(&cohorts->lists[i]);
    }
}

void cohorts_finish(struct cohorts *cohorts) {
    pool_finish(&cohorts->pool);
}

/* ---- cohorts ---- */

bool cohorts_can_hand_over(const redlock_lock *lock) {
    /* Not a permit or a share, of which several are held at once, nor a key that stays. */
    return (lock_kind(lock)->features & (KIND_PERMIT | KIND_READER)) == 0 &&
           lock->lease.terms->min_hold == 0;
}

/* Returns the name that a lock waits for: the semaphore's, not that of one of its permits. */
static const struct key *name_of(const redlock_lock *lock) {
    return lock->wait->name != NULL ? lock->wait->name : lock->key;
}

/* Returns whether two requests belong to the same cohort. */
static bool is_alike(const redlock_lock *one, const redlock_lock *other) {
    /* A handover sends nothing, so the next holder keeps the delay that the nodes know. */
    return one->kind == other->kind && cohorts_can_hand_over(one) == cohorts_can_hand_over(other) &&
           one->lease.terms->lock_delay == other->lease.terms->lock_delay &&
           key_equals(name_of(one), name_of(other));
}

/*
 * Returns the most leaders of a cohort. The number is small, because each leader of a client that
 * hangs delays the waiters further back by a reservation. A semaphore has two for each permit: one
 * that may get it now, and one that is in the queue when it is released.
 */
static unsigned most_leaders(const redlock_lock *lock) {
    unsigned features = lock_kind(lock)->features;
    /* An exclusive lock has one holder at a time, so one leader is enough. */
    return features & KIND_PERMIT   ? 2 * lock->lease.terms->permits
           : features & KIND_READER ? READERS
                                    : 1;
}

/* Returns the cohort of a lock, or NULL. */
static struct cohort *cohort_of(const redlock_lock *lock) {
    return lock->wait != NULL ? lock->wait->cohort : NULL;
}

/* Returns any lock of a cohort: is_alike gives the same result for all. */
static const redlock_lock *member_of(const struct cohort *cohort) {
    return cohort->holder != NULL     ? cohort->holder
           : cohort->leader_count > 0 ? TAILQ_FIRST(&cohort->leaders)
                                      : TAILQ_FIRST(&cohort->waiting);
}

/* Returns the cohort for a request, which is created if need be; NULL when out of memory. */
static struct cohort *find(struct cohorts *cohorts, const redlock_lock *lock) {
    struct cohort_list *list = &cohorts->lists[name_of(lock)->hash & (COHORTS_LISTS - 1)];
    struct cohort *cohort;
    LIST_FOREACH(cohort, list, link) {
        if (is_alike(member_of(cohort), lock)) {
            return cohort;
        }
    }
    cohort = pool_take(&cohorts->pool);
    if (cohort != NULL) {
        *cohort = (struct cohort){.cohorts = cohorts};
        TAILQ_INIT(&cohort->leaders);
        TAILQ_INIT(&cohort->waiting);
        LIST_INSERT_HEAD(list, cohort, link);
    }
    return cohort;
}

/* Frees a cohort that no lock is in. */
static void drop_if_empty(struct cohort *cohort) {
    /* No waiter is left alone: cohorts_leave promotes one before this is called. */
    if (cohort->holder == NULL && cohort->leader_count == 0 && cohort->waiting_count == 0) {
        LIST_REMOVE(cohort, link);
        pool_put(&cohort->cohorts->pool, cohort);
    }
}

/* Removes a waiter. */
static void take_out(struct cohort *cohort, redlock_lock *lock) {
    TAILQ_REMOVE(&cohort->waiting, lock, wait->cohort_link);
    cohort->waiting_count--;
    cohort->handoffs -= lock->wait->has_handoff; /* a waiter that leaves takes its own along */
    lock->wait->has_handoff = false;
}

static void add_leader(struct cohort *cohort, redlock_lock *lock) {
    TAILQ_INSERT_TAIL(&cohort->leaders, lock, wait->cohort_link);
    cohort->leader_count++;
    lock->wait->is_leader = true;
}

static void remove_leader(struct cohort *cohort, redlock_lock *lock) {
    TAILQ_REMOVE(&cohort->leaders, lock, wait->cohort_link);
    cohort->leader_count--;
    lock->wait->is_leader = false;
}

/* Cancels the hand-offs that are left. */
static void cancel_handoffs(struct cohort *cohort) {
    redlock_lock *lock = TAILQ_FIRST(&cohort->waiting);
    for (; cohort->handoffs > 0; cohort->handoffs--) {
        lock->wait->has_handoff = false;
        lock = TAILQ_NEXT(lock, wait->cohort_link);
    }
}

/* Grants hand-offs to the first waiters, until `most` are granted. */
static void grant_handoffs(struct cohort *cohort, unsigned most) {
    redlock_lock *lock = TAILQ_FIRST(&cohort->waiting);
    for (; lock != NULL && cohort->handoffs < most; cohort->handoffs++) {
        lock->wait->has_handoff = true;
        lock = TAILQ_NEXT(lock, wait->cohort_link);
    }
}

/* Returns whether one more lock may lead: none while there is a holder, which hands over first. */
static bool has_room(const struct cohort *cohort, const redlock_lock *lock) {
    return cohort->holder == NULL && cohort->leader_count < most_leaders(lock);
}

/* Makes the first waiter a leader, if one more may lead. Returns it, or NULL. */
static redlock_lock *promote(struct cohort *cohort) {
    redlock_lock *first = TAILQ_FIRST(&cohort->waiting);
    if (first == NULL || !has_room(cohort, first)) {
        return NULL;
    }
    take_out(cohort, first);
    add_leader(cohort, first);
    return first;
}

/* ---- locks ---- */

bool cohorts_join(struct cohorts *cohorts, redlock_lock *lock) {
    struct cohort *cohort = find(cohorts, lock);
    lock->wait->cohort = cohort;
    lock->wait->has_handoff = lock->wait->is_leader = false;
    if (cohort == NULL) { /* without memory the request asks the nodes by itself */
        return true;
    }
    if (has_room(cohort, lock)) {
        add_leader(cohort, lock);
        return true;
    }
    TAILQ_INSERT_TAIL(&cohort->waiting, lock, wait->cohort_link);
    cohort->waiting_count++;
    return false;
}

redlock_lock *cohorts_acquired(redlock_lock *lock) {
    struct cohort *cohort = cohort_of(lock);
    if (cohort == NULL || !lock->wait->is_leader) {
        return NULL;
    }
    if (!cohorts_can_hand_over(lock)) { /* nothing to hand over: the next one leads at once */
        return cohorts_leave(lock);
    }
    remove_leader(cohort, lock);
    cohort->holder = lock;
    /* Fairness: only waiters of now are served before the nodes pass the key on. */
    grant_handoffs(cohort, cohort->cohorts->context->options.max_local_handoffs);
    return NULL;
}

redlock_lock *cohorts_next(const redlock_lock *lock) {
    const struct cohort *cohort = cohort_of(lock);
    bool is_holder = cohort != NULL && cohort->holder == lock;
    /* Without hand-offs the nodes decide who is next, this client or another. */
    return is_holder && cohort->handoffs > 0 ? TAILQ_FIRST(&cohort->waiting) : NULL;
}

const redlock_lock *cohorts_leader(const redlock_lock *lock) {
    const struct cohort *cohort = cohort_of(lock);
    if (cohort == NULL) {
        return lock;
    }
    return cohort->holder != NULL ? NULL : TAILQ_FIRST(&cohort->leaders);
}

void cohorts_hand_over(redlock_lock *lock) {
    struct cohort *cohort = lock->wait->cohort;
    /* The next holder takes over the hand-offs that are left, less its own. */
    cohort->holder = TAILQ_FIRST(&cohort->waiting);
    take_out(cohort, cohort->holder);
    lock->wait->cohort = NULL;
}

redlock_lock *cohorts_leave(redlock_lock *lock) {
    struct cohort *cohort = cohort_of(lock);
    if (cohort == NULL) {
        return NULL;
    }
    lock->wait->cohort = NULL;
    if (cohort->holder == lock) { /* released or lost: its hand-offs end with it */
        cohort->holder = NULL;
        cancel_handoffs(cohort);
    } else if (lock->wait->is_leader) {
        remove_leader(cohort, lock);
    } else {
        take_out(cohort, lock);
    }
    redlock_lock *next = promote(cohort);
    drop_if_empty(cohort);
    return next;
}
