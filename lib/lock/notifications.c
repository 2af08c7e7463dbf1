/*
 * The happy path: notifications_add collects the notifications of updates; notifications_deliver
 * takes them off the lock one by one, emits the event of each and calls the application. A
 * notification is taken off before its callback is called, so that it is delivered once.
 *
 * A callback may release or extend the lock, or close the client, which records further
 * notifications. An extension that such a call ends is reported before the end of the lock, in the
 * next turn. A failed acquisition, or a release, is the last notification of its handle.
 */
#include "lock/notifications.h"

#include "base/nanos.h"
#include "io/clock.h"

void notifications_add(redlock_lock *lock, const struct lease_update *update) {
    lock->notifications |= (uint8_t)update->notifications;
    if (update->notifications & LEASE_ACQUIRED) {
        lock->done = (int8_t)update->acquired;
    }
    if (update->notifications & LEASE_EXTENDED) {
        lock->done = (int8_t)update->extended;
    }
    if (update->notifications & LEASE_LOSS) {
        lock->ended = (int8_t)update->loss;
        counts_end(&lock->locks->counts.lost, update->loss);
    }
    if (update->notifications & LEASE_RELEASED) {
        lock->ended = (int8_t)update->released;
    }
    locks_ready(lock);
}

/* Takes one notification off a lock. Returns whether it was due. */
static bool take(redlock_lock *lock, enum lease_notification notification) {
    bool is_due = lock->notifications & notification;
    lock->notifications &= (uint8_t)~notification;
    return is_due;
}

/* Calls the application's callback, if there is one, and clears it before the call. */
static void call_back(redlock_lock *lock, struct lock_callback *callback, redlock_status status) {
    const struct lock_callback due = *callback;
    *callback = (struct lock_callback){0}; /* the call may set the next one */
    if (due.call != NULL) {
        due.call(lock, status, due.arg);
    }
}

/* Emits an event of a lock, right before the application is notified. */
#define EMIT_NOTIFICATION(lock, name, ...)                                                         \
    EMIT(&(lock)->locks->context->events, name, .request = (lock)->request,                        \
         .key = (lock)->key->bytes, __VA_ARGS__)

/* Returns an extension's status by a fresh clock: commands were sent since it was decided. */
static redlock_status fresh_extension(const redlock_lock *lock) {
    /* 0: released or closed since, which other notifications report */
    uint64_t end = lock->lease.holding.validity_end;
    /* Redlock: a success that is reported after its validity is none. */
    bool is_over = lock->done == REDLOCK_OK && end != 0 && clock_now() >= end;
    return is_over ? REDLOCK_EEXPIRED : (redlock_status)lock->done;
}

void notifications_deliver_release(redlock_lock *lock, redlock_status status) {
    if (!lock->is_notified) {
        lock->is_notified = true;
        counts_end(&lock->locks->counts.released, status);
        EMIT_NOTIFICATION(lock, lock_released, .status = status);
    }
    call_back(lock, &lock->on_ended, status);
}

bool notifications_deliver(redlock_lock *lock) {
    /* The order of a lock's life: an extension ends before a loss or a release. */
    if (take(lock, LEASE_EXTENDED)) {
        redlock_status status = fresh_extension(lock);
        counts_end(&lock->locks->counts.extended, status);
        EMIT_NOTIFICATION(lock, lock_extended, .status = status);
        call_back(lock, &lock->on_done, status);
    }
    if (take(lock, LEASE_ACQUIRED)) {
        const struct lease *lease = &lock->lease;
        redlock_status status = (redlock_status)lock->done;
        counts_acquired(&lock->locks->counts, lease, status, lock->has_waited);
        EMIT_NOTIFICATION(lock, lock_acquired, .status = status, .tries = lease->tries,
                          .waited = nanos_sub(lease->completed_at, lease->begun_at));
        call_back(lock, &lock->on_done, status);
        if (status != REDLOCK_OK) { /* a failed acquisition is the end of the handle */
            return true;
        }
    }
    if (lock->notifications & LEASE_EXTENDED) {
        return false; /* a callback extended and closed: the extension's end goes first */
    }
    if (take(lock, LEASE_LOSS)) {
        EMIT_NOTIFICATION(lock, lock_lost, .status = (redlock_status)lock->ended);
        call_back(lock, &lock->on_ended, (redlock_status)lock->ended);
    }
    if (take(lock, LEASE_RELEASED)) {
        notifications_deliver_release(lock, (redlock_status)lock->ended);
        return true;
    }
    return false;
}
