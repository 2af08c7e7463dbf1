#include "core/queue.h"

#include "core/acquire.h"
#include "core/backoff.h"
#include "core/change.h"
#include "core/permits.h"
#include "core/tries.h"

/*
 * The shortest time between two polls, in eighths of a reservation. A poll takes a heartbeat along,
 * and both are most of what a waiter costs the nodes. A first waiter polls seldom, but before the
 * heartbeat is too old for pushes to count. Others may find that one ahead hangs, to which the key
 * was passed: they look soon after its reservation.
 */
#define POLL_EIGHTHS_OF_FIRST 15
#define POLL_EIGHTHS 10

/* The number of waiters ahead for which that time doubles, and how often it may be added. */
#define POLL_STRETCH 8
#define POLL_STRETCHES_MAX 16

/* The number of reservations after which a waiter requeues that has grants beside a holder. */
#define REQUEUE_BESIDE_HOLDER 4

/*
 * The number of requeues after which a quorum that denies does so for a holder: by then, waiters
 * that had a part of the nodes each have left all of them to the first.
 */
#define REQUEUES_OF_WAITERS 3

/* The time within which a waiter asks a node that has started a new queue. */
#define ENTER_SOON (50 * NANOS_PER_MS)

bool queue_is_waiting(const struct lease *lease, const struct round *round) {
    return round != NULL && round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN &&
           (lease->state == LEASE_ACQUIRING || lease->state == LEASE_QUEUED);
}

bool queue_is_answered(const struct round *round) {
    return round_has_quorum(round, round->members & ~round->silent);
}

bool queue_heeds(const struct round *round, redlock_vote vote) {
    return vote == REDLOCK_VOTE_GRANTED || queue_is_answered(round);
}

/* ---- timers ---- */

/* Returns a mask of the nodes that may grant the key by a push, or have granted it. */
static uint32_t promising(const struct round *round) {
    return round->queued | round->silent | round_voters(round, REDLOCK_VOTE_GRANTED) |
           round_voters(round, REDLOCK_VOTE_TIMEOUT);
}

/*
 * Returns the time until the next poll. Without entries (or answers to come) at a quorum no push
 * can be expected, and polls follow each other like retries. With entries, a poll is due when the
 * holders let the key expire, as the nodes reported. Waiters further back draw longer times, spread
 * from that instant on: in a queue that moves, one of them then polls soon after a key that was
 * passed on comes free again.
 */
static uint64_t poll_delay(struct lease *lease, const struct round *round) {
    const struct lease_terms *terms = lease->terms;
    uint32_t free_in_ms = round_free_in_ms(round);
    /* A waiter leaves a permit that is free at a quorum if those ahead may take it. */
    bool is_left = free_in_ms == 0 && round->permits != NULL;
    free_in_ms = is_left ? UINT32_MAX : free_in_ms;
    if (!round_has_quorum(round, promising(round))) { /* no pushes can complete one */
        if (terms->patience->is_opening) {            /* polls of a crowd would delay that */
            return terms->reservation;
        }
        if (free_in_ms > 0) { /* otherwise the last poll left a free key: ask for it at once */
            return backoff_draw(lease->terms->seed,
                                nanos_min(terms->retry_delay_max, terms->reservation));
        }
    }
    /* One more millisecond, because nodes report the TTL in whole ones. */
    uint64_t expiry = nanos_from_ms((uint64_t)free_in_ms + 1);
    uint64_t eighths = round->ahead == 0 ? POLL_EIGHTHS_OF_FIRST : POLL_EIGHTHS;
    uint64_t delay = nanos_min(expiry, terms->reservation / 8 * eighths);
    uint64_t spread =
        delay / POLL_STRETCH * nanos_min(round->ahead, POLL_STRETCHES_MAX * POLL_STRETCH);
    return delay + backoff_draw(lease->terms->seed, delay / 16 + spread);
}

/* Returns the time that nodes take to answer the ask under way, or took for the last one. */
static uint64_t answer_time(const struct lease *lease, uint64_t now) {
    return lease->state == LEASE_ACQUIRING ? nanos_sub(now, lease->asked_at)
                                           : lease->trying.trip_us * NANOS_PER_US;
}

/*
 * Returns the time after which to requeue: two round trips and 1 ms, doubled each time, at most 1/4
 * of a reservation. Waiters for permits draw a part of that: two that go on to another permit in
 * step would meet there again.
 */
static uint64_t requeue_delay(const struct lease *lease, uint64_t now) {
    uint64_t round_trip = nanos_min(answer_time(lease, now), lease->terms->patience->most);
    uint64_t first = 2 * round_trip + NANOS_PER_MS;
    /* Others must finish requeueing while the first waiter still has its pushed keys. */
    uint64_t last = nanos_max(first, lease->terms->reservation / 4);
    uint64_t most = backoff_bound(first, last, lease->trying.requeues);
    return lease->terms->permits > 0 ? most / 2 + backoff_draw(lease->terms->seed, most / 2) : most;
}

/*
 * Returns the ms from begun_at after which the denied keys have expired, so that a quorum may come
 * free; 0: not known.
 */
static uint32_t holder_ms(const struct lease *lease, const struct round *round) {
    uint32_t free_in_ms = round_free_in_ms(round);
    uint64_t ms = nanos_to_ms(nanos_sub(lease->asked_at, lease->begun_at)) + free_in_ms;
    bool is_known = free_in_ms != UINT32_MAX && round->permits == NULL;
    return is_known ? (uint32_t)nanos_min(ms, UINT32_MAX) : 0;
}

/* Returns whether requeues have not helped: a holder has the key, and no other waiter. */
static bool is_beside_holder(const struct lease *lease) {
    return lease->trying.requeues >= REQUEUES_OF_WAITERS;
}

/*
 * Returns whether the holder of an earlier answer still has the key at a quorum. A push says that
 * it has released it. But if requeues have not helped, nodes only pass on what this waiter gives
 * up.
 */
static bool is_held(const struct lease *lease, const struct round *round, uint64_t now) {
    uint64_t ms = nanos_min(lease->trying.held_ms, holder_ms(lease, round));
    bool is_released = round->pushed != 0 && !is_beside_holder(lease);
    return !is_released && now < nanos_add(lease->begun_at, nanos_from_ms(ms));
}

/* Returns the instant from which nodes that have not answered may be late. */
static uint64_t late_at(const struct round *round) {
    return round->silent != 0 ? round->late_at : NANOS_NEVER;
}

/* Returns whether nodes that are not late may still complete a quorum with those that granted. */
static bool may_complete(const struct round *round, uint64_t now) {
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    return now < round->usable_until && late_at(round) != NANOS_NEVER &&
           round_has_quorum(round, granted | round->silent);
}

static void plan_requeue(struct lease *lease, const struct round *round, uint64_t now) {
    bool is_offered = round->permits != NULL && round->permits->offered != 0;
    /* Grants without a quorum: another waiter may have the rest, and wait for these. */
    bool is_split = is_offered || round_voters(round, REDLOCK_VOTE_GRANTED) != 0;
    /* Not yet: nobody has denied, and nodes that are not late may complete the quorum. */
    is_split &= is_offered || round_deniers(round) != 0 || !may_complete(round, now);
    if (is_split) {
        /* Beside a holder they come from nodes that lack its key: no other waiter needs them. */
        uint64_t delay = is_held(lease, round, now)
                             ? REQUEUE_BESIDE_HOLDER * lease->terms->reservation
                             : requeue_delay(lease, now);
        lease->trying.requeue_at = nanos_min(lease->trying.requeue_at, nanos_add(now, delay));
    }
}

static void set_timer(struct lease *lease, const struct round *round) {
    uint64_t next = nanos_min(change_due(lease, lease->trying.poll_at), lease->trying.requeue_at);
    lease->wake_at = nanos_min(nanos_min(next, lease->trying.give_up_at), late_at(round));
}

static void enter(struct lease *lease, const struct round *round, uint64_t now) {
    uint64_t trip_us = nanos_sub(now, lease->asked_at) / NANOS_PER_US;
    lease->trying.trip_us = (uint32_t)nanos_min(trip_us, UINT32_MAX);
    lease_set_state(lease, LEASE_QUEUED);
    lease->trying.poll_at =
        nanos_min(lease->trying.poll_at, nanos_add(now, poll_delay(lease, round)));
    set_timer(lease, round);
}

/* ---- asking again ---- */

/*
 * Records the nodes that may hold the key for the token. Entries for a permit outlast the token,
 * and are recorded separately.
 */
static void record_holders(struct lease *lease, const struct round *round) {
    uint32_t holders = round_possible_holders(round);
    bool is_permit = round->permits != NULL;
    lease->trying.may_queue |= is_permit ? holders : 0;
    lease->may_hold |= is_permit ? holders & ~round_deniers(round) : holders;
}

/*
 * Notes until when a quorum keeps the key for a holder: of a waiter that was denied by all nodes
 * that answered, that knew of the holder before it got the key of single nodes, or whose requeues
 * have not helped. Returns whether it does so now. The waiter must then take the key nowhere: a
 * node that lacks the holder's key gets it by the holder's next renewal, if it is free there.
 */
static bool note_holder(struct lease *lease, const struct round *round, uint64_t now) {
    bool is_denied = round_voters(round, REDLOCK_VOTE_GRANTED) == 0;
    bool is_known = is_denied || is_beside_holder(lease) || is_held(lease, round, now);
    /* Waiters for permits are also denied between requeues, by nodes that offer another one. */
    lease->trying.requeues = is_denied && round->permits == NULL ? 0 : lease->trying.requeues;
    lease->trying.held_ms = is_known ? holder_ms(lease, round) : 0;
    return is_held(lease, round, now);
}

/* Asks again at once. Returns whether a quorum keeps the key for a holder, as far as is known. */
static bool ask_again(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update) {
    bool is_kept = note_holder(lease, round, now);
    record_holders(lease, round);
    lease->failure = (int8_t)tries_failure(round); /* until the nodes have answered again */
    acquire_ask(lease, now, update);
    update->keeps_token = true;
    return is_kept;
}

/*
 * Returns whether a quorum may grant the key now. A foreign holder frees its keys one by one, so
 * asking after the first one would be denied by the other nodes.
 */
static bool may_be_free(const struct round *round) {
    return round_has_quorum(round, round->changed | round_voters(round, REDLOCK_VOTE_GRANTED));
}

/*
 * Asks for the entry again, and for the key only if no quorum is known to keep it for a holder, by
 * the answers and notifications. A permit is asked for when the nodes have reported one that a
 * quorum may grant.
 */
static void poll(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update) {
    uint32_t free_in_ms = round_free_in_ms(round);
    bool is_kept = free_in_ms > 0 && free_in_ms != UINT32_MAX && !may_be_free(round);
    lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
    ask_again(lease, round, now, update);
    update->enters_only = is_kept || round->permits != NULL;
}

/* ---- permits ---- */

/* Gives up any grants of a permit, and asks for `permit` under a new token. The entry stays. */
static void change_permit(struct lease *lease, const struct round *round, uint32_t permit,
                          uint64_t now, struct lease_update *update) {
    record_holders(lease, round);
    uint32_t holders = lease->may_hold;
    uint32_t entries = lease->trying.may_queue;
    update->undo = holders;
    update->keeps_entry = true;
    lease->permit = (uint8_t)permit;
    lease->permit_retries++;
    acquire_try(lease, now, update);
    lease->has_new_token = true;
    lease->trying.may_queue = entries;
}

/*
 * Asks for a permit that a quorum may grant now. Returns false if the nodes report none: then the
 * waiter takes none anywhere, because where one is free its holder may have lost it.
 */
static bool take_turn(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update) {
    if (round->permits == NULL || now >= lease->trying.give_up_at) {
        return false;
    }
    /* A quorum offers permits: it is this waiter's turn, with a full number of permit retries. */
    if (round_has_quorum(round, round->permits->offered)) {
        lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
    }
    if (permits_is_offered(round, lease->permit)) {
        ask_again(lease, round, now, update);
        return true;
    }
    uint32_t granted = round_voters(round, REDLOCK_VOTE_GRANTED);
    if (round_has_quorum(round, granted | round->silent)) {
        return false; /* silent nodes may complete a quorum for this permit */
    }
    struct permit_choice choice = permits_choose(round, lease->permit, lease->terms->seed);
    if (!choice.is_promising || lease->trying.permit_retries_left == 0) {
        return false;
    }
    lease->trying.permit_retries_left--;
    if (choice.permit == lease->permit) {
        ask_again(lease, round, now, update);
    } else {
        change_permit(lease, round, choice.permit, now, update);
    }
    return true;
}

/* ---- events ---- */

void queue_votes(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update) {
    /* Fewer answers than a quorum say nothing yet: the next ones may grant the key. */
    if (!queue_is_answered(round)) {
        return;
    }
    plan_requeue(lease, round, now);
    if (take_turn(lease, round, now, update)) {
        return;
    }
    if (lease->state == LEASE_QUEUED) {
        /* A vote may bring the poll forward, but never delays it. */
        lease->trying.poll_at =
            nanos_min(lease->trying.poll_at, nanos_add(now, poll_delay(lease, round)));
        set_timer(lease, round);
    } else {
        enter(lease, round, now);
    }
}

void queue_expired(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update) {
    plan_requeue(lease, round, now);
    if (!take_turn(lease, round, now, update)) {
        enter(lease, round, now);
    }
}

void queue_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update) {
    bool is_queued = lease->state == LEASE_QUEUED;
    /* Within the pause the notification is only noted, so that no server keeps the client busy. */
    if (!is_queued || now < change_pause_end(lease)) {
        lease->may_have_changed = true;
        if (is_queued) {
            set_timer(lease, round);
        }
    } else if (may_be_free(round)) {
        unsigned changes = lease->change_rounds;
        ask_again(lease, round, now, update); /* for the key: its holder may have released it */
        change_count_rounds(lease, changes + 1);
    }
}

void queue_can_enter(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    if (lease->terms->patience->is_opening) { /* all ask when a quorum of nodes gives entries */
        return;
    }
    if (!round_has_quorum(round, promising(round))) {
        poll(lease, round, now, update);
        return;
    }
    /* A crowd asks once for several nodes, and not all in one instant. */
    uint64_t soon = nanos_add(now, backoff_draw(lease->terms->seed, ENTER_SOON));
    lease->trying.poll_at = nanos_min(lease->trying.poll_at, soon);
    if (lease->state == LEASE_QUEUED) {
        set_timer(lease, round);
    }
}

/*
 * Returns whether to ask again before a requeue. Pushes that take longer than requeues follow each
 * other would always come too late, for a token that was given up: the answer reports them.
 * (Permits are not pushed.)
 */
static bool must_ask_before(const struct lease *lease) {
    return lease->has_new_token && lease->trying.requeues >= REQUEUES_OF_WAITERS - 1 &&
           lease->terms->permits == 0;
}

/* Requeues: gives up the grants of a split vote, and asks for entries under a new token. */
static void requeue(struct lease *lease, const struct round *round, uint64_t now,
                    struct lease_update *update) {
    /*
     * A permit's entry is for the whole semaphore, and stays. Grants are given up, and permits that
     * nodes reserve for this waiter: they offer them to the smallest ticket again.
     */
    if (round->permits != NULL) {
        lease->trying.requeues++;
        lease->trying.permit_retries_left = ACQUIRE_PERMIT_RETRIES_MAX;
        change_permit(lease, round, lease->permit, now, update);
        update->enters_only = true;
        return;
    }
    /* Maekawa's deadlock: new entries with the old ticket let all nodes grant to the smallest. */
    update->undo = lease->may_hold | round_possible_holders(round);
    update->enters_only = note_holder(lease, round, now);
    lease->trying.requeues++;
    acquire_try(lease, now, update);
    /* A reader's share of before does not deny it another one. */
    lease->has_new_token = !lease->terms->is_reader;
}

/*
 * Ends the wait. A node that has granted the key to the token of before a requeue denies it to the
 * new one until the release that follows arrives. So after a requeue a denial is taken back, until
 * the DIAGNOSE, which comes after that release, confirms it.
 */
static void end_wait(struct lease *lease, struct round *round, uint64_t now,
                     struct lease_update *update) {
    lease->may_hold |= round_possible_holders(round) | lease->trying.may_queue;
    acquire_give_up(lease, round, now, update);
    if (lease->has_new_token) {
        round_doubt_denials(round);
        lease->failure = (int8_t)tries_failure(round);
    }
}

void queue_woken(struct lease *lease, struct round *round, const struct round_silence *silence,
                 uint64_t now, struct lease_update *update) {
    /* Late nodes count as TIMEOUT for the report; their pushes still count as grants. */
    if (now >= late_at(round)) {
        round_expire(round, silence->late, now);
        round->late_at = silence->next;
        plan_requeue(lease, round, now);
    }
    /* The last try began in time: as in an ACQUIRE, nodes that are not late may complete it. */
    if (now >= lease->trying.give_up_at && may_complete(round, now)) {
        lease->wake_at = nanos_min(late_at(round), round->usable_until);
        return;
    }
    /* The end of the wait comes before everything else that is due. */
    if (now >= lease->trying.give_up_at) {
        end_wait(lease, round, now, update);
    } else if (now >= lease->trying.requeue_at && must_ask_before(lease)) {
        lease->trying.requeue_at = NANOS_NEVER;
        update->enters_only = ask_again(lease, round, now, update);
    } else if (now >= lease->trying.requeue_at) {
        requeue(lease, round, now, update);
    } else if (now >= lease->trying.poll_at) {
        poll(lease, round, now, update);
    } else {
        /* After a notification that came in the pause, nodes watch the key again. */
        update->watch = now >= change_due(lease, NANOS_NEVER);
        lease->may_have_changed &= !update->watch;
        set_timer(lease, round);
    }
}
