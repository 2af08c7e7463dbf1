/*
 * The happy path: lease_begin sends a round, its verdict is yes, a fresh clock reading leaves
 * enough validity, and the lock is HELD. With a watchdog it is renewed every third of the TTL
 * (core/renewal.h). lease_release sends the last round, whose verdict reports whether the lock was
 * ours to the end.
 *
 * Failures: a failed try is undone, and another one follows while retries and time are left
 * (core/acquire.h). A failed renewal is retried until the lock is LOST (core/hold.h). A round that
 * cannot be sent for lack of memory ends like a failed one. Closing the client ends whatever is
 * under way.
 */
#include "core/lease.h"

#include "core/acquire.h"
#include "core/hold.h"
#include "core/queue.h"
#include "core/tries.h"
#include "wire/fence.h"

/* Sets `wake_at` to when nodes have had the time of a round, or to the end if that comes first. */
void lease_start(struct lease *lease, const struct lease_terms *terms, uint32_t members,
                 uint64_t longest, uint64_t now) {
    assert(members != 0 && terms->ttl > 0 && terms->permits <= REDLOCK_MAX_PERMITS);
    uint64_t give_up_at = nanos_add(now, terms->wait);
    uint64_t start_by = terms->wait > 0 ? give_up_at : nanos_add(now, longest);
    *lease = (struct lease){
        .terms = terms,
        .ttl = terms->ttl,
        .state = LEASE_STARTING,
        .members = members,
        .begun_at = now,
        .wake_at = nanos_min(nanos_add(now, terms->connect_patience), start_by),
        .trying = {.give_up_at = give_up_at, .requeue_at = start_by, .poll_at = NANOS_NEVER},
        .longest_ttl = nanos_add(terms->ttl, terms->lock_delay)};
}

void lease_begin(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    acquire_begin(lease, now, update);
}

bool lease_may_start(struct lease *lease, bool has_quorum, uint64_t now) {
    uint64_t end = lease->trying.requeue_at;
    uint64_t patience = lease->terms->connect_patience;
    uint64_t patient = nanos_min(nanos_add(lease->begun_at, patience), end);
    lease->wake_at = now < patient ? patient : end;
    /* Once a quorum is up, the other nodes have some time more to connect. */
    return now >= end || (has_quorum && now >= patient);
}

void lease_wait_for_room(struct lease *lease) {
    assert(lease->state == LEASE_STARTING);
    lease->wake_at = lease->trying.give_up_at;
}

bool lease_is_at_end(const struct lease *lease, uint64_t now) {
    return now >= lease->trying.give_up_at;
}

void lease_end_untried(struct lease *lease, redlock_status why, uint64_t now,
                       struct lease_update *update) {
    *update = (struct lease_update){0};
    acquire_fail(lease, why, now, update);
}

void lease_wait(struct lease *lease) {
    lease_set_state(lease, LEASE_QUEUED);
    lease->trying.requeue_at = NANOS_NEVER;
    lease->wake_at = lease->trying.give_up_at;
}

void lease_lead(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    if (lease->state == LEASE_QUEUED) { /* it may have ended meanwhile */
        acquire_begin(lease, now, update);
        /* Entries that arrive before the release have the node push the key at once. */
        update->before_release = true;
    }
}

uint64_t lease_validity(const struct lease *lease, uint64_t now) {
    return lease_is_held(lease) ? nanos_sub(lease->holding.validity_end, now) : 0;
}

uint64_t lease_fence(const struct lease *lease) {
    return fence_first(lease->fence) + lease->fences_used;
}

/* The votes of this try take at most a round, and so do the commands of the next. */
uint64_t lease_next_try_within(const struct lease *lease, uint64_t now) {
    uint64_t rounds = 2 * lease->terms->patience->most;
    return tries_may_go_on(lease, now)
               ? nanos_min(lease->ttl, nanos_add(tries_longest_delay(lease, now), rounds))
               : 0;
}

/* ---- rounds ---- */

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

static void released(struct lease *lease, redlock_status status, struct lease_update *update) {
    lease_set_state(lease, LEASE_OVER);
    lease->wake_at = NANOS_NEVER;
    update_notify(update, LEASE_RELEASED, status);
}

static void dispatch_verdict(struct lease *lease, const struct round *round, uint64_t now,
                             struct lease_update *update) {
    assert(round->verdict != ROUND_OPEN);
    switch (lease->state) {
    case LEASE_ACQUIRING:
    case LEASE_QUEUED:
        acquire_decided(lease, round, now, update);
        break;
    case LEASE_RAISING:
        acquire_raise_decided(lease, round, now, update);
        break;
    case LEASE_RENEWING:
        hold_decided(lease, round, now, update);
        break;
    case LEASE_DIAGNOSING:
        acquire_fail(lease, lease->failure, now, update);
        break;
    case LEASE_RELEASING:
        released(lease, release_verdict(round), update);
        break;
    default: /* the lease waits for no round */
        break;
    }
}

void lease_decided(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update) {
    *update = (struct lease_update){0};
    dispatch_verdict(lease, round, now, update);
}

void lease_sent(struct lease *lease, struct round *round, uint64_t now) {
    if (lease_awaits_round(lease)) {
        /* The time that a busy turn took before the write is not the nodes' fault. */
        round->sent_at = now;
        lease_await(lease, now, round->usable_until);
        round->late_at = lease->wake_at;
    }
}

bool lease_heeds(const struct round *round, redlock_vote vote) {
    bool is_queue = round->kind == ROUND_QUEUE && round->verdict == ROUND_OPEN;
    return is_queue ? queue_heeds(round, vote) : hold_heeds(round, vote);
}

void lease_late_votes(struct lease *lease, const struct round *round, uint64_t now,
                      struct lease_update *update) {
    *update = (struct lease_update){0};
    if (queue_is_waiting(lease, round)) {
        queue_votes(lease, round, now, update);
    } else {
        hold_late_votes(lease, round, now, update);
    }
}

void lease_reconsider(struct lease *lease, const struct round *tried) {
    /* Only until the next try: its votes then say why. */
    if (lease->state == LEASE_BACKOFF || lease->state == LEASE_DIAGNOSING) {
        lease->failure = (int8_t)tries_failure(tried);
    }
}

/* ---- the time, memory and nodes ---- */

/*
 * Expires the late members of a round. Returns whether the rest may still complete it; the lease
 * then waits on, but not for longer than the round is of use. A watchdog's renewal is over: it had
 * half of the time that was left.
 */
static bool expire(struct lease *lease, struct round *round, const struct round_silence *silence,
                   uint64_t now) {
    bool is_over = lease_is_watchdog_renewing(lease) || now >= round->usable_until;
    round_expire(round, is_over ? round->silent : silence->late, now);
    /* A QUEUE that a quorum has answered waits for pushes: late nodes delay nothing. */
    bool is_queued = round->kind == ROUND_QUEUE && queue_is_answered(round);
    if (round->verdict != ROUND_OPEN || round->silent == 0 || is_queued) {
        round->late_at = silence->next;
        return false;
    }
    lease->wake_at = nanos_min(silence->next, round->usable_until);
    return true;
}

void lease_woken(struct lease *lease, struct round *round, const struct round_silence *silence,
                 uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    /* The timer was early, or another event has moved the instant. */
    if (now < lease->wake_at) {
        return;
    }
    if (lease->state == LEASE_BACKOFF) {
        acquire_again(lease, now, update);
        return;
    }
    if (lease->state == LEASE_QUEUED) {
        queue_woken(lease, round, silence, now, update);
        return;
    }
    /* A renewal may wait on for silent nodes; any other round ends when they are late. */
    bool is_done = lease_is_held(lease) ? hold_woken(lease, round, now, update) : round == NULL;
    if (is_done || expire(lease, round, silence, now)) {
        return;
    }
    /* A QUEUE may stay open after its deadline: slow nodes can still grant by a push. */
    if (queue_is_waiting(lease, round)) {
        queue_expired(lease, round, now, update);
    } else {
        dispatch_verdict(lease, round, now, update);
    }
}

void lease_out_of_memory(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    switch (lease->state) {
    case LEASE_ACQUIRING:
    case LEASE_RAISING:
        /* This round was not sent, but earlier ones may have left keys or entries. */
        update->undo = lease->may_hold | lease->trying.may_queue;
        acquire_fail(lease, REDLOCK_ENOMEM, now, update);
        break;
    case LEASE_DIAGNOSING:
        update->undo = lease->may_hold;
        acquire_fail(lease, lease->failure, now, update);
        break;
    case LEASE_RENEWING:
        /* The lock is still held: its renewal is tried again like one that failed. */
        hold_end_extension(lease, REDLOCK_ENOMEM, update);
        hold_renewal_failed(lease, now);
        break;
    case LEASE_RELEASING:
        released(lease, REDLOCK_ENOMEM, update);
        break;
    default: /* the lease has moved on */
        break;
    }
}

void lease_renew_now(struct lease *lease, const struct round *round, uint32_t up, uint64_t now,
                     struct lease_update *update) {
    *update = (struct lease_update){0};
    hold_renew_now(lease, round, up, now, update);
}

void lease_ask_again(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update) {
    *update = (struct lease_update){0};
    if (queue_is_waiting(lease, round)) {
        queue_can_enter(lease, round, now, update);
    }
}

void lease_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update) {
    *update = (struct lease_update){0};
    if (queue_is_waiting(lease, round)) {
        queue_key_changed(lease, round, now, update);
    } else {
        hold_key_changed(lease);
    }
}

void lease_move(struct lease *lease, uint32_t members, uint64_t now, struct lease_update *update) {
    uint32_t joining = members & ~lease->members;
    assert(members != 0);
    *update = (struct lease_update){0};
    lease->members = members;
    hold_top_up_joining(lease, joining, now, update);
}

void lease_await_room(struct lease *lease, uint32_t nodes) {
    assert(lease_is_held(lease));
    lease->holding.to_top_up |= nodes;
}

void lease_has_room(struct lease *lease, uint32_t nodes, uint64_t now,
                    struct lease_update *update) {
    *update = (struct lease_update){0};
    hold_has_room(lease, nodes, now, update);
}

/* ---- the application ---- */

redlock_status lease_cancel(struct lease *lease, struct round *round, uint64_t now,
                            struct lease_update *update) {
    *update = (struct lease_update){0};
    if (!lease_is_acquiring(lease)) {
        return REDLOCK_EINVAL;
    }
    bool is_trying = lease->state == LEASE_ACQUIRING || lease->state == LEASE_QUEUED;
    /* Redlock step 5, for a try whose votes may still come. */
    if (is_trying && round != NULL) {
        update->undo = lease->may_hold | lease->trying.may_queue | round_possible_holders(round);
        if (lease->has_new_token && round->verdict == ROUND_OPEN) {
            round_doubt_denials(round);
        }
    } else if (lease->state == LEASE_RAISING ||
               (lease->state == LEASE_DIAGNOSING && round->kind != ROUND_DIAGNOSE)) {
        update->undo = lease->may_hold; /* the DIAGNOSE could not be sent: `round` is the try's */
    }
    acquire_fail(lease, REDLOCK_ECANCELED, now, update);
    return REDLOCK_OK;
}

redlock_status lease_extend(struct lease *lease, struct round *round, uint64_t ttl, uint64_t now,
                            struct lease_update *update) {
    *update = (struct lease_update){0};
    /* From lost_at on the lock counts as lost, even if the timer has not fired yet. */
    if (lease->state == LEASE_LOST || (lease_is_held(lease) && now >= lease->holding.lost_at)) {
        return REDLOCK_ELOST;
    }
    if (!lease_is_held(lease)) {
        return REDLOCK_EINVAL;
    }
    if (lease->extending) {
        return REDLOCK_EBUSY;
    }
    hold_extend(lease, round, ttl, now, update);
    return REDLOCK_OK;
}

redlock_status lease_release(struct lease *lease, uint64_t now, struct lease_update *update) {
    *update = (struct lease_update){0};
    if (!lease_is_held(lease) && lease->state != LEASE_LOST) {
        return REDLOCK_EINVAL;
    }
    hold_end_extension(lease, REDLOCK_ECANCELED, update);
    lease_set_state(lease, LEASE_RELEASING);
    lease->is_unrenewed = false;
    /* The lock is not held any more, whatever the nodes answer. */
    lease->holding.validity_end = 0;
    lease_send(lease, ROUND_RELEASE, now, NANOS_NEVER, update);
    return REDLOCK_OK;
}

void lease_close(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update) {
    if (lease_is_acquiring(lease)) {
        lease_cancel(lease, round, now, update);
        update->acquired = lease->failure = REDLOCK_ECLOSED;
        return;
    }
    /* A lock that was lost has reported it: a close adds nothing to that. */
    bool was_held = lease_is_held(lease);
    if (lease_release(lease, now, update) != REDLOCK_OK) {
        return; /* the release is under way, or over */
    }
    if (update->notifications & LEASE_EXTENDED) {
        update->extended = REDLOCK_ECLOSED;
    }
    if (was_held) {
        update_notify(update, LEASE_LOSS, REDLOCK_ECLOSED);
    }
}
