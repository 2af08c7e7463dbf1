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
    lease->has_new_token = false;
    change_round_sent(lease, now, 0);
    lease->trying.poll_at = NANOS_NEVER;
    /* A quorum that comes after the validity has ended is useless: do not wait for it. */
    lease_send(lease, lease->terms->queues ? ROUND_QUEUE : ROUND_ACQUIRE, now,
               usable_until(lease, now), update);
}

void acquire_try(struct lease *lease, uint64_t now, struct lease_update *update) {
    lease->tries++;
    /* A new token: no node can hold the key for it yet. */
    lease->may_hold = lease->trying.may_queue = 0;
    lease->trying.requeue_at = NANOS_NEVER;
    acquire_ask(lease, now, update);
}

void acquire_begin(struct lease *lease, uint64_t now, struct lease_update *update) {
    uint32_t permits = lease->terms->permits;
    lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
    /* Requests begin at random permits, so that they do not all compete for the first one. */
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

/* Tries another permit at once if the nodes know of a free one. Returns whether it did. */
static bool retry_permit(struct lease *lease, const struct round *round, uint64_t now,
                         struct lease_update *update) {
    struct permit_choice choice = permits_choose(round, lease->permit, lease->terms->seed);
    lease->permit = (uint8_t)choice.permit;
    /* Retry at once only where a quorum may still grant a permit, and a bounded number of times. */
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
    /* No node denied, so there is no other holder to ask about. */
    if (deniers == 0) {
        update->undo = lease->may_hold;
        acquire_fail(lease, lease->failure, now, update);
        return;
    }
    lease_set_state(lease, LEASE_DIAGNOSING);
    lease_send(lease, ROUND_DIAGNOSE, now, NANOS_NEVER, update);
    update->awaited = deniers;
}

/* Undoes the failed try at the nodes of `lease->may_hold`, and plans the next try, if any. */
static void try_failed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update) {
    uint64_t delay;
    lease->failure = (int8_t)tries_failure(round);
    /* Only an operator can grant the missing right, so no further try follows. */
    if (lease->failure == REDLOCK_EACCESS) {
        acquire_give_up(lease, round, now, update);
        return;
    }
    if (retry_permit(lease, round, now, update)) {
        return;
    }
    /* Redlock, "Retry on Failure": undo the try, then wait for a random delay. */
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
    /* A busy loop may wake the lease late: no try begins after give_up_at. */
    if (now >= lease->trying.give_up_at) {
        acquire_fail(lease, lease->failure, now, update);
    } else {
        lease->trying.requeues = 0;
        acquire_try(lease, now, update);
    }
}

/* Raises the counters to the fence, as often as the time of the try allows. */
static void raise_fence(struct lease *lease, uint64_t now, uint64_t until,
                        struct lease_update *update) {
    lease_set_state(lease, LEASE_RAISING);
    lease_send(lease, ROUND_RAISE, now, until, update);
}

void acquire_confirm(struct lease *lease, uint64_t now, struct lease_update *update) {
    raise_fence(lease, now, usable_until(lease, now), update);
}

/* Returns whether what is left of pushed grants is enough: also for a renewal to be answered. */
static bool is_enough(const struct lease *lease, uint64_t until, uint64_t now) {
    const struct lease_terms *terms = lease->terms;
    uint64_t renewal = nanos_min(terms->patience->most, terms->reservation / 2);
    return lease_leaves_validity(lease, until, now) && nanos_sub(until, now) >= renewal;
}

/* Handles a quorum that includes pushed grants, whose nodes keep the key for a reservation. */
static void take_pushes(struct lease *lease, const struct round *round, uint64_t end, uint64_t now,
                        struct lease_update *update) {
    uint64_t until = round_certain_until(round, end);
    bool agrees = !lease->terms->fenced || round_agrees(round, lease->fence);
    /* Nodes keep pushed keys for a reservation: renew after 1/4 of what is left of it. */
    if (lease->terms->trusts_pushes && agrees && is_enough(lease, until, now)) {
        hold_begin(lease, round, until, now, update);
        hold_renew_at(lease, nanos_add(now, nanos_sub(until, now) / 4));
    } else {
        /* The RAISE makes the grants last for a whole TTL before success is reported. */
        acquire_confirm(lease, now, update);
    }
}

/* Returns whether the quorum needs pushed grants: its validity does not count from the start. */
static bool needed_pushes(const struct round *round) {
    return round->pushed != 0 &&
           !round_has_quorum(round, round_voters(round, REDLOCK_VOTE_GRANTED) & ~round->pushed);
}

void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    assert(round->kind == ROUND_ACQUIRE || round->kind == ROUND_QUEUE);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    /* Redlock step 5: undo a failed try wherever it may hold the key, silent nodes included. */
    lease->may_hold |= round_possible_holders(round);
    lease->may_hold |= lease->trying.may_queue;
    lease->fence = lease->terms->fenced ? round_fence(round) : 0;
    /* Pushed keys expire a reservation after the push: validity does not count from the start. */
    if (round->verdict == ROUND_YES && needed_pushes(round)) {
        take_pushes(lease, round, end, now, update);
    } else if (round->verdict != ROUND_YES || !lease_leaves_validity(lease, end, now)) {
        /* Redlock step 3: acquired only with a quorum, and with validity left. */
        try_failed(lease, round, now, update);
    } else if (lease->terms->fenced && !round_agrees(round, lease->fence)) {
        /* A quorum must have this very counter, so that every later winner gets a larger one. */
        raise_fence(lease, now, round->usable_until, update);
    } else {
        hold_begin(lease, round, end, now, update);
    }
}

/*
 * A node that granted the key too late to be counted may have a larger counter than the others,
 * perhaps because another lock had the key there in between, with this very fence. So a node counts
 * only if its counter is the fence; otherwise all are raised to the largest counter, and asked
 * again.
 *
 * A counter beyond the limit may be a lie, to which all would be raised. It may also come from a
 * client that knows the clocks a little better. So such counters do not count until no quorum can
 * be had without them, and then the smallest comes first: if a quorum of nodes is sound, no fence
 * is larger than their largest counter.
 */
void acquire_raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                           struct lease_update *update) {
    assert(round->kind == ROUND_RAISE);
    uint64_t end = validity_end(round->start, round->ttl, lease->terms->drift);
    bool is_further = round->verdict == ROUND_YES && !round_agrees(round, lease->fence);
    uint64_t beyond = round->verdict == ROUND_NO ? round_fence_beyond(round) : 0;
    /* No quorum without the counters beyond the limit: raise to the smallest of them. */
    if (beyond > lease->fence && now < round->usable_until) {
        lease->fence = beyond;
        raise_fence(lease, now, round->usable_until, update);
    } else if (round->verdict != ROUND_YES || !lease_leaves_validity(lease, end, now) ||
               (is_further && now >= round->usable_until)) {
        try_failed(lease, round, now, update);
    } else if (is_further) {
        /* A late grant brought a larger counter: raise all to it. */
        lease->fence = round_fence(round);
        raise_fence(lease, now, round->usable_until, update);
    } else {
        hold_begin(lease, round, end, now, update);
    }
}
