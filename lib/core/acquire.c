#include "core/acquire.h"

#include "core/backoff.h"
#include "core/change.h"
#include "core/hold.h"
#include "core/permits.h"
#include "core/tries.h"
#include "core/validity.h"

/* Returns the instant at which a round sent now leaves too little validity. */
static uint64_t usable_until(const struct lease *lease, uint64_t now) {
    const struct lease_terms *terms = lease->terms;
    return nanos_sub(validity_end(now, lease->ttl, terms->drift), terms->min_validity);
}

void acquire_ask(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease_set_state(lease, LEASE_ACQUIRING);
    change_round_sent(lease, now, 0);
    lease->trying.poll_at = NANOS_NEVER;
    /* A quorum that comes after the validity is over would be of no use: do not wait for it. */
    lease_send(lease, lease->terms->queues ? ROUND_QUEUE : ROUND_ACQUIRE, now,
               usable_until(lease, now), update);
}

void acquire_try(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease->tries++;
    lease->may_hold = lease->trying.may_queue = 0;
    lease->trying.requeue_at = NANOS_NEVER;
    acquire_ask(lease, now, update);
}

void acquire_begin(struct lease *lease, uint64_t now, struct lease_update *update) {
    uint32_t permits = lease->terms->permits;
    lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
    if (permits > 0) {
        lease->permit = (uint8_t)(backoff_random(lease->terms->seed) % permits);
    }
    acquire_try(lease, now, update);
}

void acquire_fail(struct lease *lease, redlock_status status, uint64_t now,
                  struct lease_update *update) {
    assert(lease_is_acquiring(lease) && status != REDLOCK_OK);
    lease_set_state(lease, LEASE_OVER);
    lease->failure = (int8_t)status;
    lease->completed_at = now;
    lease->wake_at = NANOS_NEVER;
    update_notify(update, LEASE_ACQUIRED, status);
}

/* Goes on to another permit if the nodes know of one that is free; returns whether it did. */
static bool retry_permit(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    struct permit_choice choice = permits_choose(round, lease->permit, lease->terms->seed);
    lease->permit = (uint8_t)choice.permit;
    if (!choice.is_promising || round->verdict == ROUND_YES ||
        lease->trying.permit_retries_left == 0 || now >= lease->trying.give_up_at) {
        lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
        return false;
    }
    lease->permit_retries++;
    lease->trying.permit_retries_left--;
    update->undo = lease->may_hold;
    acquire_try(lease, now, update);
    return true;
}

void acquire_give_up(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    uint32_t deniers = round_deniers(round);
    lease->failure = (int8_t)tries_failure(round);
    if (deniers == 0) {
        update->undo = lease->may_hold;
        acquire_fail(lease, lease->failure, now, update);
        return;
    }
    lease_set_state(lease, LEASE_DIAGNOSING);
    lease_send(lease, ROUND_DIAGNOSE, now, NANOS_NEVER, update);
    update->awaited = deniers;
}

/* Undoes the failed try at the nodes of `lease->may_hold`, and goes on to the next try, if any. */
static void try_failed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update) {
    uint64_t delay;
    lease->failure = (int8_t)tries_failure(round);
    if (lease->failure == REDLOCK_EACCESS) { /* for an operator to mend: no further try */
        acquire_give_up(lease, round, now, update);
        return;
    }
    if (retry_permit(lease, round, now, update)) {
        return;
    }
    if (tries_draw_delay(lease, now, &delay)) {
        update->undo = lease->may_hold;
        lease_set_state(lease, LEASE_BACKOFF);
        lease->wake_at = nanos_add(now, delay);
        return;
    }
    acquire_give_up(lease, round, now, update);
}

void acquire_again(struct lease *lease, uint64_t now, struct lease_update *update) {
    assert(lease->state == LEASE_BACKOFF);
    if (now >= lease->trying.give_up_at) {
        acquire_fail(lease, lease->failure, now, update);
    } else {
        lease->trying.requeues = 0;
        acquire_try(lease, now, update);
    }
}

/* Raises the counters to the fence, within the time of the try, as often as needed. */
static void raise_fence(struct lease *lease, uint64_t now, uint64_t until,
                        struct lease_update *update) {
    lease_set_state(lease, LEASE_RAISING);
    lease_send(lease, ROUND_RAISE, now, until, update);
}

void acquire_confirm(struct lease *lease, uint64_t now, struct lease_update *update) {
    raise_fence(lease, now, usable_until(lease, now), update);
}

/* Takes a quorum of which some were pushed, whose nodes keep the key for a reservation. */
static void take_pushes(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                        struct lease_update *update) {
    uint64_t until = round_certain_until(round, end);
    bool agrees = !lease->terms->fenced || round_agrees(round, lease->fence);
    if (lease->terms->trusts_pushes && agrees && lease_leaves_validity(lease, until, now)) {
        hold_begin(lease, round, until, now, update);
        hold_renew_at(lease, nanos_add(now, nanos_sub(until, now) / 4));
    } else {
        acquire_confirm(lease, now, update);
    }
}

/* Returns whether no quorum granted at once, so that its validity does not count from the start. */
static bool needed_pushes(const struct round *round) {
    return round->pushed != 0 &&
           !round_has_quorum(round, round_voters(round, REDLOCK_VOTE_GRANTED) & ~round->pushed);
}

void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    assert(round->kind == ROUND_ACQUIRE || round->kind == ROUND_QUEUE);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    lease->may_hold |= round_possible_holders(round);
    lease->may_hold |= lease->trying.may_queue;
    lease->fence = lease->terms->fenced ? round_fence(round) : 0;
    if (round->verdict == ROUND_YES && needed_pushes(round)) {
        take_pushes(lease, round, end, now, update);
    } else if (round->verdict != ROUND_YES || !lease_leaves_validity(lease, end, now)) {
        try_failed(lease, round, now, update);
    } else if (lease->terms->fenced && !round_agrees(round, lease->fence)) {
        raise_fence(lease, now, round->usable_until, update);
    } else {
        hold_begin(lease, round, end, now, update);
    }
}

/*
 * A node that granted the key too late to be counted may be further than the others, perhaps
 * because another lock had the key there meanwhile, with just this fence. So a node counts only if
 * its counter is the fence; otherwise all are raised to the largest counter, and asked again.
 *
 * A counter beyond the limit may be a lie, to which all would be raised; or what a client raised to
 * that knows the clocks a little better. So such counters do not count until a quorum cannot be had
 * without them, and then the smallest first: where a quorum of nodes is sound, no fence is larger
 * than the largest counter of these.
 */
void acquire_raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                           struct lease_update *update) {
    assert(round->kind == ROUND_RAISE);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    bool is_further = round->verdict == ROUND_YES && !round_agrees(round, lease->fence);
    uint64_t beyond = round->verdict == ROUND_NO ? round_fence_beyond(round) : 0;
    if (beyond > lease->fence && now < round->usable_until) {
        lease->fence = beyond;
        raise_fence(lease, now, round->usable_until, update);
    } else if (round->verdict != ROUND_YES || !lease_leaves_validity(lease, end, now) ||
               (is_further && now >= round->usable_until)) {
        try_failed(lease, round, now, update);
    } else if (is_further) {
        lease->fence = round_fence(round);
        raise_fence(lease, now, round->usable_until, update);
    } else {
        hold_begin(lease, round, end, now, update);
    }
}
