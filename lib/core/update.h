/*
 * The update that one event of a lease leads to: the next actions of the lock, which carries them
 * out in this order: top up, undo, send, set the timer, notify. But a QUEUE is sent before the
 * token that it replaces is released: a key that is given up goes to the first in the queue.
 */
#ifndef REDLOCK_CORE_UPDATE_H
#define REDLOCK_CORE_UPDATE_H

#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* The callbacks of the application that are due: a mask, with a status for each. */
enum lease_notification {
    LEASE_ACQUIRED = 1,
    LEASE_EXTENDED = 2,
    LEASE_LOSS = 4,
    LEASE_RELEASED = 8
};

struct lease_update {
    uint32_t undo; /* mask: nodes at which to release the failed try's token, unattended */

    bool send;             /* begin `round` at all nodes */
    enum round_kind round; /* ACQUIRE and QUEUE take a fresh token, for the lease's permit */
    bool keeps_token;      /* of QUEUE: ask again under the token that has an entry */
    bool keeps_entry;      /* of QUEUE for a permit: keep the entry, under a new token */
    bool enters_only;      /* of QUEUE: only enter the queue: no quorum is known to grant now */
    bool before_release;   /* of QUEUE: send it before the release that lets the lease lead */
    uint32_t awaited;      /* of DIAGNOSE */
    uint64_t ttl;          /* of the round */
    uint64_t usable_until; /* of the round: the instant from which it is useless */

    uint32_t top_up;      /* mask: nodes at which to SET NX the current token */
    uint64_t top_up_ttl;  /* the expiry of those keys */
    bool top_up_has_room; /* the top-up has waited for room, and goes before those that wait */
    bool top_up_later;    /* call lease_late_votes after the notifications, to top up then */
    bool watch;           /* have the nodes watch the key, after the notifications */

    unsigned notifications; /* mask of enum lease_notification */
    redlock_status acquired;
    redlock_status extended;
    redlock_status loss;
    redlock_status released;
};

static inline void update_notify(struct lease_update *update, enum lease_notification notification,
                                 redlock_status status) {
    update->notifications |= notification;
    redlock_status *reported = notification == LEASE_ACQUIRED   ? &update->acquired
                               : notification == LEASE_EXTENDED ? &update->extended
                               : notification == LEASE_LOSS     ? &update->loss
                                                                : &update->released;
    *reported = status;
}

#endif
