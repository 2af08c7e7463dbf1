#include "lock/outbox.h"

#include "base/nanos.h"
#include "core/queue.h"
#include "io/clock.h"
#include "io/random.h"
#include "wire/fence.h"

#include <string.h>

/* ---- votes ---- */

/*
 * Returns whether a vote that decides nothing matters: in line the line says so; behind a verdict
 * a missing key, to be topped up, or a grant that turns a renewal's no into a yes.
 */
static bool is_of_use(const struct round *round, redlock_vote vote) {
    if (round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN) {
        return queue_heeds(round, vote);
    }
    return vote == REDLOCK_VOTE_MISSING
               ? round_was_kept(round)
               : vote == REDLOCK_VOTE_GRANTED && round->kind == ROUND_RENEW &&
                     round_was_granted_late(round);
}

void outbox_rest(redlock_lock *lock) {
    const struct flight *flight = lock->flight;
    if (flight == NULL || flight->round.silent != 0 || flight->details != NULL ||
        lock->lease.terms->watches) {
        return;
    }
    const struct round *round = &flight->round;
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    uint32_t unsent = round_unsent(round);
    if (round->verdict == ROUND_YES && (granted | unsent) == round->members) {
        lock->granted = granted;
        lock->unsent = unsent;
        lock->was_renewed = round->kind == ROUND_RENEW;
        locks_let_go(&lock->flight);
    }
}

static void on_flight_vote(void *owner, bool decided, redlock_vote vote) {
    redlock_lock *lock = owner;
    if (decided) {
        locks_raise(lock, LOCK_DECIDED);
    } else if (is_of_use(&lock->flight->round, vote)) {
        locks_raise(lock, LOCK_LATE_VOTE);
    }
    if (lock->flight->unwatched != 0) {
        locks_raise(lock, LOCK_UNWATCHED);
    }
    if (lock->lease.state == LEASE_HELD && lock->events == 0) {
        outbox_rest(lock);
    }
}

/* ---- plans ---- */

/* Changes the key to that of the permit to be tried, if any. Returns false when out of memory. */
static bool change_key(redlock_lock *lock) {
    struct lock_wait *wait = lock->wait;
    uint32_t permit = lock->lease.permit;
    if (wait == NULL || wait->name == NULL || (lock->key != wait->name && wait->permit == permit)) {
        return true;
    }
    struct key *key = key_create_permit(&lock->locks->context->keys, wait->name, permit);
    if (key != NULL) {
        key_drop(lock->key);
        lock->key = key;
        wait->permit = permit;
    }
    return key != NULL;
}

uint64_t outbox_entry_ticket(const redlock_lock *lock) {
    return lock->wait != NULL ? lock->wait->entry_ticket : 0;
}

/* Plans a round for a token, as far as the plan is common to all kinds of rounds. */
static void plan_round(struct flight_plan *plan, const redlock_lock *lock, const char *token,
                       enum round_kind round, uint64_t ttl, uint64_t now) {
    const struct lease *lease = &lock->lease;
    *plan = (struct flight_plan){.round = round,
                                 .request = lock->request,
                                 .kind = lock_kind(lock),
                                 .key = lock->key,
                                 .token = token,
                                 .now = now,
                                 .nodes = members_all(lock->locks->members),
                                 .ttl = ttl,
                                 .node_ttl = nanos_add(ttl, lease->terms->lock_delay),
                                 .fence = lease->fence};
}

/* Completes the plan of a try. */
static void plan_try(const redlock_lock *lock, const struct lease_update *update,
                     struct flight_plan *plan) {
    const struct lease_terms *terms = lock->lease.terms;
    plan->is_new = true;
    plan->permits = terms->permits;
    if (plan->kind->features & KIND_WRITER) {
        plan->intent_ms = nanos_to_ms(lease_next_try_within(&lock->lease, plan->now));
    }
    if (plan->round == ROUND_QUEUE) {
        plan->reservation = terms->reservation;
        plan->ticket = lock->wait->ticket;
        plan->order = update->undo != 0        ? FLIGHT_AT_ONCE
                      : update->before_release ? FLIGHT_BEFORE_RELEASES
                                               : FLIGHT_AFTER_RELEASES;
    } else if (terms->fenced) {
        plan->fence = members_fence_from_clock(lock->locks->members, plan->now);
    }
}

/* Completes the plan of a release, or of the release that settles a failed try. */
static void plan_release(const redlock_lock *lock, uint32_t awaited, struct flight_plan *plan) {
    const struct lease *lease = &lock->lease;
    plan->awaited = awaited;
    plan->ticket = outbox_entry_ticket(lock);
    plan->may_hold = lease->may_hold;
    plan->keep_until = nanos_add(plan->now, lease->longest_ttl);
    plan->stay_until = plan->round == ROUND_RELEASE ? lease->holding.stay_until : 0;
}

/* Plans the round of an update for a token. */
static void plan_update(struct flight_plan *plan, const redlock_lock *lock, const char *token,
                        const struct lease_update *update, uint64_t now) {
    plan_round(plan, lock, token, update->round, update->ttl, now);
    if (update->round == ROUND_RELEASE || update->round == ROUND_DIAGNOSE) {
        plan_release(lock, update->awaited, plan);
    } else {
        plan->replicas = lock->lease.terms->replicas;
    }
    if (update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE) {
        plan_try(lock, update, plan);
    }
}

/* ---- tries ---- */

void outbox_draw_ticket(redlock_lock *lock) {
    struct lock_wait *wait = lock->wait;
    uint64_t now = clock_now();
    bool is_due = wait->ticket == 0 || wait->is_makeshift;
    uint64_t masters_us = is_due ? members_clock_us(lock->locks->members, now) : 0;
    if (!is_due || (wait->ticket != 0 && masters_us == 0)) {
        return;
    }
    uint64_t waited_us = (now - lock->lease.begun_at) / NANOS_PER_US;
    uint64_t time_us = masters_us != 0 ? masters_us : clock_wall_us();
    wait->is_makeshift = masters_us == 0;
    wait->ticket = fence_from_clock(time_us > waited_us ? time_us - waited_us : 0);
}

/* Returns whether an ask for an entry, up to the latest round, may have been heard. */
static bool was_queued(const redlock_lock *lock) {
    return lock->wait->may_be_queued || lock->flight->asks_for_entry;
}

/* Draws the token of a try, which begins as the one before where the place is the same. */
static void draw_token(redlock_lock *lock, bool keeps_entry) {
    unsigned char entry_id[ENTRY_ID_BYTES];
    memcpy(entry_id, lock->token, sizeof(entry_id));
    random_token(&lock->locks->context->random, lock->token);
    if (keeps_entry) {
        memcpy(lock->token, entry_id, sizeof(entry_id));
    }
}

/* Asks again under the token of the latest try. */
static void prepare_again(redlock_lock *lock) {
    lock->wait->may_be_queued = was_queued(lock);
    if (!lock->wait->may_be_queued) { /* all asks were before the channels */
        outbox_draw_ticket(lock);
        lock->wait->entry_ticket = lock->wait->ticket;
    }
}

/* Prepares a try that asks for an entry. Returns false when out of memory. */
static bool prepare_entry(redlock_lock *lock) {
    if (!lock->wait->may_be_queued) {
        outbox_draw_ticket(lock);
    }
    lock->wait->entry_ticket = lock->wait->ticket;
    members_listen(lock->locks->members);
    return waiters_add(&lock->locks->waiters, lock);
}

/* Prepares the key and the token of a try. Returns false when out of memory. */
static bool prepare_try(redlock_lock *lock, const struct lease_update *update) {
    struct lock_wait *wait = lock->wait;
    if (update->keeps_token) {
        prepare_again(lock);
        return true;
    }
    if (!change_key(lock)) {
        return false;
    }
    lock->locks->counts.tries++;
    waiters_remove(&lock->locks->waiters, lock);
    draw_token(lock, update->keeps_entry);
    if (wait != NULL) {
        wait->entry_ticket = 0;
        wait->may_be_queued = update->keeps_entry && was_queued(lock);
    }
    return update->round == ROUND_ACQUIRE || prepare_entry(lock);
}

/* ---- sending ---- */

/* Makes a flight the lock's latest one, and drops the events of the one before. */
static void adopt_flight(redlock_lock *lock, struct flight *flight) {
    if (flight->plan.round == ROUND_DIAGNOSE) {
        lock->flight->listener = FLIGHT_UNATTENDED;
        flight->tried = lock->flight;
    } else {
        locks_let_go(&lock->flight);
    }
    lock->flight = flight;
    lock->events &= (uint16_t) ~(LOCK_DECIDED | LOCK_LATE_VOTE | LOCK_NO_MEMORY);
    locks_record_sent(lock);
}

bool outbox_begin_round(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    struct rounds *rounds = lock->locks->rounds;
    bool is_try = update->round == ROUND_ACQUIRE || update->round == ROUND_QUEUE;
    if (is_try && !prepare_try(lock, update)) {
        return false;
    }
    char unpacked[TOKEN_LENGTH + 1];
    const char *token = unpacked;
    if (lock->flight != NULL && !is_try) {
        token = lock->flight->token;
    } else {
        token_unpack(unpacked, lock->token);
    }
    struct flight_plan plan;
    plan_update(&plan, lock, token, update, now);
    struct flight *flight =
        round_plan(rounds, (struct flight_listener){on_flight_vote, lock}, &plan);
    if (flight == NULL) {
        return false;
    }
    flight->round.usable_until = update->usable_until;
    flight->round.timeout = update->timeout;
    if (update->keeps_token) {
        lock->flight->is_void = true; /* the call of this turn, if any, need not be sent */
    }
    adopt_flight(lock, flight);
    round_send(rounds, flight);
    return true;
}

void outbox_top_up(redlock_lock *lock, const struct lease_update *update, uint64_t now) {
    char token[TOKEN_LENGTH + 1];
    token_unpack(token, lock->token);
    struct flight_plan plan;
    plan_round(&plan, lock, token, ROUND_ACQUIRE, update->top_up_ttl, now);
    plan.nodes = update->top_up;
    if (plan.ttl >= NANOS_PER_MS) {
        round_send_unattended(lock->locks->rounds, &plan);
    }
}

void outbox_undo(redlock_lock *lock, struct key *key, const char *token, uint64_t entry_ticket,
                 uint32_t nodes, uint64_t now) {
    const struct release release = {.kind = lock_kind(lock),
                                    .request = lock->request,
                                    .key = key,
                                    .token = token,
                                    .ticket = entry_ticket,
                                    .until = nanos_add(now, lock->lease.longest_ttl)};
    round_send_release(lock->locks->rounds, FLIGHT_UNATTENDED, &release, nodes, now);
}

void outbox_leave_queue(redlock_lock *lock, uint64_t now) {
    char token[TOKEN_LENGTH + 1];
    token_unpack(token, lock->token);
    memset(token + ENTRY_ID_LENGTH, '0', TOKEN_LENGTH - ENTRY_ID_LENGTH);
    outbox_undo(lock, lock->key, token, lock->wait->entry_ticket, lock->lease.may_hold, now);
}
