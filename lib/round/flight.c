/*
 * The happy path: flight_create begins the round; set.c or batch.c sends its command and turns each
 * reply into a vote (flight_vote); each vote is counted and reported to the listener.
 *
 * A grant counts only while the node is trusted and, if replicas are required, once they have
 * confirmed it. It is void if the node turns out to have lost keys before the decision. A release
 * that did not reach a node that may hold the key becomes a pending release of the node. Votes
 * after the verdict are counted as well: they show where the key may be.
 */
#include "round/flight.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/options.h"
#include "io/clock.h"
#include "node/node.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The size of a detail with its NUL; longer ones are cut. */
#define DETAIL_MAX 160

struct flight_detail {
    struct flight_detail *next;
    uint32_t node;
    char text[DETAIL_MAX];
};

#define KIND(steps)                                                                                \
    {                                                                                              \
        .size = sizeof(struct flight) + (steps)*FLIGHT_STEP * sizeof(struct round_answer),         \
        .max_spares = 4096,                                                                        \
    }

static const struct pool_kind flight_kinds[FLIGHT_POOLS] = {KIND(1), KIND(2), KIND(3), KIND(4)};

static const struct pool_kind permits_kind = {.size = sizeof(struct permits), .max_spares = 1024};

void flights_init(struct flights *flights, struct context *context, const struct members *members) {
    flights->context = context;
    flights->members = members;
    flights->out = 0;
    for (unsigned i = 0; i < FLIGHT_POOLS; i++) {
        pool_init(&flights->pools[i], &context->allocator, &flight_kinds[i], NULL);
    }
    pool_init(&flights->permits, &context->allocator, &permits_kind, NULL);
}

void flights_finish(struct flights *flights) {
    for (unsigned i = 0; i < FLIGHT_POOLS; i++) {
        pool_finish(&flights->pools[i]);
    }
    pool_finish(&flights->permits);
}

static void begin_round(struct flight *flight, struct quorum_lists lists, struct permits *permits) {
    const struct flight_plan *plan = &flight->plan;
    round_begin(&flight->round, flight->answers, plan->round, lists, plan->now, plan->ttl,
                plan->awaited);
    if (permits != NULL) {
        permits_begin(permits, plan->permits);
        flight->round.permits = permits;
    }
}

struct flight *flight_create(struct flights *flights, struct flight_listener listener,
                             const struct flight_plan *plan) {
    struct permits *permits = plan->permits > 0 ? pool_take(&flights->permits) : NULL;
    if (plan->permits > 0 && permits == NULL) {
        return NULL;
    }
    /* The lists of now: a change of the nodes does not touch rounds under way. */
    struct quorum_lists lists = members_lists(flights->members);
    /* Pooled by the room for answers: of 8, 16, 24 or 32 nodes. */
    uint32_t pool = (round_indexes(lists) - 1) / FLIGHT_STEP;
    struct flight *flight = pool_take(&flights->pools[pool]);
    if (flight == NULL) {
        if (permits != NULL) {
            pool_put(&flights->permits, permits);
        }
        return NULL;
    }
    flights->out++;
    flight->flights = flights;
    flight->pool = (uint8_t)pool;
    flight->listener = listener;
    flight->plan = *plan;
    key_hold(plan->key);
    memcpy(flight->token, plan->token, sizeof(flight->token));
    /* The lock may draw another token, or end, before the last reply. */
    flight->plan.token = flight->token;
    flight->references = 1;
    flight->asked = flight->unconfirmed = 0;
    flight->is_void = flight->asks_for_entry = false;
    flight->foreign = flight->unwatched = 0;
    flight->details = NULL;
    flight->tried = NULL;
    begin_round(flight, lists, permits);
    return flight;
}

struct flight *flight_hold(struct flight *flight) {
    flight->references++;
    return flight;
}

void flight_drop(struct flight *flight) {
    /* Replies to come hold the flight, even if its lock has ended. */
    if (flight == NULL || --flight->references > 0) {
        return;
    }
    struct flights *flights = flight->flights;
    struct context *context = flights->context;
    while (flight->details != NULL) {
        struct flight_detail *detail = flight->details;
        flight->details = detail->next;
        memory_free(&context->allocator, detail);
    }
    if (flight->tried != NULL) {
        flight_drop(flight->tried);
    }
    key_drop(flight->plan.key);
    if (flight->round.permits != NULL) {
        pool_put(&flights->permits, flight->round.permits);
    }
    pool_put(&flights->pools[flight->pool], flight);
    flights->out--;
    if (context->is_closing) {
        context_wake(context); /* the client may be waiting for this flight */
    }
}

/* ---- votes ---- */

static void record_detail(struct flight *flight, uint32_t node, const char *text) {
    struct flight_detail *detail =
        memory_alloc(&flight->flights->context->allocator, sizeof(*detail));
    if (detail == NULL) {
        return; /* the vote counts without its detail */
    }
    struct text copy;
    text_init(&copy, detail->text, sizeof(detail->text));
    text_append_foreign(&copy, text, strlen(text));
    detail->node = node;
    detail->next = flight->details;
    flight->details = detail;
}

const char *flight_detail(const struct flight *flight, uint32_t node) {
    for (const struct flight_detail *d = flight->details; d != NULL; d = d->next) {
        if (d->node == node) {
            return d->text;
        }
    }
    return "";
}

/* Makes a failed release a pending one; a closing client gives up one that the server refuses. */
static void defer_release(const struct flight *flight, struct node *node, redlock_vote vote) {
    const struct flight_plan *plan = &flight->plan;
    if (flight->flights->context->is_closing && vote == REDLOCK_VOTE_ERROR) {
        node_give_up(node, plan->keep_until);
        return;
    }
    node_defer_release(node, &(struct release){.request = plan->request,
                                               .kind = plan->kind,
                                               .key = plan->key,
                                               .token = flight->token,
                                               .ticket = plan->ticket,
                                               .until = plan->keep_until,
                                               .stay_until = plan->stay_until});
}

/* Records an entry in the queue; the DENIED of the same answer follows. */
static void mark_queued(struct flight *flight, struct node *node,
                        const struct reply_outcome *outcome) {
    if (outcome->has_entry) {
        round_mark_queued(&flight->round, node->index, outcome->ahead);
        /* A foreign holder's release pushes nothing, so the node has to watch the key. */
        uint32_t foreign = outcome->is_foreign ? node_bit(node) : 0;
        flight->foreign |= foreign;
        flight->unwatched |= foreign;
    } else if (outcome->lacks_right) {
        channel_lacks_queue(&node->channel, flight->plan.key->bytes);
    }
}

/* Records the permits that are free at a node, if the node's grants count. */
static void record_permits(const struct flight *flight, const struct node *node,
                           const struct reply_outcome *outcome) {
    struct permits *permits = flight->round.permits;
    /* A node that has forgotten reports permits as free that are held elsewhere. */
    if (outcome->free_length == 0 || guard_judge(&node->guard).fault != TRUST_NO_FAULT) {
        return;
    }
    for (uint32_t permit = 0; permit < permits->count; permit++) {
        if (reply_says_free(outcome, permit)) {
            permits_record(permits, node->index, permit);
        }
    }
}

#define VOTE_EVENTS (UINT32_C(1) << EVENT_vote_cast | UINT32_C(1) << EVENT_round_decided)

/* Emits a vote, and the verdict if it decided one. Kept out of record_vote, which runs often. */
static __attribute__((noinline)) void
emit_vote(const struct flight *flight, const struct node *node, redlock_vote vote, bool decided) {
    const struct events *events = &flight->flights->context->events;
    const struct round *round = &flight->round;
    const char *key = flight->plan.key->bytes;
    uint64_t request = flight->plan.request;
    EMIT(events, vote_cast, .request = request, .key = key, .round = round->kind,
         .node = node_name(node), .vote = vote);
    if (decided) {
        EMIT(events, round_decided, .request = request, .key = key, .round = round->kind,
             .verdict = round->verdict);
    }
}

static void notify_owner(const struct flight *flight, bool decided, redlock_vote vote) {
    if (flight->listener.on_vote != NULL) {
        flight->listener.on_vote(flight->listener.owner, decided, vote);
    }
}

/* Counts a recorded vote in the statistics of its node, and emits it as an event. */
static void record_vote(const struct flight *flight, struct node *node, bool decided) {
    redlock_vote vote = (redlock_vote)flight->round.votes[node->index];
    node->votes[vote]++;
    if (flight->flights->context->events.wanted & VOTE_EVENTS) {
        emit_vote(flight, node, vote, decided);
    }
}

/* Casts a plain grant: most votes are this one, and carry nothing else. */
static inline void cast_grant(struct flight *flight, struct node *node, uint64_t fence) {
    bool decided = round_grant(&flight->round, node->index, fence);
    record_vote(flight, node, decided);
    notify_owner(flight, decided, REDLOCK_VOTE_GRANTED);
}

static __attribute__((noinline)) void cast_other(struct flight *flight, struct node *node,
                                                 const struct reply_outcome *outcome,
                                                 const char *detail) {
    record_permits(flight, node, outcome);
    mark_queued(flight, node, outcome);
    if (outcome->is_access_denied) {
        round_record_refusing(&flight->round, node->index);
    }
    bool decided = round_vote(&flight->round, node->index, outcome->vote, outcome->other_ttl_ms);
    record_vote(flight, node, decided);
    if (detail != NULL && detail[0] != '\0') {
        record_detail(flight, node->index, detail);
    }
    /* Redlock step 5: a possible holder must be released, so this becomes a pending release. */
    if (round_vote_leaves_undone(outcome->vote) && flight_is_release(flight) &&
        (flight->plan.may_hold & node_bit(node))) {
        defer_release(flight, node, outcome->vote);
    }
    notify_owner(flight, decided, outcome->vote);
}

static void vote_untrusted(struct flight *flight, struct node *node, struct trust_view view) {
    uint64_t left_ms = guard_distrust_ms(&view);
    struct reply_outcome outcome = {
        .vote = REDLOCK_VOTE_UNTRUSTED,
        .other_ttl_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
        .is_access_denied = view.fault == TRUST_REFUSED && node->guard.trust.is_forbidden,
    };
    cast_other(flight, node, &outcome, guard_why(&node->guard));
}

/*
 * Returns whether a counter is so far ahead of the masters' clocks that the node's grant does not
 * count (wire/fence.h). In a RAISE only the fence itself may be beyond the limit. Renewals take no
 * new fence from counters.
 */
static bool is_beyond(struct flight *flight, const struct node *node, uint64_t fence) {
    struct round *round = &flight->round;
    if (fence == 0 || round->kind == ROUND_RENEW) {
        return false;
    }
    /* The masters' clocks at the time of the answer, which a minority of them cannot set. */
    uint64_t limit = members_fence_limit(flight->flights->members, uplink_heard_at(&node->uplink));
    round->fence_limit = limit;
    /* A RAISE may set the fence that it carries, but no other counter beyond the limit. */
    return fence > (round->kind == ROUND_RAISE ? nanos_max(limit, flight->plan.fence)
                                               : limit + FENCE_MARGIN);
}

/*
 * Casts ERROR for a counter beyond the limit. In a RAISE the counter is recorded if it is within
 * the margin, because the lease may have to raise to it all the same.
 */
static __attribute__((noinline)) void vote_beyond(struct flight *flight, struct node *node,
                                                  uint64_t fence) {
    struct round *round = &flight->round;
    char detail[DETAIL_MAX];
    /* Another client may have raised it, with slightly better knowledge of the clocks. */
    if (round->kind == ROUND_RAISE && fence <= round->fence_limit + FENCE_MARGIN) {
        round_record_fence(round, node->index, fence);
    }
    snprintf(detail, sizeof(detail),
             "its counter, %" PRIu64 ", is days ahead of the clocks: delete the key of the counter "
             "(" COUNTER_SUFFIX ") there",
             fence);
    node_complain(node,
                  &(struct reply){.type = REPLY_ERROR, .text = detail, .length = strlen(detail)});
    cast_other(flight, node, &PLAIN_VOTE(ERROR), detail);
}

/* ---- nodes that lost keys ---- */

static bool has_lost(const struct flight *flight, const struct node *node) {
    return flight->flights->context->lost_at >= flight->round.start && /* rarely true */
           node->guard.trust.lost_at >= flight->round.start;
}

/* Takes back the grants of nodes that may have lost the key since. */
static __attribute__((noinline)) void void_lost_grants(struct flight *flight) {
    const struct members *members = flight->flights->members;
    uint32_t rest = round_grants(&flight->round) & members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        /* The key was granted before the loss, so it may be another client's by now. */
        if (has_lost(flight, node)) {
            /*
             * The vote becomes UNTRUSTED. If no quorum is possible any more, the round ends as NO.
             */
            bool decided = round_void(&flight->round, node->index);
            record_vote(flight, node, decided);
            record_detail(flight, node->index, guard_why(&node->guard));
            notify_owner(flight, decided, REDLOCK_VOTE_UNTRUSTED);
        }
    }
}

/* Reviews earlier grants before a new one is counted: only a grant can make a round a YES. */
static void review_grants(struct flight *flight) {
    if (flight->flights->context->lost_at >= flight->round.start) {
        void_lost_grants(flight);
    }
}

/*
 * Returns whether a grant counts. If not, the node may still have the key. The renewals of a node
 * that is only slow count (core/trust.h).
 */
static bool grant_counts(const struct flight *flight, const struct node *node,
                         const struct trust_view *view) {
    return (view->fault == TRUST_NO_FAULT && !has_lost(flight, node)) ||
           (view->fault == TRUST_STALE && flight->round.kind == ROUND_RENEW);
}

static __attribute__((noinline)) void vote_reviewed(struct flight *flight, struct node *node,
                                                    const struct reply_outcome *outcome,
                                                    struct trust_view view) {
    review_grants(flight);
    /* Trust first: a node that may have lost keys grants to two holders. */
    if (!grant_counts(flight, node, &view)) {
        vote_untrusted(flight, node, view);
    } else if (is_beyond(flight, node, outcome->fence)) {
        vote_beyond(flight, node, outcome->fence);
    } else {
        cast_grant(flight, node, outcome->fence);
    }
}

/* Casts a grant. Most come from a sound node and have no fence: these need no other check. */
static void vote_granted(struct flight *flight, struct node *node,
                         const struct reply_outcome *outcome) {
    struct trust_view view = guard_judge(&node->guard);
    /* Nothing was lost anywhere since the round began, so there are no grants to review. */
    bool is_sound =
        view.fault == TRUST_NO_FAULT && flight->flights->context->lost_at < flight->round.start;
    if (is_sound && outcome->fence == 0) {
        cast_grant(flight, node, 0);
    } else {
        vote_reviewed(flight, node, outcome, view);
    }
}

static __attribute__((noinline)) void vote_unconfirmed(struct flight *flight, struct node *node,
                                                       const struct reply_outcome *outcome) {
    uint32_t bit = node_bit(node);
    /* The grant counts once the replicas have confirmed it, by the reply to the WAIT. */
    if (flight->asked & bit) {
        flight->unconfirmed |= bit;
        round_record_fence(&flight->round, node->index, outcome->fence);
    } else {
        cast_other(flight, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

void flight_vote(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail) {
    if (outcome->vote != REDLOCK_VOTE_GRANTED) {
        cast_other(flight, node, outcome, detail);
    } else if (flight_is_release(flight)) {
        /* A release is done or not: trust, fences and replicas only matter for grants. */
        cast_grant(flight, node, outcome->fence);
    } else if (flight->plan.replicas == 0) {
        vote_granted(flight, node, outcome);
    } else {
        vote_unconfirmed(flight, node, outcome);
    }
}

/* ---- replicas ---- */

void flight_asks_replicas(struct flight *flight, const struct node *node) {
    flight->asked |= node_bit(node);
}

static void vote_confirmed(struct flight *flight, struct node *node, int64_t confirmations) {
    struct reply_outcome outcome = {.vote = REDLOCK_VOTE_GRANTED,
                                    .fence = round_answer(&flight->round, node->index).fence};
    /* With fewer copies a promoted replica may lack the key, so the grant does not count. */
    if (confirmations >= flight->plan.replicas) {
        vote_granted(flight, node, &outcome);
        return;
    }
    char detail[80];
    snprintf(detail, sizeof(detail), "%" PRId64 " of %" PRIu32 " replicas confirmed it",
             confirmations, flight->plan.replicas);
    cast_other(flight, node, &PLAIN_VOTE(UNTRUSTED), detail);
}

void flight_confirm(struct flight *flight, struct node *node, const struct reply *reply) {
    uint32_t bit = node_bit(node);
    if (!(flight->unconfirmed & bit)) {
        return; /* the node did not grant */
    }
    flight->unconfirmed &= ~bit;
    if (reply == NULL) {
        flight_vote_without_answer(flight, node);
    } else if (reply->type == REPLY_INTEGER) {
        vote_confirmed(flight, node, reply->integer);
    } else {
        if (reply->type == REPLY_ERROR) {
            node_complain(node, reply);
        }
        cast_other(flight, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

void flight_push(struct flight *flight, struct node *node, const struct push *push) {
    /* A push of a fenced lock carries the counter, and no other does. */
    bool is_fit = kind_is_fenced(flight->plan.kind) == (push->fence > 0);
    review_grants(flight_hold(flight)); /* may end the round, and drop the owner's reference */
    if (is_fit && round_awaits_push(&flight->round, node->index) &&
        guard_look(&node->guard).fault == TRUST_NO_FAULT && !has_lost(flight, node) &&
        !is_beyond(flight, node, push->fence)) { /* the answer to the next poll reports it */
        uint64_t until =
            guard_key_stands_until(&node->guard, push->expires_ms, push->time_us, clock_now());
        bool decided = round_push(&flight->round, node->index, push->fence, until);
        node->votes[REDLOCK_VOTE_GRANTED]++;
        if (flight->flights->context->events.wanted & VOTE_EVENTS) {
            emit_vote(flight, node, REDLOCK_VOTE_GRANTED, decided);
        }
        notify_owner(flight, decided, REDLOCK_VOTE_GRANTED);
    }
    flight_drop(flight);
}

void flight_record_open(struct flight *flight, const struct node *node, uint64_t open_ms) {
    if (round_awaits_push(&flight->round, node->index)) {
        round_record_open(&flight->round, node->index, (uint32_t)nanos_min(open_ms, UINT32_MAX));
        notify_owner(flight, false, REDLOCK_VOTE_DENIED);
    }
}

void flight_record_permit(struct flight *flight, const struct node *node, uint32_t permit) {
    /* An offer counts like a grant: while the round waits for it, and from a trusted node. */
    if (flight->round.permits != NULL && round_awaits_push(&flight->round, node->index) &&
        guard_look(&node->guard).fault == TRUST_NO_FAULT) {
        permits_add_offer(flight->round.permits, node->index, permit);
        notify_owner(flight, false, REDLOCK_VOTE_GRANTED);
    }
}

/* Casts ERROR, with the server's text, for a command to a server that refuses the client. */
static void vote_denied_access(struct flight *flight, struct node *node, const char *text) {
    flight_vote(flight, node,
                &(struct reply_outcome){.vote = REDLOCK_VOTE_ERROR, .is_access_denied = true},
                text);
}

void flight_vote_unsent(struct flight *flight, struct node *node) {
    redlock_vote vote = node_vote_unsent(node);
    flight_vote(
        flight, node,
        &(struct reply_outcome){.vote = vote, .is_access_denied = vote == REDLOCK_VOTE_REFUSED},
        NULL);
}

/*
 * Commands follow the login without waiting for its answer, so a server that refuses the login may
 * have carried them out all the same, as the default user.
 */
void flight_vote_without_answer(struct flight *flight, struct node *node) {
    const char *refusal = uplink_refusal(&node->uplink);
    /* Without a connection the command cannot have been carried out: nothing to undo. */
    if (!uplink_was_reached(&node->uplink)) {
        flight_vote_unsent(flight, node);
    } else if (refusal != NULL) {
        vote_denied_access(flight, node, refusal);
    } else {
        /* The command may have been carried out, so the node counts as a possible holder. */
        flight_vote(flight, node, &PLAIN_VOTE(BROKEN), "no answer before its end");
    }
}

void flight_vote_error(struct flight *flight, struct node *node, const struct reply *reply) {
    const char *text = reply->type == REPLY_ERROR ? reply->text : "an answer that makes no sense";
    if (reply->type == REPLY_ERROR) {
        node_complain(node, reply);
    }
    if (reply_denies_access(text)) { /* often because the login was refused before */
        const char *refusal = uplink_refusal(&node->uplink);
        vote_denied_access(flight, node, refusal != NULL ? refusal : text);
    } else {
        flight_vote(flight, node, &PLAIN_VOTE(ERROR), text);
    }
}

/* ---- commands that take the key ---- */

uint32_t flight_prepare_take(struct flight *flight) {
    const struct members *members = flight->flights->members;
    uint32_t rest = flight->round.members;
    uint32_t takers = 0;
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        /* Answers come in order, so the node's trust is current before its grant arrives. */
        node_beat(node, flight->round.start, GUARD_BEAT_NANOS);
        /* Our own key, taken at its original, would deny the command. */
        if (node_is_duplicate(node)) {
            vote_untrusted(flight, node, guard_look(&node->guard));
        } else if (flight->plan.nodes & node_bit(node)) {
            takers |= node_bit(node);
        } else {
            flight_vote_unsent(flight, node);
        }
    }
    return takers;
}
