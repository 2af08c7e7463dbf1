#include "core/hold.h"

#include "core/change.h"
#include "core/renewal.h"
#include "core/validity.h"

/* How long before the validity ends the loss is reported: timers of a loop may be late. */
#define LOSS_MARGIN (10 * NANOS_PER_MS)

/* Waits in HELD for the next renewal, planned for `at` (NANOS_NEVER: none), or for the loss. */
static void rest(struct lease *lease, uint64_t at) {
    lease_set_state(lease, LEASE_HELD);
    lease->renews = at != NANOS_NEVER;
    /* A change notification brings a planned renewal forward; it does not start renewals. */
    uint64_t due = lease->renews ? change_due(lease, at) : NANOS_NEVER;
    lease->wake_at = nanos_min(due, lease->holding.lost_at);
}

/* ---- validity ---- */

/* Prolongs the validity, never shortens it. An end that is no later leaves the margin alone. */
static void set_validity(struct lease *lease, uint64_t end, uint64_t now) {
    struct lease_holding *holding = &lease->holding;
    if (end <= holding->validity_end) {
        return;
    }
    uint64_t left = nanos_sub(end, now);
    holding->validity_end = end;
    /* The margin is at most 1/8 of the validity, so that short locks keep most of theirs. */
    holding->lost_at = nanos_sub(end, nanos_min(LOSS_MARGIN, left / 8));
}

/* Returns the instant of a renewal that is due at `at`, or NANOS_NEVER if none follows. */
static uint64_t plan_renewal(const struct lease *lease, uint64_t at) {
    uint64_t last = nanos_add(lease->completed_at, lease->terms->max_hold);
    /* max_hold bounds the watchdog: no renewal begins after it. */
    return lease->terms->watchdog && at <= last ? at : NANOS_NEVER;
}

/* Holds the lock until `end`, and plans the renewal after a round that began at `start`. */
static void round_was_yes(struct lease *lease, uint64_t start, uint64_t end, uint64_t now) {
    lease->is_unrenewed = false;
    lease->early_renewals = 0;
    set_validity(lease, end, now);
    uint64_t at = NANOS_NEVER;
    if (lease->terms->watchdog) { /* otherwise no renewal follows, and the phase is never used */
        at = renewal_next(&lease->holding.phase, lease->ttl, start, lease->terms->ticks);
    }
    rest(lease, plan_renewal(lease, at));
}

static void draw_phase(struct lease *lease, uint64_t start) {
    lease->holding.phase = renewal_draw_phase(start, lease->ttl, lease->terms->seed);
}

/* ---- topping up ---- */

/* Gives the key to nodes that lack it, for as long as the other nodes keep it. */
static void top_up(struct lease *lease, uint32_t lacking, uint64_t until, uint64_t now,
                   struct lease_update *update) {
    /* At most one top-up of a node between two rounds. */
    update->top_up = lacking & lease->members & ~lease->holding.topped_up;
    update->top_up_ttl = nanos_sub(until, now);
    lease->holding.topped_up |= update->top_up;
    /* The outcome may stay unknown, so the release goes to these nodes, too. */
    lease->may_hold |= update->top_up;
    update->watch |= lease->terms->watches && update->top_up != 0;
}

/* Returns a mask of the nodes without the key, and of those that the round did not ask. */
static uint32_t lacking_after(const struct round *round) {
    uint32_t left_free = round_voters(round, REDLOCK_VOTE_UNTRUSTED) & round->left_free;
    return round_voters(round, REDLOCK_VOTE_MISSING) | left_free | ~round->members;
}

/* Tops up after a round for which a quorum has the key. */
static void top_up_after(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    top_up(lease, lacking_after(round), nanos_add(round->start, round->ttl), now, update);
}

/*
 * Drops, after a renewal, the top-ups that wait for nodes that have the key. The others go on
 * waiting: an answer may never come, and a node that lacks the key keeps its turn.
 */
static void keep_waiting(struct lease *lease, const struct round *round) {
    uint32_t having =
        round_voters(round, REDLOCK_VOTE_GRANTED) | round_voters(round, REDLOCK_VOTE_LATE);
    lease->holding.to_top_up &= ~having;
    lease->holding.topped_up |= lease->holding.to_top_up;
}

/* Tops up nodes of which no round has reported that they lack the key. */
static void top_up_unasked(struct lease *lease, uint32_t nodes, uint64_t now,
                           struct lease_update *update) {
    /* The validity still runs, so the quorum of the last success has the key. */
    if (now < lease->holding.lost_at) {
        lease->holding.topped_up &= ~nodes;
        top_up(lease, nodes, lease->holding.validity_end, now, update);
    }
}

void hold_top_up_joining(struct lease *lease, uint32_t joining, uint64_t now,
                         struct lease_update *update) {
    if (lease_is_held(lease)) {
        /* Indexes are reused, so the flags may be those of other nodes. */
        lease->holding.to_top_up &= lease->members & ~joining;
        top_up_unasked(lease, joining, now, update);
    }
}

void hold_has_room(struct lease *lease, uint32_t nodes, uint64_t now, struct lease_update *update) {
    uint32_t waiting = lease_awaits_room(lease) & nodes;
    if (waiting != 0) {
        lease->holding.to_top_up &= ~waiting;
        top_up_unasked(lease, waiting, now, update);
        update->top_up_has_room = true;
    }
}

/* ---- the beginning and the end ---- */

void hold_begin(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                struct lease_update *update) {
    /* The QUEUE of a pushed grant may have begun long ago. */
    uint64_t since = round->pushed != 0 ? now : round->start;
    lease->completed_at = now;
    lease->was_acquired = true;
    lease->holding = (struct lease_holding){0};
    draw_phase(lease, since);
    lease->holding.stay_until =
        lease->terms->min_hold != 0 ? nanos_add(since, lease->terms->min_hold) : 0;
    round_was_yes(lease, since, end, now);
    update->watch = lease->terms->watches;
    /* The validity is running: success is reported first, and nodes are topped up after that. */
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
    /* In RENEWING a round asks already; rest() takes the notification into account at its end. */
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
    /* Rounds after change notifications are counted: the pauses between them double. */
    change_round_sent(lease, now, lease->may_have_changed ? lease->change_rounds + 1U : 0);
    lease_send(lease, ROUND_RENEW, now, lease->holding.lost_at, update);
}

/* Renews, unless max_hold has passed by now: the timer may be late. */
static void renew_unless_too_late(struct lease *lease, uint64_t now, struct lease_update *update) {
    if (plan_renewal(lease, now) == NANOS_NEVER) {
        rest(lease, NANOS_NEVER);
    } else {
        renew(lease, now, update);
    }
}

static void send_extension(struct lease *lease, uint64_t ttl, uint64_t now,
                           struct lease_update *update) {
    /* Pending releases are kept for as long as any node may keep the key. */
    lease->longest_ttl = nanos_max(lease->longest_ttl, nanos_add(ttl, lease->terms->lock_delay));
    renew(lease, now, update);
    update->ttl = ttl;
}

void hold_extend(struct lease *lease, struct round *round, uint64_t ttl, uint64_t now,
                 struct lease_update *update) {
    assert(!lease->extending);
    lease->extending = true;
    if (lease->state != LEASE_RENEWING || round == NULL) {
        send_extension(lease, ttl, now, update);
        return;
    }
    /* The nodes answer the renewal first; superseded, it would not prolong the validity. */
    round->extension_ttl = ttl;
    lease->wake_at = nanos_min(lease->wake_at, nanos_add(now, lease->terms->patience->most));
}

void hold_renewal_failed(struct lease *lease, uint64_t now) {
    uint64_t left = nanos_sub(lease->holding.lost_at, now);
    lease->is_unrenewed = true;
    uint64_t at = renewal_retry(now, left, lease->ttl, lease->terms->seed, lease->terms->ticks);
    rest(lease, plan_renewal(lease, at));
}

/*
 * Waits on for a renewal's round whose quorum needs silent nodes; returns whether it does. These
 * nodes answer this round before any other, so another round would be useless until then.
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
    /* Report the loss while the validity lasts: after it another client may hold the key. */
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
 * Returns whether to renew now. A round under way is superseded only if it can succeed with the
 * nodes that are up, without those that it still waits for: these may be slow, and would be asked
 * once more for each node that comes up.
 */
static bool may_renew_now(const struct lease *lease, const struct round *round, uint32_t up,
                          uint64_t now) {
    bool is_stuck = lease_is_watchdog_renewing(lease) && round->verdict == ROUND_OPEN &&
                    round_is_completed_by(round, up);
    /* One early renewal for each node at the most: connections that flap must not cause a flood. */
    return lease->is_unrenewed && (lease->state == LEASE_HELD || is_stuck) &&
           lease->early_renewals < (uint32_t)__builtin_popcount(lease->members) &&
           now < lease->holding.lost_at;
}

void hold_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                    struct lease_update *update) {
    if (may_renew_now(lease, round, up, now)) {
        lease->early_renewals++;
        renew_unless_too_late(lease, now, update);
    }
}

void hold_decided(struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update) {
    assert(round->kind == ROUND_RENEW);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    redlock_status status = REDLOCK_OK;
    bool is_extension = lease->extending && round->extension_ttl == 0;
    keep_waiting(lease, round);
    /* The verdict came too late: another client may have held the key since. */
    if (now >= lease->holding.validity_end) {
        lose(lease, REDLOCK_EEXPIRED, update);
        return;
    }
    /* No quorum can have the key any more, whatever the clock says. */
    if (round->verdict == ROUND_GONE) {
        lose(lease, REDLOCK_ELOST, update);
        return;
    }
    /* Redlock, "extending the lock": the same test as for an acquisition. */
    if (round->verdict == ROUND_YES && lease_leaves_validity(lease, end, now)) {
        if (is_extension) {
            lease->ttl = round->ttl; /* renewals use it, too */
            draw_phase(lease, round->start);
        }
        round_was_yes(lease, round->start, end, now);
        top_up_after(lease, round, now, update);
        update->watch = lease->terms->watches;
    } else {
        /* A failed renewal takes nothing away: the lock is held to the end of its old validity. */
        status = round->verdict == ROUND_YES ? REDLOCK_EEXPIRED : REDLOCK_ENOQUORUM;
        /* A quorum of the list has the key, only the next list lacks it: top up, then renew. */
        if (round->verdict == ROUND_NO && round_was_kept(round)) {
            top_up_after(lease, round, now, update);
        } else { /* nodes that lack it may complete the quorum of the next renewal */
            top_up(lease, round_voters(round, REDLOCK_VOTE_MISSING), lease->holding.validity_end,
                   now, update);
        }
        hold_renewal_failed(lease, now);
    }
    if (is_extension) {
        hold_end_extension(lease, status, update);
    } else if (lease->extending) {
        send_extension(lease, round->extension_ttl, now, update);
    }
}

/* Counts a renewal whose quorum was complete only after its round had ended. */
static void renewed_late(struct lease *lease, const struct round *round, uint64_t now) {
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    /* The validity counts from the start of the round, so a late quorum is as good as any. */
    if (lease_leaves_validity(lease, end, now)) {
        round_was_yes(lease, round->start, end, now);
    }
}

bool hold_heeds(const struct round *round, redlock_vote vote) {
    /* The votes of lacking_after. */
    bool may_lack =
        vote == REDLOCK_VOTE_MISSING || (vote == REDLOCK_VOTE_UNTRUSTED && round->left_free != 0);
    return may_lack ? round_was_kept(round)
                    : vote == REDLOCK_VOTE_GRANTED && round->kind == ROUND_RENEW &&
                          round_was_granted_late(round);
}

void hold_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    /* A newer round, or the end, has superseded these votes. */
    if (lease->state != LEASE_HELD || now >= lease->holding.lost_at) {
        return;
    }
    bool is_renewed = round->kind == ROUND_RENEW && round_was_granted_late(round);
    if (is_renewed && lease->is_unrenewed) {
        renewed_late(lease, round, now);
    }
    /* Without a quorum that has the key it may be another client's: then nothing is topped up. */
    if (is_renewed || round_was_kept(round)) {
        top_up_after(lease, round, now, update);
    }
}
