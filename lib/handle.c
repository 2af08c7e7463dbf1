/* The application's calls on a handle: each goes into the lease as an event, or is refused. */
#include "handle.h"

#include "base/error.h"
#include "base/nanos.h"
#include "core/options.h"
#include "io/clock.h"
#include "lock/lock.h"

#include <assert.h>
#include <inttypes.h>

static redlock_status refuse_request(struct context *context, redlock_status status,
                                     const char *why) {
    return error_set(&context->refusal, status, "%s", why);
}

redlock_status handle_acquire(struct locks *locks, const redlock_request *request,
                              redlock_cb *on_acquired, void *arg, redlock_lock **handle) {
    struct context *context = locks->context;
    redlock_request checked;
    bool is_like_latest = latest_is_like(&locks->latest, request);
    redlock_status status = is_like_latest ? options_read_key(request, &checked, &context->refusal)
                                           : options_read_request(request, &context->options,
                                                                  &checked, &context->refusal);
    if (status != REDLOCK_OK) {
        return status;
    }
    if (locks->queues[LOCK_STARTING].count >= context->options.max_unsent &&
        !lock_may_begin(locks)) {
        return error_set(&context->refusal, REDLOCK_EBUSY,
                         "max_unsent: %" PRIu32 " requests wait to be sent",
                         context->options.max_unsent);
    }
    redlock_lock *lock = locks_create(locks, &checked, is_like_latest, on_acquired, arg);
    if (lock == NULL) {
        return refuse_request(context, REDLOCK_ENOMEM, "out of memory");
    }
    lock->request = (uint32_t)(locks->counts.accepted++ % UINT32_MAX) + 1; /* 0 means none */
    uint64_t now = clock_now();
    lock_begin(lock, now);
    if (handle != NULL) {
        *handle = lock;
    }
    return REDLOCK_OK;
}

uint64_t redlock_fence(const redlock_lock *lock) {
    return lock != NULL && lock->lease.was_acquired ? lease_fence(&lock->lease) : 0;
}

/* Refuses a call on NULL, or if the client is closing or inherited (context_check). */
static redlock_status check_handle(redlock_lock *lock) {
    return lock != NULL ? context_check(lock->locks->context) : REDLOCK_EINVAL;
}

/* Refuses a call as check_handle does, but accepts it while the client is closing. */
static redlock_status check_end(redlock_lock *lock) {
    return lock != NULL ? context_check_end(lock->locks->context) : REDLOCK_EINVAL;
}

redlock_status redlock_cancel(redlock_lock *lock) {
    struct lease_update update;
    redlock_status status = check_end(lock);
    if (status != REDLOCK_OK) {
        return status;
    }
    enum lease_state before = lock->lease.state;
    uint64_t now = clock_now();
    if (lease_cancel(&lock->lease, lock_round(lock), now, &update)) {
        return refuse_request(lock->locks->context, REDLOCK_EINVAL,
                              "the lock is not being acquired");
    }
    lock_carry_out(lock, &update, before, now);
    return REDLOCK_OK;
}

redlock_status redlock_extend(redlock_lock *lock, uint64_t ttl_ms, redlock_cb *on_extended,
                              void *arg) {
    struct lease_update update;
    redlock_status status = check_handle(lock);
    if (status != REDLOCK_OK) {
        return status;
    }
    struct context *context = lock->locks->context;
    uint64_t now = clock_now();
    enum lease_state before = lock->lease.state;
    if (ttl_ms == 0) { /* the TTL stays as it is */
        ttl_ms = nanos_to_ms(lock->lease.ttl);
    }
    status =
        options_check_ttl(&context->options, ttl_ms, nanos_to_ms(lock->lease.terms->lock_delay),
                          nanos_to_ms(lock->lease.terms->min_validity), &context->refusal);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = lock->is_let_go ? REDLOCK_EINVAL
                             : lease_extend(&lock->lease, lock_round(lock), nanos_from_ms(ttl_ms),
                                            now, &update);
    if (status != REDLOCK_OK) {
        return refuse_request(context, status,
                              status == REDLOCK_EBUSY ? "another extension of the lock is under way"
                              : status == REDLOCK_ELOST ? "the lock is lost"
                                                        : "the lock is not held");
    }
    assert(
        !(lock->notifications & LEASE_ACQUIRED)); /* reported in its verdict's turn, by on_done */
    lock->on_done = (struct lock_callback){on_extended, arg};
    lock_carry_out(lock, &update, before, now);
    return REDLOCK_OK;
}

redlock_status redlock_release(redlock_lock *lock, redlock_cb *on_released, void *arg) {
    struct lease_update update;
    redlock_status status = check_end(lock);
    if (status != REDLOCK_OK) {
        return status;
    }
    uint64_t now = clock_now();
    enum lease_state before = lock->lease.state;
    bool is_ours = lease_is_held(&lock->lease) || lock->lease.state == LEASE_LOST;
    if (lock->is_let_go) {
        return refuse_request(lock->locks->context, REDLOCK_EINVAL, "the lock is released");
    }
    if (!is_ours && !lock_is_closed_for_holder(lock)) {
        return refuse_request(lock->locks->context, REDLOCK_EINVAL,
                              "the lock is neither held nor lost");
    }
    lock->is_let_go = true;
    lock->locks->counts.let_go += lease_is_held(&lock->lease);
    lock->notifications &= (uint8_t)~LEASE_LOSS; /* the release reports such a loss instead */
    lock->on_ended = (struct lock_callback){on_released, arg};
    if (!is_ours) { /* the closing client has released it already */
        lock_notify_release(lock);
    } else if (!lock_part(lock, now)) { /* Cohort: a waiter of this client goes before the nodes' */
        lease_release(&lock->lease, now, &update);
        lock_carry_out(lock, &update, before, now);
    }
    return REDLOCK_OK;
}

uint64_t redlock_validity_ms(const redlock_lock *lock) {
    const struct context *context = lock != NULL ? lock->locks->context : NULL;
    /* A closing client gives up its locks, a child process has none, a parting lock is released. */
    if (context == NULL || context->is_closing || context_is_inherited(context) ||
        lock->is_parting) {
        return 0;
    }
    return nanos_to_ms(lease_validity(&lock->lease, clock_now()));
}

const char *redlock_key(const redlock_lock *lock, size_t *length) {
    const char *key = redlock_key_at(lock, 0, length);
    return key != NULL ? key : "";
}

const char *redlock_key_at(const redlock_lock *lock, size_t index, size_t *length) {
    const struct key *key = lock != NULL ? lock->key : NULL;
    for (; key != NULL && index > 0; index--) {
        key = key->next;
    }
    if (length != NULL) {
        *length = key != NULL ? key->length : 0;
    }
    return key != NULL ? key->bytes : NULL;
}
