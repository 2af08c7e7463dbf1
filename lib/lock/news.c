#include "lock/news.h"

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

/* Looks at the clock again: commands were sent since the extension was decided. */
static redlock_status fresh_extension(const redlock_lock *lock) {
    uint64_t end =
        lock->lease.validity_end; /* 0: it was released or closed since, and is told so */
    bool is_over = lock->extended == REDLOCK_OK && end != 0 && clock_now() >= end;
    return is_over ? REDLOCK_EEXPIRED : lock->extended;
}

bool news_tell(redlock_lock *lock) {
    if (take(lock, LEASE_EXTENDED)) {
        call(lock, lock->on_extended, fresh_extension(lock));
    }
    if (take(lock, LEASE_ACQUIRED)) {
        redlock_status status = lock->acquired;
        call(lock, lock->on_acquired, status);
        if (status != REDLOCK_OK) {
            return true;
        }
    }
    if (lock->news & LEASE_EXTENDED) {
        return false; /* extended and closed inside a callback: it ends first, in the next turn */
    }
    if (take(lock, LEASE_LOSS)) {
        call(lock, lock->on_lost, lock->loss);
    }
    if (take(lock, LEASE_RELEASED)) {
        call(lock, lock->on_released, lock->released);
        return true;
    }
    return false;
}
