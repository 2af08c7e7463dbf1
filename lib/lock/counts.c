#include "lock/counts.h"

#include "round/operation.h"

/* Records the time since a round's start. */
static void record_round(redlock_histogram *histogram, const struct operation *operation,
                         uint64_t now) {
    if (operation != NULL) {
        histogram_record(histogram, now - operation->round.start);
    }
}

void counts_end_state(struct counts *counts, const struct lease *lease,
                      const struct lease_update *update, enum lease_state before,
                      const struct operation *operation, uint64_t now) {
    bool is_renewal = before == LEASE_RENEWING && lease->state != LEASE_RELEASING;
    bool is_extension = (update->notifications & LEASE_EXTENDED) != 0;
    bool has_failed = lease->state == LEASE_LOST || lease->is_unrenewed;
    /* Extensions are counted when they are reported (notifications.c). */
    if (before == LEASE_RELEASING) {
        record_round(&counts->release, operation, now);
    } else if (is_renewal) {
        counts->renewed += !is_extension && !has_failed;
        counts->renewals_failed += !is_extension && has_failed;
    }
    if (is_renewal && !has_failed) {
        record_round(&counts->renew, operation, now);
    }
}
