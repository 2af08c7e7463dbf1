#include "lock/news.h"

#include "base/nanos.h"
#include "io/clock.h"

void news_note(redlock_lock *lock, const struct lease_update *update) {
    lock->news |= update->news;
    if (update->news & LEASE_ACQUIRED) {
        lock->acquired = update->acquired;
    }
    if (update->news & LEASE_EXTENDED) {
        lock->extended = update->extended;
    }
    if (update->news & LEASE_LOSS) {
        lock->loss = update->loss;
    }
    if (update->news & LEASE_RELEASED) {
        lock->released = update->released;
    }
    if (lock->news != 0) {
        locks_ready(lock);
    }
}

/* Takes one piece of news off a lock. False when it is not due. */
static bool take(redlock_lock *lock, enum lease_news news) {
    bool is_due = lock->news & news;
    lock->news &= ~(unsigned)news;
    return is_due;
}

static void call(redlock_lock *lock, struct lock_callback callback, redlock_status status) {
    if (callback.call != NULL) {
        callback.call(lock, status, callback.arg);
    }
}

/* An event of a lock that the application is told of in the next moment. */
#define EMIT_TOLD(lock, name, ...)                                                                 \
    EMIT(&(lock)->locks->context->events, name, .key = (lock)->key->bytes, __VA_ARGS__)

/* Looks at the clock again: commands were sent since the extension was decided. */
static redlock_status fresh_extension(const redlock_lock *lock) {
    uint64_t end =
        lock->lease.validity_end; /* 0: released or closed since, which is told by itself */
    bool is_over = lock->extended == REDLOCK_OK && end != 0 && clock_now() >= end;
    return is_over ? REDLOCK_EEXPIRED : lock->extended;
}

bool news_tell(redlock_lock *lock) {
    if (take(lock, LEASE_EXTENDED)) {
        redlock_status status = fresh_extension(lock);
        EMIT_TOLD(lock, lock_extended, .status = status);
        call(lock, lock->on_extended, status);
    }
    if (take(lock, LEASE_ACQUIRED)) {
        const struct lease *lease = &lock->lease;
        redlock_status status = lock->acquired;
        EMIT_TOLD(lock, lock_acquired, .status = status, .tries = lease->tries,
                  .waited = nanos_sub(lease->told_at, lease->begun_at));
        call(lock, lock->on_acquired, status);
        if (status != REDLOCK_OK) {
            return true;
        }
    }
    if (lock->news & LEASE_EXTENDED) {
        return false; /* extended and closed inside a callback: it ends first, in the next turn */
    }
    if (take(lock, LEASE_LOSS)) {
        EMIT_TOLD(lock, lock_lost, .status = lock->loss);
        call(lock, lock->on_lost, lock->loss);
    }
    if (take(lock, LEASE_RELEASED)) {
        EMIT_TOLD(lock, lock_released, .status = lock->released);
        call(lock, lock->on_released, lock->released);
        return true;
    }
    return false;
}
