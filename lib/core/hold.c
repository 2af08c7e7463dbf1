#include "core/hold.h"

#include "core/change.h"
#include "core/renewal.h"
#include "core/validity.h"

/* The loss is told so much before its time: a loop's timers are late by up to their grain. */
#define LOSS_MARGIN (10 * NANOS_PER_MS)

/* Waits in HELD for the next renewal, planned for `at` (NANOS_NEVER: none), or for the loss. */
static void rest(struct lease *lease, uint64_t at) {
    lease_set_state(lease, LEASE_HELD);
    lease->renews = at != NANOS_NEVER;
    uint64_t due = lease->renews ? change_due(lease, at) : NANOS_NEVER;
    lease->wake_at = nanos_min(due, lease->holding.lost_at);
}

/* ---- validity ---- */

/* Prolongs the validity, never shortens it: an end that is no later also leaves the margin. */
static void set_validity(struct lease *lease, uint64_t end, uint64_t now) {
    struct lease_holding *holding = &lease->holding;
    if (end <= holding->validity_end) {
        return;
    }
    uint64_t left = nanos_sub(end, now);
    holding->validity_end = end;
    holding->lost_at = nanos_sub(end, nanos_min(LOSS_MARGIN, left / 8));
}

/* Returns the instant of a renewal that is due at `at`; NANOS_NEVER: none is planned any more. */
static uint64_t plan_renewal(const struct lease *lease, uint64_t at) {
    uint64_t last = nanos_add(lease->completed_at, lease->terms->max_hold);
    return lease->terms->watchdog && at <= last ? at : NANOS_NEVER;
}

static void round_was_yes(struct lease *lease, const struct round *round, uint64_t end,
                          uint64_t now) {
    lease->is_unrenewed = false;
    lease->holding.early_renewals = 0;
    set_validity(lease, end, now);
    rest(lease, plan_renewal(lease, renewal_next(lease->holding.phase, lease->ttl, round->start)));
}

static void draw_phase(struct lease *lease, uint64_t start) {
    lease->holding.phase = renewal_draw_phase(start, lease->ttl, lease->terms->seed);
}

/* ---- topping up ---- */

/* Gives the key to nodes that lack it, for as long as the nodes that have it keep it. */
static void top_up(struct lease *lease, uint32_t lacking, uint64_t until, uint64_t now,
                   struct lease_update *update) {
    update->top_up = lacking & lease->members & ~lease->holding.topped_up;
    update->top_up_ttl = nanos_sub(until, now);
    lease->holding.topped_up |= update->top_up;
    lease->may_hold |= update->top_up;
    update->watch |= lease->terms->watches && update->top_up != 0;
}

/* Returns a mask of the nodes without the key, and of those that the round did not ask. */
static uint32_t lacking_after(const struct round *round) {
    return round_voters(round, REDLOCK_VOTE_MISSING) | ~round->members;
}

/* Tops up after a round for which a quorum has the key. */
static void top_up_after(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    top_up(lease, lacking_after(round), nanos_add(round->start, round->ttl), now, update);
}

void hold_top_up_joining(struct lease *lease, uint32_t joining, uint64_t now,
                         struct lease_update *update) {
    if (lease_is_held(lease) && now < lease->holding.lost_at) {
        lease->holding.topped_up &= ~joining; /* their indexes were other nodes' then */
        top_up(lease, joining, lease->holding.validity_end, now, update);
    }
}

/* ---- the beginning and the end ---- */

void hold_begin(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                struct lease_update *update) {
    uint64_t since = round->pushed != 0 ? now : round->start;
    lease->completed_at = now;
    lease->was_acquired = true;
    lease->holding = (struct lease_holding){0};
    draw_phase(lease, since);
    lease->holding.stay_until =
        lease->terms->min_hold != 0 ? nanos_add(since, lease->terms->min_hold) : 0;
    round_was_yes(lease, round, end, now);
    update->watch = lease->terms->watches;
    update->top_up_later = (lacking_after(round) & lease->members) != 0;
    update_notify(update, LEASE_ACQUIRED, REDLOCK_OK);
}

void hold_renew_at(struct lease *lease, uint64_t at) {
    rest(lease, plan_renewal(lease, at));
}

void hold_end_extension(struct lease *lease, redlock_status status, struct lease_update *update) {
    if (lease->extending) {
        lease->extending = false;
        update_notify(update, LEASE_EXTENDED, status);
    }
}

void hold_key_changed(struct lease *lease) {
    lease->may_have_changed = lease_is_held(lease) && lease->terms->watches;
    if (lease->may_have_changed && lease->state == LEASE_HELD) {
        rest(lease, lease->renews ? lease->wake_at : NANOS_NEVER);
    }
}

static void lose(struct lease *lease, redlock_status status, struct lease_update *update) {
    hold_end_extension(lease, status, update);
    lease_set_state(lease, LEASE_LOST);
    lease->loss = (int8_t)status;
    lease->is_unrenewed = false;
    lease->holding.validity_end = 0;
    lease->wake_at = NANOS_NEVER;
    update_notify(update, LEASE_LOSS, status);
}

/* ---- renewals ---- */

static void renew(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease_set_state(lease, LEASE_RENEWING);
    lease->holding.topped_up = 0;
    change_round_sent(lease, now, lease->may_have_changed ? lease->change_rounds + 1U : 0);
    lease_send(lease, ROUND_RENEW, now, lease->holding.lost_at, update);
}

/* The timer may come late: max_hold may be over by now. */
static void renew_unless_too_late(struct lease *lease, uint64_t now, struct lease_update *update) {
    if (plan_renewal(lease, now) == NANOS_NEVER) {
        rest(lease, NANOS_NEVER);
    } else {
        renew(lease, now, update);
    }
}

void hold_extend(struct lease *lease, uint64_t ttl, uint64_t now, struct lease_update *update) {
    assert(!lease->extending);
    lease->longest_ttl = nanos_max(lease->longest_ttl, nanos_add(ttl, lease->terms->lock_delay));
    lease->extending = true;
    renew(lease, now, update);
    update->ttl = ttl;
}

void hold_renewal_failed(struct lease *lease, uint64_t now) {
    uint64_t left = nanos_sub(lease->holding.lost_at, now);
    lease->is_unrenewed = true;
    uint64_t at = renewal_retry(now, left, lease->ttl, lease->terms->seed);
    rest(lease, plan_renewal(lease, at));
}

/*
 * Waits on for a renewal's round whose quorum needs silent nodes; returns whether it does. These
 * nodes answer this round before any other: until then another round is of no use.
 */
static bool wait_on(struct lease *lease, const struct round *round, uint64_t now) {
    if (!lease_is_watchdog_renewing(lease) || round->verdict != ROUND_OPEN ||
        !round_needs_silent(round)) {
        return false;
    }
    uint64_t left = nanos_sub(round->usable_until, now);
    lease->is_unrenewed = true;
    lease->wake_at = left > 2 * LOSS_MARGIN ? nanos_add(now, left / 2) : round->usable_until;
    return true;
}

bool hold_woken(struct lease *lease, const struct round *round, uint64_t now,
                struct lease_update *update) {
    if (now >= lease->holding.lost_at) {
        lose(lease, REDLOCK_EEXPIRED, update);
        return true;
    }
    if (lease->state == LEASE_HELD) {
        renew_unless_too_late(lease, now, update);
        return true;
    }
    return round == NULL || wait_on(lease, round, now);
}

/*
 * A round under way is superseded only where the nodes that are up make it succeed without those
 * that it still waits for: these may be slow, and would be asked once more for each node that comes
 * up.
 */
static bool may_renew_now(const struct lease *lease, const struct round *round, uint32_t up,
                          uint64_t now) {
    bool is_stuck = lease_is_watchdog_renewing(lease) && round->verdict == ROUND_OPEN &&
                    round_is_completed_by(round, up);
    return lease->is_unrenewed && (lease->state == LEASE_HELD || is_stuck) &&
           lease->holding.early_renewals < (uint32_t)__builtin_popcount(lease->members) &&
           now < lease->holding.lost_at;
}

void hold_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                    struct lease_update *update) {
    if (may_renew_now(lease, round, up, now)) {
        lease->holding.early_renewals++;
        renew_unless_too_late(lease, now, update);
    }
}

void hold_decided(struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update) {
    assert(round->kind == ROUND_RENEW);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    redlock_status status = REDLOCK_OK;
    if (now >= lease->holding.validity_end) {
        lose(lease, REDLOCK_EEXPIRED, update);
        return;
    }
    if (round->verdict == ROUND_GONE) {
        lose(lease, REDLOCK_ELOST, update);
        return;
    }
    if (round->verdict == ROUND_YES && lease_leaves_validity(lease, end, now)) {
        if (lease->extending) {
            lease->ttl = round->ttl; /* of renewals, too */
            draw_phase(lease, round->start);
        }
        round_was_yes(lease, round, end, now);
        top_up_after(lease, round, now, update);
        update->watch = lease->terms->watches;
    } else {
        status = round->verdict == ROUND_YES ? REDLOCK_EEXPIRED : REDLOCK_ENOQUORUM;
        if (round->verdict == ROUND_NO && round_was_kept(round)) { /* the next list lacks it yet */
            top_up_after(lease, round, now, update);
        }
        hold_renewal_failed(lease, now);
    }
    hold_end_extension(lease, status, update);
}

/* Counts a renewal whose quorum was complete only after its round had ended. */
static void renewed_late(struct lease *lease, const struct round *round, uint64_t now) {
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    if (lease_leaves_validity(lease, end, now)) {
        round_was_yes(lease, round, end, now);
    }
}

void hold_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    if (lease->state != LEASE_HELD || now >= lease->holding.lost_at) {
        return;
    }
    bool is_renewed = round->kind == ROUND_RENEW && round_was_granted_late(round);
    if (is_renewed && lease->is_unrenewed) {
        renewed_late(lease, round, now);
    }
    if (is_renewed || round_was_kept(round)) {
        top_up_after(lease, round, now, update);
    }
}
