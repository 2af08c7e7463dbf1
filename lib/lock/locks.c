/*
 * The happy path: locks_create takes a lock from the pool and puts it in the list of all; an event
 * puts it in a queue and wakes a turn, which takes it out; locks_end takes it out of all lists, and
 * back to the pool. A lock is in one queue at the most: a verdict moves it to `decided`.
 *
 * While the client closes, locks that were closed go to the end of the list of all, behind the open
 * ones; a handle that has ended is kept in `ended` until locks_finish, since its holder may still
 * use it.
 */
#include "lock/locks.h"

#include "core/options.h"

#include <assert.h>
#include <string.h>

/* ---- queues ---- */

static void queue_init(struct lock_queue *queue) {
    TAILQ_INIT(&queue->list);
    queue->count = 0;
}

void locks_unqueue(redlock_lock *lock) {
    if (lock->queue != NULL) {
        TAILQ_REMOVE(&lock->queue->list, lock, ready_link);
        lock->queue->count--;
        lock->queue = NULL;
    }
}

static void enqueue(redlock_lock *lock, struct lock_queue *queue) {
    locks_unqueue(lock);
    TAILQ_INSERT_TAIL(&queue->list, lock, ready_link);
    queue->count++;
    lock->queue = queue;
    context_wake(lock->locks->context);
}

void locks_ready(redlock_lock *lock) {
    if (lock->queue == NULL) {
        enqueue(lock, &lock->locks->ready);
    }
}

void locks_raise(redlock_lock *lock, enum lock_event event) {
    struct lock_queue *decided = &lock->locks->decided;
    lock->events |= event;
    if (event == LOCK_DECIDED && lock->queue != decided) {
        enqueue(lock, decided);
    } else {
        locks_ready(lock);
    }
}

static void on_timer(void *arg) {
    locks_raise(arg, LOCK_WOKEN);
}

/* ---- lists ---- */

void locks_note_unrenewed(redlock_lock *lock) {
    struct lock_list *list = &lock->locks->unrenewed;
    if (lock->is_unrenewed == lock->lease.is_unrenewed) {
        return;
    }
    lock->is_unrenewed = lock->lease.is_unrenewed;
    if (lock->is_unrenewed) {
        TAILQ_INSERT_TAIL(list, lock, unrenewed_link);
    } else {
        TAILQ_REMOVE(list, lock, unrenewed_link);
    }
}

void locks_note_sent(redlock_lock *lock) {
    if (!lock->is_sent) {
        lock->is_sent = true;
        TAILQ_INSERT_TAIL(&lock->locks->sent, lock, sent_link);
    }
}

void locks_note_closed(redlock_lock *lock) {
    struct lock_list *all = &lock->locks->all;
    lock->is_closed = true;
    TAILQ_REMOVE(all, lock, all_link);
    TAILQ_INSERT_TAIL(all, lock, all_link);
}

/* ---- the pool ---- */

static bool set_up(void *object, void *context) {
    redlock_lock *lock = object;
    const struct locks *locks = context;
    return timer_init(&lock->timer, &locks->context->loop, on_timer, lock);
}

static void take_down(void *object) {
    redlock_lock *lock = object;
    timer_finish(&lock->timer);
}

static const struct pool_kind lock_kind = {.size = sizeof(struct redlock_lock),
                                           .max_spares = 4096,
                                           .set_up = set_up,
                                           .take_down = take_down};

void locks_init(struct locks *locks, struct context *context, struct members *members,
                struct rounds *rounds) {
    locks->context = context;
    locks->members = members;
    locks->rounds = rounds;
    locks->has_read = false;
    pool_init(&locks->pool, &context->allocator, &lock_kind, locks);
    TAILQ_INIT(&locks->all);
    TAILQ_INIT(&locks->ended);
    queue_init(&locks->decided);
    queue_init(&locks->ready);
    TAILQ_INIT(&locks->sent);
    TAILQ_INIT(&locks->unrenewed);
    waiters_init(&locks->waiters, &context->allocator);
    lines_init(&locks->lines, context);
}

static void lock_free(redlock_lock *lock) {
    key_drop(lock->key);
    if (lock->name != NULL) {
        key_drop(lock->name);
    }
    pool_put(&lock->locks->pool, lock);
}

void locks_finish(struct locks *locks) {
    while (!TAILQ_EMPTY(&locks->ended)) {
        redlock_lock *lock = TAILQ_FIRST(&locks->ended);
        TAILQ_REMOVE(&locks->ended, lock, all_link);
        lock_free(lock);
    }
    waiters_finish(&locks->waiters);
    lines_finish(&locks->lines);
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

redlock_lock *locks_create(struct locks *locks, const redlock_request *request,
                           redlock_cb *on_acquired, void *arg) {
    redlock_lock *lock = pool_take(&locks->pool);
    if (lock == NULL) {
        return NULL;
    }
    lock->key = create_keys(&locks->context->keys, request);
    if (lock->key == NULL) {
        pool_put(&locks->pool, lock);
        return NULL;
    }
    lock->kind = kind_of(features_of(request));
    assert(lock->kind != NULL); /* options_read_request refuses all other combinations */
    lock->name = request->permits > 0 ? key_hold(lock->key) : NULL; /* a try puts a key in place */
    lock->locks = locks;
    lock->flight = lock->tried = NULL;
    lock->events = lock->news = 0;
    lock->queue = NULL;
    lock->is_sent = lock->is_unrenewed = lock->is_closed = lock->is_waiter = false;
    lock->is_parting = false;
    lock->ticket = lock->placed = 0;
    lock->is_makeshift = lock->may_be_placed = false;
    memset(lock->token, 0, sizeof(lock->token)); /* no try yet */
    lock->line = NULL;
    lock->replicas = request->wait_replicas;
    lock->on_acquired = (struct lock_callback){on_acquired, arg};
    lock->on_lost = (struct lock_callback){request->on_lost, request->on_lost_arg};
    lock->on_extended = lock->on_released = (struct lock_callback){NULL, NULL};
    TAILQ_INSERT_TAIL(&locks->all, lock, all_link);
    return lock;
}

void locks_end(redlock_lock *lock) {
    struct locks *locks = lock->locks;
    locks_unqueue(lock);
    if (lock->is_sent) {
        TAILQ_REMOVE(&locks->sent, lock, sent_link);
        lock->is_sent = false;
    }
    if (lock->is_unrenewed) {
        TAILQ_REMOVE(&locks->unrenewed, lock, unrenewed_link);
        lock->is_unrenewed = false;
    }
    waiters_remove(&locks->waiters, lock);
    TAILQ_REMOVE(&locks->all, lock, all_link);
    timer_clear(&lock->timer);
    locks_let_go(&lock->flight);
    locks_let_go(&lock->tried);
    if (locks->context->is_closing) {
        TAILQ_INSERT_TAIL(&locks->ended, lock, all_link);
    } else {
        lock_free(lock);
    }
}
