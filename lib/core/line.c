#include "core/line.h"

#include "core/acquire.h"
#include "core/backoff.h"

/* The longest time between two polls, in claims. */
#define POLL_CLAIMS_MAX 16

/* So many waiters ahead make the time between two polls longer by a claim's worth. */
#define POLL_STRETCH 8

bool line_is_waiting(const struct lease *lease, const struct round *round) {
    return round != NULL && round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN &&
           (lease->state == LEASE_ACQUIRING || lease->state == LEASE_QUEUED);
}

/* ---- timers ---- */

/*
 * Returns the time until the next poll. Without a place at a quorum no push can be expected: then
 * polls follow each other like retries. With places a poll is due when the holders let the key
 * expire, as they said; who stands further back leaves that to those in front.
 */
static uint64_t poll_delay(struct lease *lease, const struct round *round) {
    const struct lease_terms *terms = &lease->terms;
    uint32_t promising = round->placed | round_voters(round, REDLOCK_VOTE_GRANTED);
    if (!round_has_quorum(round, promising)) {
        return backoff_draw(&lease->seed, nanos_min(terms->retry_delay_max, terms->claim));
    }
    uint64_t expiry = nanos_from_ms((uint64_t)round_free_in_ms(round) + 1);
    uint64_t delay = nanos_min(expiry, terms->claim);
    delay += delay / POLL_STRETCH * nanos_min(round->ahead, POLL_CLAIMS_MAX * POLL_STRETCH);
    return delay + backoff_draw(&lease->seed, delay / 16);
}

/*
 * Two round trips and 1 ms, doubled with each yield. At most a quarter of a claim: when all others
 * have yielded, the first in line still has what it was given before.
 */
static uint64_t settle_delay(const struct lease *lease, uint64_t now) {
    uint64_t round_trip = nanos_min(nanos_sub(now, lease->asked_at), lease->terms.node_timeout);
    uint64_t first = 2 * round_trip + NANOS_PER_MS;
    return backoff_bound(first, nanos_max(first, lease->terms.claim / 4), lease->yields);
}

static void plan_settling(struct lease *lease, const struct round *round, uint64_t now) {
    bool is_split = round_voters(round, REDLOCK_VOTE_GRANTED) != 0;
    if (is_split && lease->settle_at == NANOS_NEVER) {
        lease->settle_at = nanos_add(now, settle_delay(lease, now));
    }
}

static void set_timer(struct lease *lease) {
    lease->wake_at =
        nanos_min(nanos_min(lease->poll_at, lease->settle_at), lease->terms.give_up_at);
}

static void enter(struct lease *lease, const struct round *round, uint64_t now) {
    lease_set_state(lease, LEASE_QUEUED);
    lease->poll_at = nanos_add(now, poll_delay(lease, round));
    set_timer(lease);
}

/* ---- events ---- */

void line_votes(struct lease *lease, const struct round *round, uint64_t now) {
    plan_settling(lease, round, now);
    if (lease->state == LEASE_QUEUED) {
        lease->poll_at = nanos_min(lease->poll_at, nanos_add(now, poll_delay(lease, round)));
        set_timer(lease);
    } else if (round->silent == 0) {
        enter(lease, round, now);
    }
}

void line_expired(struct lease *lease, const struct round *round, uint64_t now) {
    plan_settling(lease, round, now);
    enter(lease, round, now);
}

void line_ask_again(struct lease *lease, const struct round *round, uint64_t now,
                    struct lease_update *update) {
    lease->may_hold |= round_possible_holders(round);
    acquire_ask(lease, now, update);
    update->keeps_token = true;
}

/* Gives up the grants of a split vote, and the places, for places under a new token. */
static void yield(struct lease *lease, const struct round *round, uint64_t now,
                  struct lease_update *update) {
    update->undo = lease->may_hold | round_possible_holders(round);
    lease->yields++;
    acquire_try(lease, now, update);
}

void line_woken(struct lease *lease, const struct round *round, uint64_t now,
                struct lease_update *update) {
    if (round == NULL) { /* no node was asked: another request of the client has the key */
        acquire_fail(lease, REDLOCK_EHELD, now, update);
    } else if (now >= lease->terms.give_up_at) {
        lease->may_hold |= round_possible_holders(round);
        acquire_give_up(lease, round, now, update);
    } else if (now >= lease->settle_at) {
        yield(lease, round, now, update);
    } else {
        line_ask_again(lease, round, now, update);
    }
}
