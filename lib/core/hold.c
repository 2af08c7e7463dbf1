#include "core/hold.h"

#include "core/renewal.h"
#include "core/validity.h"

/* The loss is told so much before its time: a loop's timers are late by up to their grain. */
#define LOSS_MARGIN (10 * NANOS_PER_MS)

static void rest(struct lease *lease) {
    lease_set_state(lease, LEASE_HELD);
    lease->wake_at = nanos_min(lease->renew_at, lease->lost_at);
}

/* ---- validity ---- */

/* Prolongs the validity, never shortens it: an end that is no later also leaves the margin. */
static void set_validity(struct lease *lease, uint64_t end, uint64_t now) {
    if (end <= lease->validity_end) {
        return;
    }
    lease->validity_end = end;
    uint64_t left = nanos_sub(end, now);
    lease->lost_at = nanos_sub(lease->validity_end, nanos_min(LOSS_MARGIN, left / 8));
}

static void plan_renewal(struct lease *lease, uint64_t at) {
    uint64_t last = nanos_add(lease->acquired_at, lease->terms.max_hold);
    lease->renew_at = lease->terms.watchdog && at <= last ? at : NANOS_NEVER;
}

static void round_was_yes(struct lease *lease, const struct round *round, uint64_t end,
                          uint64_t now) {
    lease->is_unrenewed = false;
    lease->hurried = 0;
    set_validity(lease, end, now);
    plan_renewal(lease, renewal_next(lease->phase, lease->terms.ttl, round->start));
    rest(lease);
}

static void draw_phase(struct lease *lease, uint64_t start) {
    lease->phase = renewal_draw_phase(start, lease->terms.ttl, &lease->seed);
}

/* ---- topping up ---- */

/* Gives the key to nodes that lack it, for as long as the nodes that have it keep it. */
static void top_up(struct lease *lease, uint32_t lacking, uint64_t until, uint64_t now,
                   struct lease_update *update) {
    update->top_up = lacking & lease->members & ~lease->topped_up;
    update->top_up_ttl = nanos_sub(until, now);
    lease->topped_up |= update->top_up;
    lease->may_hold |= update->top_up;
}

/* Returns a mask of the nodes without the key, and of those that were not asked. */
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
    if (lease_is_held(lease) && now < lease->lost_at) {
        lease->topped_up &= ~joining; /* their slots were other nodes' then */
        top_up(lease, joining, lease->validity_end, now, update);
    }
}

/* ---- the beginning and the end ---- */

void hold_begin(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                struct lease_update *update) {
    uint64_t since = round->pushed != 0 ? now : round->start;
    lease->acquired_at = lease->told_at = now;
    draw_phase(lease, since);
    lease->stay_until = lease->terms.min_hold != 0 ? nanos_add(since, lease->terms.min_hold) : 0;
    round_was_yes(lease, round, end, now);
    update->top_up_later = (lacking_after(round) & lease->members) != 0;
    update_tell(update, LEASE_ACQUIRED, REDLOCK_OK);
}

void hold_renew_at(struct lease *lease, uint64_t at) {
    plan_renewal(lease, at);
    rest(lease);
}

void hold_end_extension(struct lease *lease, redlock_status status, struct lease_update *update) {
    if (lease->extending) {
        lease->extending = false;
        update_tell(update, LEASE_EXTENDED, status);
    }
}

static void lose(struct lease *lease, redlock_status status, struct lease_update *update) {
    hold_end_extension(lease, status, update);
    lease_set_state(lease, LEASE_LOST);
    lease->loss = status;
    lease->is_unrenewed = false;
    lease->validity_end = 0;
    lease->wake_at = NANOS_NEVER;
    update_tell(update, LEASE_LOSS, status);
}

/* ---- renewals ---- */

static void renew(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease_set_state(lease, LEASE_RENEWING);
    lease->topped_up = 0;
    update_send(update, ROUND_RENEW, 0);
    lease_await_round(lease, now, lease->lost_at);
}

/* The timer may come late: max_hold may be over by now. */
static void renew_unless_too_late(struct lease *lease, uint64_t now, struct lease_update *update) {
    plan_renewal(lease, now);
    if (lease->renew_at == NANOS_NEVER) {
        rest(lease);
    } else {
        renew(lease, now, update);
    }
}

void hold_extend(struct lease *lease, uint64_t ttl, uint64_t now, struct lease_update *update) {
    assert(!lease->extending);
    lease->extension_ttl = ttl;
    lease->longest_ttl = nanos_max(lease->longest_ttl, nanos_add(ttl, lease->terms.lock_delay));
    lease->extending = true;
    renew(lease, now, update);
}

void hold_renewal_failed(struct lease *lease, uint64_t now) {
    uint64_t left = nanos_sub(lease->lost_at, now);
    lease->is_unrenewed = true;
    plan_renewal(lease, renewal_retry(now, left, lease->terms.ttl, &lease->seed));
    rest(lease);
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
    uint64_t left = nanos_sub(lease->useless_at, now);
    lease->is_unrenewed = true;
    lease->wake_at = left > 2 * LOSS_MARGIN ? nanos_add(now, left / 2) : lease->useless_at;
    return true;
}

bool hold_woken(struct lease *lease, const struct round *round, uint64_t now,
                struct lease_update *update) {
    if (now >= lease->lost_at) {
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
static bool may_hurry(const struct lease *lease, const struct round *round, uint32_t up,
                      uint64_t now) {
    bool is_stuck = lease_is_watchdog_renewing(lease) && round->verdict == ROUND_OPEN &&
                    round_is_completed_by(round, up);
    return lease->is_unrenewed && (lease->state == LEASE_HELD || is_stuck) &&
           lease->hurried < (uint32_t)__builtin_popcount(lease->members) && now < lease->lost_at;
}

void hold_hurry(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                struct lease_update *update) {
    if (may_hurry(lease, round, up, now)) {
        lease->hurried++;
        renew_unless_too_late(lease, now, update);
    }
}

void hold_decided(struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update) {
    assert(round->kind == ROUND_RENEW);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms.drift);
    redlock_status status = REDLOCK_OK;
    if (now >= lease->validity_end) {
        lose(lease, REDLOCK_EEXPIRED, update);
        return;
    }
    if (round->verdict == ROUND_GONE) {
        lose(lease, REDLOCK_ELOST, update);
        return;
    }
    if (round->verdict == ROUND_YES && lease_leaves_validity(lease, end, now)) {
        if (lease->extending) {
            lease->terms.ttl = lease->extension_ttl;
            draw_phase(lease, round->start);
        }
        round_was_yes(lease, round, end, now);
        top_up_after(lease, round, now, update);
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
    uint64_t end = validity_end(round->start, round->ttl, lease->terms.drift);
    if (lease_leaves_validity(lease, end, now)) {
        round_was_yes(lease, round, end, now);
    }
}

void hold_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    if (lease->state != LEASE_HELD || now >= lease->lost_at) {
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
