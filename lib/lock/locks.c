/*
 * The happy path: locks_create takes a lock from the pool; an event queues the lock and wakes a
 * turn, which takes the lock out of the queue; locks_end takes the lock out of all lists, and
 * returns it to the pool. A lock is in exactly one list at any time: a queue of the turns, or a
 * list of locks that have nothing to handle.
 *
 * While the client closes, locks that it has closed rest in LOCK_CLOSED, apart from the open ones.
 * A handle that has ended stays in LOCK_ENDED until locks_finish: its holder may still use it.
 */
#include "lock/locks.h"

#include "core/options.h"
#include "io/clock.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* ---- queues ---- */

static void move(redlock_lock *lock, enum lock_list list) {
    struct lock_queue *from = &lock->locks->queues[lock->list];
    struct lock_queue *to = &lock->locks->queues[list];
    TAILQ_REMOVE(&from->list, lock, link);
    from->count--;
    TAILQ_INSERT_TAIL(&to->list, lock, link);
    to->count++;
    lock->list = (uint8_t)list;
}

static bool is_queued(const redlock_lock *lock) {
    return lock->list >= LOCK_READY; /* the lists from there on are the queues of the turns */
}

/* One list for each event that concerns many locks, to find these among a million. */
static enum lock_list home_of(const redlock_lock *lock) {
    uint32_t awaited = lease_awaits_room(&lock->lease);
    if (lock->is_closed) {
        return LOCK_CLOSED;
    }
    if (awaited != 0) { /* for one node at a time, so that a slow one holds up no other lock's */
        return LOCK_LACKING + (unsigned)__builtin_ctz(awaited);
    }
    return lock->lease.is_unrenewed              ? LOCK_UNRENEWED
           : lock->lease.state == LEASE_STARTING ? LOCK_STARTING
                                                 : LOCK_RESTING;
}

void locks_move_home(redlock_lock *lock) {
    move(lock, home_of(lock));
}

void locks_refile(redlock_lock *lock) {
    /* A lock that is still in the right list keeps its place in it. */
    if (lock->list <= LOCK_UNRENEWED && lock->list != home_of(lock)) {
        locks_move_home(lock);
    }
}

uint32_t locks_awaited(const struct locks *locks, uint32_t nodes) {
    uint32_t awaited = 0;
    for (uint32_t rest = nodes; rest != 0; rest &= rest - 1) {
        unsigned list = LOCK_LACKING + (unsigned)__builtin_ctz(rest);
        awaited |= locks->queues[list].count > 0 ? rest & -rest : 0; /* its lowest bit */
    }
    return awaited;
}

void locks_unqueue(redlock_lock *lock) {
    if (is_queued(lock)) {
        locks_move_home(lock);
    }
}

static void enqueue(redlock_lock *lock, enum lock_list list) {
    move(lock, list);
    context_wake(lock->locks->context);
}

void locks_ready(redlock_lock *lock) {
    /* A lock in its turn is queued again at the turn's end, if anything is left to handle. */
    if (!is_queued(lock) && lock != lock->locks->in_turn) {
        enqueue(lock, LOCK_READY);
    }
}

void locks_raise(redlock_lock *lock, enum lock_event event) {
    lock->events |= (uint16_t)event;
    /* A verdict overtakes other events: the validity that it grants is running out. */
    if (event == LOCK_DECIDED && lock->list < LOCK_DUE) {
        enqueue(lock, LOCK_DUE);
    } else {
        locks_ready(lock);
    }
}

void locks_record_closed(redlock_lock *lock) {
    lock->is_closed = true;
    /* A queued lock moves when a turn takes it out of its queue. */
    if (!is_queued(lock)) {
        locks_move_home(lock);
    }
}

bool locks_have_any(const struct locks *locks) {
    unsigned count = 0;
    for (unsigned list = 0; list < LOCK_LISTS; list++) {
        /* Ended handles have had their last callback, and delay the client's end no more. */
        count += list != LOCK_ENDED ? locks->queues[list].count : 0;
    }
    return count > 0;
}

/* Moves each lock to the end before its visit, since a visit may move any lock to another list. */
void locks_visit(struct locks *locks, enum lock_list list, void (*visit)(redlock_lock *lock)) {
    struct lock_queue *queue = &locks->queues[list];
    for (unsigned rest = queue->count; rest > 0 && queue->count > 0; rest--) {
        redlock_lock *lock = TAILQ_FIRST(&queue->list);
        move(lock, list);
        visit(lock);
    }
}

/* Visits the queues of the turns last: visits only move locks to these, so none is missed. */
void locks_visit_all(struct locks *locks, void (*visit)(redlock_lock *lock)) {
    for (unsigned list = 0; list < LOCK_LISTS; list++) {
        if (list != LOCK_ENDED) {
            locks_visit(locks, (enum lock_list)list, visit);
        }
    }
}

void locks_look_for_room(struct locks *locks) {
    const redlock_options *options = &locks->context->options;
    struct admission *admission = &locks->admission;
    /* As much again as load_admits, at the most: less than the share of new commands. */
    uint32_t commands = options->max_commands / 8;
    uint32_t most = members_admit(locks->members);
    most = most < TURN_ADMITTED_MAX ? most : TURN_ADMITTED_MAX;
    *admission = (struct admission){.is_known = true,
                                    .is_open = most > 0,
                                    .requests = most < commands ? most : commands,
                                    .bytes = options->max_bytes / 8};
}

void locks_record_sent(redlock_lock *lock) {
    struct operation *operation = operation_hold(lock->operation); /* until turn_sent */
    STAILQ_INSERT_TAIL(&lock->locks->sent, operation, sent_link);
}

/* ---- the alarm, and change notifications ---- */

static redlock_lock *lock_of(const struct wheel_entry *alarm) {
    return (redlock_lock *)(void *)((char *)alarm - offsetof(redlock_lock, alarm));
}

/* Returns the instant at which the loss of a lock is due; NANOS_NEVER: the lock is not held. */
static uint64_t loss_of(const redlock_lock *lock) {
    return lease_is_held(&lock->lease) ? lock->lease.holding.lost_at : NANOS_NEVER;
}

/* Returns the instant of an alarm. A lock that was woken and still waits is woken at its loss. */
static uint64_t instant(const struct wheel_entry *alarm) {
    const redlock_lock *lock = lock_of(alarm);
    return lock->events & LOCK_WOKEN ? loss_of(lock) : lock->lease.wake_at;
}

/* Returns whether more locks wait than one turn handles. */
static bool are_crowded(const struct locks *locks) {
    return locks->queues[LOCK_READY].count > TURN_LOCKS_MAX ||
           locks->queues[LOCK_DUE].count > TURN_LOCKS_MAX;
}

/* Wakes a lock. In a crowd a loss overtakes the renewals and the verdicts of other locks. */
static void on_alarm(struct wheel_entry *alarm) {
    redlock_lock *lock = lock_of(alarm);
    struct locks *locks = lock->locks;
    uint64_t lost_at = loss_of(lock);
    if (lost_at == NANOS_NEVER || !are_crowded(locks)) { /* nothing to lose, or no crowd */
        locks_raise(lock, LOCK_WOKEN);
    } else if (!(lock->events & LOCK_WOKEN) && lock->lease.wake_at < lost_at) {
        /* A renewal is due, whose turn may come after the loss: wake for that, too. */
        locks_raise(lock, LOCK_WOKEN);
        alarms_set_again(&locks->alarms, alarm, lost_at);
    } else if (lock->list != LOCK_OVERDUE) { /* the loss itself */
        lock->events |= LOCK_WOKEN;
        enqueue(lock, LOCK_OVERDUE);
    }
}

void locks_key_changed(redlock_lock *lock, uint32_t node) {
    /* Wait queue: with the nodes whose key has changed, a quorum may grant it (core/queue.h). */
    if (lock->operation != NULL) {
        round_record_changed(&lock->operation->round, node);
    }
    locks_raise(lock, LOCK_KEY_CHANGED);
}

static void on_lapse(redlock_lock *lock) {
    locks_raise(lock, LOCK_UNWATCHED);
}

static const struct watches_listener watches_listener = {.on_key_changed = locks_key_changed,
                                                         .on_lapse = on_lapse};

/* ---- the pools ---- */

static bool set_up_pooled_lock(void *object, void *context) {
    redlock_lock *lock = object;
    (void)context;
    wheel_entry_init(&lock->alarm);
    return true;
}

static void take_down_pooled_lock(void *object, void *context) {
    redlock_lock *lock = object;
    struct locks *locks = context;
    alarms_remove(&locks->alarms, &lock->alarm);
}

static const struct pool_kind locks_kind = {.size = sizeof(struct redlock_lock),
                                            .max_spares = 4096,
                                            .set_up = set_up_pooled_lock,
                                            .take_down = take_down_pooled_lock};

static const struct pool_kind wait_kind = {.size = sizeof(struct lock_wait), .max_spares = 4096};

void locks_init(struct locks *locks, struct context *context, struct members *members,
                struct rounds *rounds) {
    locks->context = context;
    locks->members = members;
    locks->rounds = rounds;
    locks->in_turn = NULL;
    locks->has_read = false;
    locks->admission = (struct admission){0};
    pool_init(&locks->pool, &context->allocator, &locks_kind, locks);
    pool_init(&locks->waits, &context->allocator, &wait_kind, NULL);
    for (unsigned list = 0; list < LOCK_LISTS; list++) {
        TAILQ_INIT(&locks->queues[list].list);
        locks->queues[list].count = 0;
    }
    STAILQ_INIT(&locks->sent);
    waiters_init(&locks->waiters, &context->allocator);
    watches_init(&locks->watches, &context->allocator, members, &watches_listener);
    cohorts_init(&locks->cohorts, context);
    terms_init(&locks->terms, &context->allocator);
    locks->latest.terms = NULL;
    alarms_init(&locks->alarms, context->loop, instant, on_alarm);
}

/* Frees a lock, which may lack parts that were not set up yet. */
static void lock_free(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    if (lock->wait != NULL && lock->wait->name != NULL) {
        key_drop(lock->wait->name);
    }
    if (lock->wait != NULL) {
        locks->listeners -= lock->wait->needs_channels;
        pool_put(&locks->waits, lock->wait);
    }
    if (lock->lease.terms != NULL) {
        terms_drop(&locks->terms, lock->lease.terms);
    }
    if (lock->key != NULL) {
        key_drop(lock->key);
    }
    pool_put(&locks->pool, lock);
}

void locks_finish(struct locks *locks) {
    struct lock_queue *ended = &locks->queues[LOCK_ENDED];
    while (!TAILQ_EMPTY(&ended->list)) {
        redlock_lock *lock = TAILQ_FIRST(&ended->list);
        TAILQ_REMOVE(&ended->list, lock, link);
        lock_free(lock);
    }
    alarms_finish(&locks->alarms);
    waiters_finish(&locks->waiters);
    watches_finish(&locks->watches);
    cohorts_finish(&locks->cohorts);
    if (locks->latest.terms != NULL) {
        terms_drop(&locks->terms, locks->latest.terms);
    }
    terms_finish(&locks->terms);
    pool_finish(&locks->waits);
    pool_finish(&locks->pool);
}

/* ---- handles ---- */

static struct key *create_keys(struct keys *keys, const redlock_request *request) {
    size_t length;
    const char *name = options_key(request, 0, &length);
    struct key *first = key_create(keys, name, length);
    for (size_t i = 1; first != NULL && i < request->key_count; i++) {
        name = options_key(request, i, &length);
        if (!key_append(first, name, length)) {
            key_drop(first);
            first = NULL;
        }
    }
    return first;
}

static unsigned features_of(const redlock_request *request) {
    unsigned features = 0;
    features |= request->fenced ? KIND_FENCED : 0;
    features |= request->key_count > 1 ? KIND_SEVERAL : 0;
    features |= request->permits > 0 ? KIND_PERMIT : 0;
    features |= request->mode == REDLOCK_READER ? KIND_READER : 0;
    features |= request->mode == REDLOCK_WRITER ? KIND_WRITER : 0;
    return features;
}

/* Returns whether a push message can hold the key. */
static bool is_short(const struct key *key) {
    return key_pushed_length(key) <= WAITERS_KEY_MAX;
}

/* Returns the terms of a request for a key; NULL when out of memory. */
static const struct lease_terms *hold_terms(struct locks *locks, const redlock_request *request,
                                            const struct kind *kind, const struct key *key) {
    struct context *context = locks->context;
    struct lease_terms terms = options_terms(&context->options, request);
    terms.seed = &context->seed;
    terms.ticks = &context->ticks;
    terms.patience = &context->patience;
    /* Wait queue: the kind must have one, and the messages that grant a key must hold its name. */
    terms.queues = terms.queues && kind->queue != SCRIPT_NONE && is_short(key);
    context->shortest_ttl = nanos_min(context->shortest_ttl, terms.ttl);
    return terms_hold(&locks->terms, &terms);
}

/* Gives a lock a lock_wait if its terms need one. Returns false when out of memory. */
static bool create_wait(redlock_lock *lock) {
    const struct lease_terms *terms = lock->lease.terms;
    if (!terms->queues && !terms->watches && terms->permits == 0) {
        return true;
    }
    lock->wait = pool_take(&lock->locks->waits);
    if (lock->wait != NULL) { /* a semaphore's key is its name, until a try chooses a permit */
        *lock->wait = (struct lock_wait){.name = terms->permits > 0 ? key_hold(lock->key) : NULL};
    }
    return lock->wait != NULL;
}

/* Sets the kind and the terms of a lock that has its key. Returns false when out of memory. */
static bool set_terms(redlock_lock *lock, const redlock_request *request) {
    struct locks *locks = lock->locks;
    const struct kind *kind = kind_of(features_of(request));
    assert(kind != NULL); /* options_read_request refuses all other combinations */
    lock->kind = (uint8_t)kind_number(kind);
    lock->lease.terms = hold_terms(locks, request, kind, lock->key);
    /* One short key: latest_is_like compares neither `keys` nor the length of a key. */
    if (lock->lease.terms != NULL && request->keys == NULL && is_short(lock->key)) {
        latest_record(&locks->latest, &locks->terms, request, lock->lease.terms, lock->kind);
    }
    return lock->lease.terms != NULL;
}

/* Sets up a lock of which only `locks` and the alarm are valid. Returns false without memory. */
static bool set_up_lock(redlock_lock *lock, const redlock_request *request, bool is_like_latest) {
    struct locks *locks = lock->locks;
    lock->wait = NULL;
    lock->lease.terms = NULL;
    lock->key = create_keys(&locks->context->keys, request);
    if (lock->key == NULL) {
        return false;
    }
    if (is_like_latest && is_short(lock->key)) { /* a long key has no queue: other terms */
        lock->kind = locks->latest.kind;
        lock->lease.terms = terms_share(locks->latest.terms);
    } else if (!set_terms(lock, request)) {
        return false;
    }
    return create_wait(lock);
}

redlock_lock *locks_create(struct locks *locks, const redlock_request *request, bool is_like_latest,
                           redlock_cb *on_acquired, void *arg) {
    redlock_lock *lock = pool_take(&locks->pool);
    if (lock == NULL) {
        return NULL;
    }
    lock->locks = locks;
    if (!set_up_lock(lock, request, is_like_latest)) {
        lock_free(lock);
        return NULL;
    }
    lock->operation = NULL;
    lock->granted = lock->unsent = 0;
    lock->events = lock->notifications = 0;
    lock->is_admitted = lock->is_closed = lock->is_let_go = lock->is_parting = lock->is_notified =
        false;
    lock->was_renewed = lock->has_waited = false;
    memset(lock->token, 0, sizeof(lock->token)); /* no try yet */
    lock->on_done = (struct lock_callback){on_acquired, arg};
    lock->on_ended = (struct lock_callback){request->on_lost, request->on_lost_arg};
    lock->list = LOCK_RESTING;
    TAILQ_INSERT_TAIL(&locks->queues[LOCK_RESTING].list, lock, link);
    locks->queues[LOCK_RESTING].count++;
    return lock;
}

void locks_listen(redlock_lock *lock) {
    struct members *members = lock->locks->members;
    if (!lock->wait->needs_channels) {
        lock->wait->needs_channels = true;
        lock->locks->listeners++;
        members_await_pushes(members, clock_now());
    }
    members_listen(members);
}

void locks_end(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    waiters_remove(&locks->waiters, lock);
    watches_drop(lock);
    lock->lease.wake_at = NANOS_NEVER; /* the alarm may stay filed in the wheel, and never fires */
    locks_let_go(&lock->operation);
    move(lock, LOCK_ENDED);
    if (!locks->context->is_closing) { /* otherwise the holder may still use its handle */
        TAILQ_REMOVE(&locks->queues[LOCK_ENDED].list, lock, link);
        locks->queues[LOCK_ENDED].count--;
        lock_free(lock);
    }
}
