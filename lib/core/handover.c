#include "core/handover.h"

#include "core/acquire.h"
#include "core/hold.h"
#include "wire/fence.h"

bool handover_is_possible(const struct lease *from, const struct lease *to, uint64_t now) {
    /* An extension under way belongs to the request that releases, and cannot be handed over. */
    return lease_is_held(from) && !from->extending && now < to->trying.give_up_at &&
           now < from->holding.lost_at;
}

bool handover_is_silent(const struct lease *from, const struct lease *to, uint64_t now) {
    const struct lease_terms *terms = from->terms;
    uint64_t usual = terms->trusts_pushes ? terms->reservation : from->ttl;
    /* At least 3/4 of the time that a new acquisition would have. */
    uint64_t least = nanos_max(usual - usual / 4, to->terms->min_validity);
    /* Each holder needs a fence of its own: the next of the range, while there is one. */
    bool has_fence = !terms->fenced || from->fences_used < FENCES_IN_RANGE - 1;
    return has_fence && from->ttl == to->ttl && terms->watchdog == to->terms->watchdog &&
           !from->is_unrenewed && nanos_sub(from->holding.lost_at, now) > least;
}

/* Moves the record of the keys that nodes have or may have. */
static void move_keys(struct lease *from, struct lease *to) {
    to->may_hold = from->may_hold;
    to->longest_ttl = nanos_max(to->longest_ttl, from->longest_ttl);
}

/* Moves the validity, and the renewal under way, if any. */
static void move_validity(const struct lease *from, struct lease *to, uint64_t now) {
    to->completed_at = now;
    to->was_acquired = true;
    to->holding = from->holding;
    to->early_renewals = 0;
    to->asked_at = from->asked_at;
    if (from->state == LEASE_HELD) {
        /* If max_hold ended the renewals of the old request, those of the new one begin now. */
        hold_renew_at(to, from->renews ? from->wake_at : now);
        return;
    }
    hold_renew_at(to, now);
    lease_set_state(to, LEASE_RENEWING);
    to->wake_at = from->wake_at;
}

static void end_lease(struct lease *lease, struct lease_update *update) {
    lease_set_state(lease, LEASE_RELEASING);
    lease_set_state(lease, LEASE_OVER);
    lease->holding.validity_end = 0;
    lease->wake_at = NANOS_NEVER;
    update_notify(update, LEASE_RELEASED, REDLOCK_OK);
}

void handover_move(struct lease *from, struct lease *to, uint64_t now, struct lease_update *ended,
                   struct lease_update *begun) {
    bool is_silent = handover_is_silent(from, to, now);
    *ended = *begun = (struct lease_update){0};
    to->tries = 1;
    move_keys(from, to);
    if (is_silent) {
        move_validity(from, to, now);
        to->fence = from->fence;
        to->fences_used = (uint8_t)(from->fence > 0 ? from->fences_used + 1 : 0);
        update_notify(begun, LEASE_ACQUIRED, REDLOCK_OK);
    } else {
        /* The round of RAISE brings a quorum's counters to the end of the next range. */
        to->fence = from->fence > 0 ? from->fence + FENCES_IN_RANGE : 0;
        acquire_confirm(to, now, begun);
    }
    end_lease(from, ended);
}
