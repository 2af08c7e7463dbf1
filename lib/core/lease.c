/*
 * The happy path: lease_start sends a round; its verdict is yes, a fresh clock reading leaves
 * enough validity, the lock is HELD. (A fenced lock is, when the counters of a quorum agree; else
 * the largest of them is raised to on a quorum first: RAISING. Any later winner shares a node with
 * that quorum, whose counter was just the fence before the key left it.) With a watchdog it
 * renews every third of the TTL, at instants that are drawn for each lock, and kept to: locks that
 * were acquired together, or that a busy loop has renewed together, do not stay together.
 * lease_release sends the last round, whose verdict tells whether the lock was ours
 * to the end.
 *
 * What goes wrong: a try that fails is undone at every node that may have granted it, in the same
 * step, and the next comes after a random delay (BACKOFF), while retries and time last; with
 * permits, at once, as long as the nodes tell of another one that is free. The last failure asks
 * those who denied what they hold (SETTLING), for the report. A renewal waits as long as only
 * silent nodes can make up its quorum: they answer in order, and would not answer another one
 * earlier. Otherwise it has half of the time that is left; grants that come later still count,
 * until there is another round. One that fails is tried again after nearly half of the time that is
 * left, or when a node comes up; a lock is LOST when so many nodes say that the key is not ours
 * that no quorum has it, and at the latest just before its validity ends.
 */
#include "core/lease.h"

#include "base/nanos.h"
#include "core/backoff.h"
#include "core/permits.h"
#include "core/quorum.h"
#include "core/validity.h"

/* A loop's timers may be late by the grain of its clock: the loss is told so much earlier. */
#define LOSS_MARGIN (10 * NANOS_PER_MS)

/* The most by which a renewal is early so as to travel with others. */
#define RENEWAL_GRAIN (10 * NANOS_PER_MS)

/* A renewal that failed is tried again no earlier than after this part of the TTL. */
#define RENEWAL_TRIES 20

/* So often in a row another permit is tried at once: who loses each race had better pause. */
#define HOPS_MAX 4

const char *lease_state_name(enum lease_state state) {
    static const char *const names[] = {"acquiring", "raising", "backoff",   "settling", "held",
                                        "renewing",  "lost",    "releasing", "over"};
    return names[state];
}

static bool is_acquiring(const struct lease *lease) {
    return lease->state == LEASE_ACQUIRING || lease->state == LEASE_RAISING ||
           lease->state == LEASE_BACKOFF || lease->state == LEASE_SETTLING;
}

static bool is_held(const struct lease *lease) {
    return lease->state == LEASE_HELD || lease->state == LEASE_RENEWING;
}

static void send(struct lease_update *update, enum round_kind round, uint32_t awaited) {
    update->send = true;
    update->round = round;
    update->awaited = awaited;
}

static void tell(struct lease_update *update, enum lease_news news, redlock_status status) {
    update->news |= news;
    redlock_status *told = news == LEASE_ACQUIRED   ? &update->acquired
                           : news == LEASE_EXTENDED ? &update->extended
                           : news == LEASE_LOSS     ? &update->loss
                                                    : &update->released;
    *told = status;
}

/* ---- the deadline of a round ---- */

/* A renewal is not in the hurry of an acquisition; an application that extends waits for it. */
static uint64_t patience(const struct lease *lease, uint64_t now, uint64_t useless_at) {
    bool is_renewal = lease->state == LEASE_RENEWING && !lease->extending;
    return is_renewal ? nanos_sub(useless_at, now) / 2 : lease->terms.node_timeout;
}

static void wait_for_round(struct lease *lease, uint64_t now, uint64_t useless_at) {
    lease->useless_at = useless_at;
    lease->patience = nanos_min(patience(lease, now, useless_at), nanos_sub(useless_at, now));
    lease->wake_at = nanos_add(now, lease->patience);
}

uint64_t lease_round_ttl(const struct lease *lease) {
    return lease->extending ? lease->extension_ttl : lease->terms.ttl;
}

void lease_sent(struct lease *lease, uint64_t now) {
    if (lease->state == LEASE_ACQUIRING || lease->state == LEASE_RAISING ||
        lease->state == LEASE_SETTLING || lease->state == LEASE_RENEWING ||
        lease->state == LEASE_RELEASING) {
        wait_for_round(lease, now, lease->useless_at);
    }
}

/* ---- acquiring ---- */

static void try_once(struct lease *lease, uint64_t now, struct lease_update *update) {
    const struct lease_terms *terms = &lease->terms;
    lease->state = LEASE_ACQUIRING;
    lease->tries++;
    send(update, ROUND_ACQUIRE, 0);
    /* A quorum that comes after the validity is over would be of no use: do not wait for it. */
    wait_for_round(lease, now,
                   nanos_sub(validity_end(now, terms->ttl, terms->drift), terms->min_validity));
}

void lease_start(struct lease *lease, const struct lease_terms *terms, uint32_t members,
                 uint64_t seed, uint64_t now, struct lease_update *update) {
    *lease = (struct lease){.terms = *terms,
                            .members = members,
                            .seed = seed,
                            .begun_at = now,
                            .hops_left = HOPS_MAX,
                            .renew_at = NANOS_NEVER,
                            .longest_ttl = nanos_add(terms->ttl, terms->lock_delay)};
    *update = (struct lease_update){0};
    if (terms->permits > 0) {
        lease->permit = (uint32_t)(backoff_random(&lease->seed) % terms->permits);
    }
    try_once(lease, now, update);
}

static redlock_status why_not_acquired(const struct round *round) {
    if (round->verdict == ROUND_YES) {
        return REDLOCK_EEXPIRED;
    }
    uint32_t denied = round_deniers(round);
    uint32_t voted = round->members & ~round->silent;
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t failed = voted & ~granted & ~denied; /* late votes are in all three */
    bool held = denied != 0;
    for (unsigned i = 0; i < round->tally_count; i++) {
        const struct tally *tally = &round->tallies[i];
        uint32_t count = (uint32_t)__builtin_popcount(tally->members & failed);
        held = held && !quorum_is_blocked(tally->size, count);
    }
    /* Where the nodes that did not answer would not have been in the way, it was the holders. */
    return held ? REDLOCK_EHELD : REDLOCK_ENOQUORUM;
}

void lease_reconsider(struct lease *lease, const struct round *tried) {
    if (lease->state == LEASE_BACKOFF || lease->state == LEASE_SETTLING) {
        lease->failure = why_not_acquired(tried);
    }
}

static void acquisition_ends(struct lease *lease, redlock_status status, uint64_t now,
                             struct lease_update *update) {
    lease->state = LEASE_OVER;
    lease->told_at = now;
    lease->wake_at = NANOS_NEVER;
    tell(update, LEASE_ACQUIRED, status);
}

/* Tries that a retry was used up for, or the first; those that came at once are not. */
static uint32_t attempts(const struct lease *lease) {
    return lease->tries - 1 - lease->hops;
}

static bool may_try_again(const struct lease *lease, uint64_t now) {
    return attempts(lease) < lease->terms.retries && now < lease->terms.give_up_at;
}

/* The longest that the next try may wait. */
static uint64_t longest_delay(const struct lease *lease, uint64_t now) {
    const struct lease_terms *terms = &lease->terms;
    uint64_t bound = backoff_bound(terms->retry_delay, terms->retry_delay_max, attempts(lease));
    return nanos_min(bound, nanos_sub(terms->give_up_at, now));
}

/* This try's votes and the next one's commands are on their way no longer than a round lasts. */
uint64_t lease_next_try_within(const struct lease *lease, uint64_t now) {
    uint64_t rounds = nanos_add(lease->terms.node_timeout, lease->terms.node_timeout);
    return may_try_again(lease, now)
               ? nanos_min(lease->terms.ttl, nanos_add(longest_delay(lease, now), rounds))
               : 0;
}

/* Goes on to a permit that is free, if the nodes know of one. True when it did. */
static bool hop(struct lease *lease, const struct round *round, uint64_t now,
                struct lease_update *update) {
    struct permit_choice choice = permits_choose(round, lease->permit, &lease->seed);
    lease->permit = choice.permit;
    if (!choice.is_promising || round->verdict == ROUND_YES || lease->hops_left == 0 ||
        now >= lease->terms.give_up_at) {
        lease->hops_left = HOPS_MAX;
        return false;
    }
    lease->hops++;
    lease->hops_left--;
    update->undo = lease->may_hold;
    try_once(lease, now, update);
    return true;
}

/* `lease->may_hold` may hold the key for the try. */
static void try_failed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update) {
    lease->failure = why_not_acquired(round);
    if (hop(lease, round, now, update)) {
        return;
    }
    if (may_try_again(lease, now)) {
        uint64_t delay = backoff_draw(&lease->seed, longest_delay(lease, now));
        if (delay < lease->terms.give_up_at - now) {
            update->undo = lease->may_hold;
            lease->state = LEASE_BACKOFF;
            lease->wake_at = nanos_add(now, delay);
            return;
        }
    }
    uint32_t deniers = round_deniers(round);
    if (deniers == 0) {
        update->undo = lease->may_hold;
        acquisition_ends(lease, lease->failure, now, update);
        return;
    }
    lease->state = LEASE_SETTLING;
    wait_for_round(lease, now, NANOS_NEVER);
    send(update, ROUND_SETTLE, deniers);
}

/* ---- holding ---- */

static void rest(struct lease *lease) {
    lease->state = LEASE_HELD;
    lease->wake_at = nanos_min(lease->renew_at, lease->lost_at);
}

/* What does not last longer changes nothing: the margin is that of when the end was gained. */
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

/* Locks renew at multiples of this: those that do at the same one travel together. */
static uint64_t grain(const struct lease *lease) {
    return nanos_max(nanos_min(RENEWAL_GRAIN, lease->terms.ttl / 24), 1);
}

uint64_t lease_interval(const struct lease *lease) {
    uint64_t third = lease->terms.ttl / 3;
    return nanos_max(third - third % grain(lease), 1);
}

/* Any instant of an interval is as good as another for one lock: a crowd is spread over all. */
static void draw_phase(struct lease *lease, uint64_t start) {
    uint64_t drawn = nanos_add(start, backoff_random(&lease->seed) % lease_interval(lease));
    lease->phase = drawn - drawn % grain(lease);
}

/* Returns the last of the lock's instants that is at most one interval after `start`. */
static uint64_t next_renewal(const struct lease *lease, uint64_t start) {
    uint64_t interval = lease_interval(lease);
    return start < lease->phase ? lease->phase
                                : nanos_add(start, interval - (start - lease->phase) % interval);
}

static void round_was_yes(struct lease *lease, const struct round *round, uint64_t end,
                          uint64_t now) {
    lease->is_unrenewed = false;
    lease->hurried = 0;
    set_validity(lease, end, now);
    plan_renewal(lease, next_renewal(lease, round->start));
    rest(lease);
}

/* Nodes that turned out to lack the key get it, for as long as those that have it keep it. */
static void top_up(struct lease *lease, uint32_t lacking, uint64_t until, uint64_t now,
                   struct lease_update *update) {
    update->top_up = lacking & lease->members & ~lease->topped_up;
    update->top_up_ttl = nanos_sub(until, now);
    lease->topped_up |= update->top_up;
    lease->may_hold |= update->top_up;
}

/* Nodes without the key, and those that were not asked. */
static uint32_t lacking_after(const struct round *round) {
    return round_voters(round, REDLOCK_VOTE_MISSING) | ~round->members;
}

/* After a round that did it. */
static void top_up_after(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    top_up(lease, lacking_after(round), nanos_add(round->start, round->ttl), now, update);
}

void lease_move(struct lease *lease, uint32_t members, uint64_t now, struct lease_update *update) {
    uint32_t joining = members & ~lease->members;
    *update = (struct lease_update){0};
    lease->members = members;
    if (is_held(lease) && now < lease->lost_at) {
        lease->topped_up &= ~joining; /* it was another node then */
        top_up(lease, joining, lease->validity_end, now, update);
    }
}

static bool leaves_validity(const struct lease *lease, uint64_t end, uint64_t now) {
    return end > nanos_add(now, lease->terms.min_validity);
}

static void acquired(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                     struct lease_update *update) {
    lease->acquired_at = lease->told_at = now;
    draw_phase(lease, round->start);
    lease->stay_until =
        lease->terms.min_hold != 0 ? nanos_add(round->start, lease->terms.min_hold) : 0;
    round_was_yes(lease, round, end, now);
    update->top_up_later = (lacking_after(round) & lease->members) != 0;
    tell(update, LEASE_ACQUIRED, REDLOCK_OK);
}

/* In the time of the try, however often. */
static void raise_fence(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease->state = LEASE_RAISING;
    send(update, ROUND_RAISE, 0);
    wait_for_round(lease, now, lease->useless_at);
}

static void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update) {
    uint64_t end = validity_end(round->start, round->ttl, lease->terms.drift);
    lease->may_hold = round_possible_holders(round);
    lease->fence = lease->terms.fenced ? round_fence(round) : 0;
    if (round->verdict != ROUND_YES || !leaves_validity(lease, end, now)) {
        try_failed(lease, round, now, update);
    } else if (lease->terms.fenced && !round_agrees(round, lease->fence)) {
        raise_fence(lease, now, update);
    } else {
        acquired(lease, round, end, now, update);
    }
}

/*
 * A node that granted the key too late to be looked at may be further than the others, perhaps
 * because somebody else had it there meanwhile, with just this fence. So a node counts only when
 * its counter is the fence; otherwise all are raised to the largest, and asked again.
 */
static void raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                          struct lease_update *update) {
    uint64_t end = validity_end(round->start, round->ttl, lease->terms.drift);
    bool is_further = round->verdict == ROUND_YES && !round_agrees(round, lease->fence);
    if (round->verdict != ROUND_YES || !leaves_validity(lease, end, now) ||
        (is_further && now >= lease->useless_at)) {
        try_failed(lease, round, now, update);
    } else if (is_further) {
        lease->fence = round_fence(round);
        raise_fence(lease, now, update);
    } else {
        acquired(lease, round, end, now, update);
    }
}

static void lose(struct lease *lease, redlock_status status, struct lease_update *update) {
    if (lease->extending) {
        lease->extending = false;
        tell(update, LEASE_EXTENDED, status);
    }
    lease->state = LEASE_LOST;
    lease->loss = status;
    lease->is_unrenewed = false;
    lease->validity_end = 0;
    lease->wake_at = NANOS_NEVER;
    tell(update, LEASE_LOSS, status);
}

static void renew(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease->state = LEASE_RENEWING;
    lease->topped_up = 0;
    send(update, ROUND_RENEW, 0);
    wait_for_round(lease, now, lease->lost_at);
}

/* The timer may come late: then max_hold may be over by now. */
static void renew_unless_too_late(struct lease *lease, uint64_t now, struct lease_update *update) {
    plan_renewal(lease, now);
    if (lease->renew_at == NANOS_NEVER) {
        rest(lease);
    } else {
        renew(lease, now, update);
    }
}

/* Each try nearly halves what is left, so that there are few of them, however many the locks. */
static void renewal_failed(struct lease *lease, uint64_t now) {
    uint64_t left = nanos_sub(lease->lost_at, now);
    uint64_t least = nanos_max(left / 8 * 3, lease->terms.ttl / RENEWAL_TRIES);
    uint64_t at = nanos_add(now, least + backoff_draw(&lease->seed, left / 8));
    lease->is_unrenewed = true;
    plan_renewal(lease, nanos_add(at, grain(lease) - at % grain(lease)));
    rest(lease);
}

/* The silent ones answer this round first, if at all: until then another one is of no use. */
static bool wait_on(struct lease *lease, const struct round *round, uint64_t now) {
    bool is_renewal = lease->state == LEASE_RENEWING && !lease->extending;
    if (!is_renewal || round->verdict != ROUND_OPEN || !round_needs_silent(round)) {
        return false;
    }
    uint64_t left = nanos_sub(lease->useless_at, now);
    lease->is_unrenewed = true;
    lease->wake_at = left > 2 * LOSS_MARGIN ? nanos_add(now, left / 2) : lease->useless_at;
    return true;
}

static bool may_hurry(const struct lease *lease, const struct round *round, uint64_t now) {
    bool is_stuck = lease->state == LEASE_RENEWING && !lease->extending &&
                    round->verdict == ROUND_OPEN && !round_needs_silent(round);
    return lease->is_unrenewed && (lease->state == LEASE_HELD || is_stuck) &&
           lease->hurried < (uint32_t)__builtin_popcount(lease->members) && now < lease->lost_at;
}

void lease_hurry(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update) {
    *update = (struct lease_update){0};
    if (may_hurry(lease, round, now)) {
        lease->hurried++;
        renew_unless_too_late(lease, now, update);
    }
}

static void renewal_decided(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update) {
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
    if (round->verdict == ROUND_YES && leaves_validity(lease, end, now)) {
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
        renewal_failed(lease, now);
    }
    if (lease->extending) {
        lease->extending = false;
        tell(update, LEASE_EXTENDED, status);
    }
}

void lease_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update) {
    *update = (struct lease_update){0};
    if (lease->state != LEASE_HELD || now >= lease->lost_at) {
        return;
    }
    uint64_t end = validity_end(round->start, round->ttl, lease->terms.drift);
    bool is_renewed = round->kind == ROUND_RENEW && round_was_granted_late(round);
    if (is_renewed && lease->is_unrenewed && leaves_validity(lease, end, now)) {
        round_was_yes(lease, round, end, now);
    }
    if (is_renewed || round_was_kept(round)) {
        top_up_after(lease, round, now, update);
    }
}

/* ---- events ---- */

static redlock_status release_verdict(const struct round *round) {
    switch (round->verdict) {
    case ROUND_YES:
        return REDLOCK_OK;
    case ROUND_GONE:
        return REDLOCK_ELOST;
    default:
        return REDLOCK_ENOQUORUM;
    }
}

static void dispatch_verdict(struct lease *lease, const struct round *round, uint64_t now,
                             struct lease_update *update) {
    switch (lease->state) {
    case LEASE_ACQUIRING:
        acquire_decided(lease, round, now, update);
        break;
    case LEASE_RAISING:
        raise_decided(lease, round, now, update);
        break;
    case LEASE_RENEWING:
        renewal_decided(lease, round, now, update);
        break;
    case LEASE_SETTLING:
        acquisition_ends(lease, lease->failure, now, update);
        break;
    case LEASE_RELEASING:
        lease->state = LEASE_OVER;
        lease->wake_at = NANOS_NEVER;
        tell(update, LEASE_RELEASED, release_verdict(round));
        break;
    default: /* nobody waits for a round */
        break;
    }
}

void lease_decided(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update) {
    *update = (struct lease_update){0};
    dispatch_verdict(lease, round, now, update);
}

void lease_woken(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update) {
    *update = (struct lease_update){0};
    if (now < lease->wake_at) {
        return;
    }
    if (is_held(lease) && now >= lease->lost_at) {
        lose(lease, REDLOCK_EEXPIRED, update);
    } else if (lease->state == LEASE_HELD) {
        renew_unless_too_late(lease, now, update);
    } else if (lease->state == LEASE_BACKOFF && now >= lease->terms.give_up_at) {
        acquisition_ends(lease, lease->failure, now, update); /* the loop was busy */
    } else if (lease->state == LEASE_BACKOFF) {
        try_once(lease, now, update);
    } else if (round != NULL && !wait_on(lease, round, now)) {
        round_expire(round);
        dispatch_verdict(lease, round, now, update);
    }
}

void lease_out_of_memory(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    switch (lease->state) {
    case LEASE_ACQUIRING:
        acquisition_ends(lease, REDLOCK_ENOMEM, now, update);
        break;
    case LEASE_RAISING:
        update->undo = lease->may_hold;
        acquisition_ends(lease, REDLOCK_ENOMEM, now, update);
        break;
    case LEASE_SETTLING:
        update->undo = lease->may_hold;
        acquisition_ends(lease, lease->failure, now, update);
        break;
    case LEASE_RENEWING:
        if (lease->extending) {
            lease->extending = false;
            tell(update, LEASE_EXTENDED, REDLOCK_ENOMEM);
        }
        renewal_failed(lease, now);
        break;
    case LEASE_RELEASING:
        lease->state = LEASE_OVER;
        lease->wake_at = NANOS_NEVER;
        tell(update, LEASE_RELEASED, REDLOCK_ENOMEM);
        break;
    default: /* it has moved on meanwhile */
        break;
    }
}

redlock_status lease_cancel(struct lease *lease, const struct round *round, uint64_t now,
                            struct lease_update *update) {
    *update = (struct lease_update){0};
    if (!is_acquiring(lease)) {
        return REDLOCK_EINVAL;
    }
    if (lease->state == LEASE_ACQUIRING && round != NULL) {
        update->undo = round_possible_holders(round);
    } else if (lease->state == LEASE_RAISING ||
               (lease->state == LEASE_SETTLING && round->kind != ROUND_SETTLE)) {
        update->undo = lease->may_hold; /* the SETTLE could not be sent: `round` is the try's */
    }
    acquisition_ends(lease, REDLOCK_ECANCELED, now, update);
    return REDLOCK_OK;
}

redlock_status lease_extend(struct lease *lease, uint64_t ttl, uint64_t now,
                            struct lease_update *update) {
    *update = (struct lease_update){0};
    if (lease->state == LEASE_LOST || (is_held(lease) && now >= lease->lost_at)) {
        return REDLOCK_ELOST;
    }
    if (!is_held(lease)) {
        return REDLOCK_EINVAL;
    }
    if (lease->extending) {
        return REDLOCK_EBUSY;
    }
    lease->extension_ttl = ttl;
    lease->longest_ttl = nanos_max(lease->longest_ttl, nanos_add(ttl, lease->terms.lock_delay));
    lease->extending = true;
    renew(lease, now, update); /* a renewal under way is superseded: this one counts from now */
    return REDLOCK_OK;
}

redlock_status lease_release(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    if (!is_held(lease) && lease->state != LEASE_LOST) {
        return REDLOCK_EINVAL;
    }
    if (lease->extending) {
        lease->extending = false;
        tell(update, LEASE_EXTENDED, REDLOCK_ECANCELED);
    }
    lease->state = LEASE_RELEASING;
    lease->is_unrenewed = false;
    lease->validity_end = 0;
    wait_for_round(lease, now, NANOS_NEVER);
    send(update, ROUND_RELEASE, 0);
    return REDLOCK_OK;
}

void lease_close(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update) {
    if (is_acquiring(lease)) {
        lease_cancel(lease, round, now, update);
        update->acquired = REDLOCK_ECLOSED;
        return;
    }
    bool was_held = is_held(lease);
    if (lease_release(lease, now, update) != REDLOCK_OK) {
        return; /* it is being released already, or over */
    }
    if (update->news & LEASE_EXTENDED) {
        update->extended = REDLOCK_ECLOSED;
    }
    if (was_held) {
        tell(update, LEASE_LOSS, REDLOCK_ECLOSED);
    }
}

uint64_t lease_validity(const struct lease *lease, uint64_t now) {
    return is_held(lease) ? nanos_sub(lease->validity_end, now) : 0;
}
