/*
 * The happy path: the owner creates, begins and fills an operation; call.c sends its command and
 * turns each reply into a vote (operation_vote); each vote is counted and reported to the listener.
 *
 * A grant counts only while the node is trusted and, if replicas are required, once they have
 * confirmed it. It is void if the node turns out to have lost keys before the decision. A release
 * that did not reach a node that may hold the key becomes a pending release of the node. Votes
 * after the verdict are counted as well: they show where the key may be.
 */
#include "round/operation.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/options.h"
#include "core/validity.h"
#include "io/clock.h"
#include "node/node.h"
#include "wire/fence.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The size of a detail with its NUL; longer ones are cut. */
#define DETAIL_MAX 160

struct operation_detail {
    struct operation_detail *next;
    uint32_t node;
    char text[DETAIL_MAX];
};

#define KIND(steps)                                                                                \
    {                                                                                              \
        .size = sizeof(struct operation) + (steps)*OPERATION_STEP * sizeof(struct round_answer),   \
        .max_spares = 4096,                                                                        \
    }

static const struct pool_kind operation_kinds[OPERATION_POOLS] = {KIND(1), KIND(2), KIND(3),
                                                                  KIND(4)};

static const struct pool_kind permits_kind = {.size = sizeof(struct permits), .max_spares = 1024};

void operations_init(struct operations *operations, struct context *context,
                     const struct members *members) {
    operations->context = context;
    operations->members = members;
    operations->out = 0;
    for (unsigned i = 0; i < OPERATION_POOLS; i++) {
        pool_init(&operations->pools[i], &context->allocator, &operation_kinds[i], NULL);
    }
    pool_init(&operations->permits, &context->allocator, &permits_kind, NULL);
}

void operations_finish(struct operations *operations) {
    for (unsigned i = 0; i < OPERATION_POOLS; i++) {
        pool_finish(&operations->pools[i]);
    }
    pool_finish(&operations->permits);
}

/* ---- filling ---- */

/* Sets the arguments that each command has, and all others to 0; but for `permits`. */
static void init_arguments(struct lock_arguments *arguments, const struct context *context,
                           const struct kind *kind, struct key *key, const char *token) {
    arguments->key = key_hold(key);
    arguments->owner = context->owner;
    arguments->key_count = key->count;
    arguments->is_fenced = kind_is_fenced(kind);
    arguments->counter_ttl_ms = context->options.fence_idle_ms;
    arguments->form = kind->form;
    arguments->ttl_ms = arguments->fence = arguments->step = arguments->intent_ms = 0;
    arguments->reservation_ms = arguments->ticket = arguments->waiters_named = 0;
    /* A copy: the lock may draw another token, or end, before the last reply. */
    memcpy(arguments->value, token, sizeof(arguments->value));
}

struct operation *operation_create(struct operations *operations, const struct kind *kind,
                                   struct key *key, const char *token, uint32_t permits) {
    const struct context *context = operations->context;
    struct permits *free_permits = permits > 0 ? pool_take(&operations->permits) : NULL;
    if (permits > 0 && free_permits == NULL) {
        return NULL;
    }
    /* Pooled by the room for answers: of 8, 16, 24 or 32 nodes. */
    uint32_t pool = (round_indexes(members_lists(operations->members)) - 1) / OPERATION_STEP;
    struct operation *operation = pool_take(&operations->pools[pool]);
    if (operation == NULL) {
        if (free_permits != NULL) {
            pool_put(&operations->permits, free_permits);
        }
        return NULL;
    }
    operations->out++;
    operation->operations = operations;
    operation->listener = OPERATION_UNATTENDED;
    operation->kind = kind;
    operation->references = 1;
    operation->unconfirmed = operation->asked = operation->replicas = 0;
    operation->nodes = operation->may_hold = 0;
    operation->pool = (uint8_t)pool;
    operation->order = OPERATION_AFTER_RELEASES;
    operation->asks_for_entry = operation->is_void = false;
    operation->arguments.permits = permits;
    init_arguments(&operation->arguments, context, kind, key, token);
    operation->request = operation->foreign = operation->unwatched = 0;
    operation->keep_until = operation->stay_until = 0;
    operation->round.permits = free_permits;
    operation->details = NULL;
    operation->tried = NULL;
    return operation;
}

void operation_begin(struct operation *operation, enum round_kind round, uint64_t now, uint64_t ttl,
                     uint32_t awaited) {
    struct permits *permits = operation->round.permits;
    /* The lists of now: a change of the nodes does not touch rounds under way. */
    struct quorum_lists lists = members_lists(operation->operations->members);
    round_begin(&operation->round, operation->answers, round, lists, now, ttl, awaited);
    operation->round.permits = permits;
    if (permits != NULL) {
        permits_begin(permits, (uint32_t)operation->arguments.permits);
    }
}

/* The form of an item by which a call of QUEUE releases a key (scripts/queue.lua). */
#define FORM_OF_RELEASE '-'

void operation_set_release(struct operation *operation, uint32_t may_hold, uint64_t ticket,
                           uint64_t until, uint64_t stay_until) {
    uint64_t now = operation->round.start;
    operation->may_hold = may_hold;
    operation->keep_until = until;
    operation->stay_until = stay_until;
    operation->arguments.form = FORM_OF_RELEASE;
    operation->arguments.ticket = ticket;
    operation->arguments.ttl_ms = 0;
    if (now < stay_until) {
        /* The node's clock may be fast: with drift added, the key stays for all of our time. */
        double drift = operation->operations->context->options.drift;
        operation->arguments.ttl_ms = nanos_to_ms(validity_ttl(stay_until - now, drift));
    }
}

enum script operation_release_script(const struct kind *kind, uint64_t ticket, uint64_t stay_until,
                                     uint64_t now) {
    /* Before stay_until (min_hold_ms) the key is left to expire, and passed to no waiter. */
    return now < stay_until ? kind->stay : ticket > 0 ? kind->leave : kind->release;
}

enum script operation_script(const struct operation *operation) {
    const struct kind *kind = operation->kind;
    switch (operation->round.kind) {
    case ROUND_ACQUIRE:
        return operation->arguments.step > 0 ? kind->take : kind->top_up;
    case ROUND_QUEUE:
        return kind->queue;
    case ROUND_RELEASE:
    /* A DIAGNOSE also releases the failed try. */
    case ROUND_DIAGNOSE:
        return operation_release_script(kind, operation->arguments.ticket, operation->stay_until,
                                        operation->round.start);
    default:
        return kind->renew;
    }
}

/* ---- references ---- */

struct operation *operation_hold(struct operation *operation) {
    operation->references++;
    return operation;
}

void operation_drop(struct operation *operation) {
    /* Replies to come hold the operation, even if its lock has ended. */
    if (operation == NULL || --operation->references > 0) {
        return;
    }
    struct operations *operations = operation->operations;
    struct context *context = operations->context;
    while (operation->details != NULL) {
        struct operation_detail *detail = operation->details;
        operation->details = detail->next;
        memory_free(&context->allocator, detail);
    }
    if (operation->tried != NULL) {
        operation_drop(operation->tried);
    }
    key_drop(operation->arguments.key);
    if (operation->round.permits != NULL) {
        pool_put(&operations->permits, operation->round.permits);
    }
    pool_put(&operations->pools[operation->pool], operation);
    operations->out--;
    if (context->is_closing) {
        context_wake(context); /* the client may be waiting for this operation */
    }
}

/* ---- votes ---- */

/* Returns the detail of a node's vote, or NULL. */
static struct operation_detail *find_detail(const struct operation *operation, uint32_t node) {
    struct operation_detail *detail = operation->details;
    while (detail != NULL && detail->node != node) {
        detail = detail->next;
    }
    return detail;
}

/* Records the detail of a node's vote: in place of the last one, since a node may push often. */
static void record_detail(struct operation *operation, uint32_t node, const char *text) {
    struct operation_detail *detail = find_detail(operation, node);
    if (detail == NULL) {
        detail = memory_alloc(&operation->operations->context->allocator, sizeof(*detail));
        if (detail == NULL) {
            return; /* the vote counts without its detail */
        }
        detail->node = node;
        detail->next = operation->details;
        operation->details = detail;
    }
    struct text copy;
    text_init(&copy, detail->text, sizeof(detail->text));
    text_append_foreign(&copy, text, strlen(text));
}

const char *operation_detail(const struct operation *operation, uint32_t node) {
    const struct operation_detail *detail = find_detail(operation, node);
    return detail != NULL ? detail->text : "";
}

/* Makes a failed release a pending one; a closing client gives up one that the server refuses. */
static void defer_release(const struct operation *operation, struct node *node, redlock_vote vote) {
    if (operation->operations->context->is_closing && vote == REDLOCK_VOTE_ERROR) {
        node_give_up(node, operation->keep_until);
        return;
    }
    node_defer_release(node, &(struct release){.request = operation->request,
                                               .kind = operation->kind,
                                               .key = operation->arguments.key,
                                               .token = operation->arguments.value,
                                               .ticket = operation->arguments.ticket,
                                               .until = operation->keep_until,
                                               .stay_until = operation->stay_until});
}

/* Records an entry in the queue; the DENIED of the same answer follows. */
static void mark_queued(struct operation *operation, struct node *node,
                        const struct reply_outcome *outcome) {
    if (outcome->has_entry) {
        round_mark_queued(&operation->round, node->index, outcome->ahead);
        /* A foreign holder's release pushes nothing, so the node has to watch the key. */
        uint32_t foreign = outcome->is_foreign ? node_bit(node) : 0;
        operation->foreign |= foreign;
        operation->unwatched |= foreign;
    } else if (outcome->lacks_right) {
        channel_lacks_queue(&node->channel, operation->arguments.key->bytes);
    }
}

/* Records the permits that are free at a node, if the node's grants count. */
static void record_permits(const struct operation *operation, const struct node *node,
                           const struct reply_outcome *outcome) {
    struct permits *permits = operation->round.permits;
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
static __attribute__((noinline)) void emit_vote(const struct operation *operation,
                                                const struct node *node, redlock_vote vote,
                                                bool decided) {
    const struct events *events = &operation->operations->context->events;
    const struct round *round = &operation->round;
    const char *key = operation->arguments.key->bytes;
    uint64_t request = operation->request;
    EMIT(events, vote_cast, .request = request, .key = key, .round = round->kind,
         .node = node_name(node), .vote = vote);
    if (decided) {
        EMIT(events, round_decided, .request = request, .key = key, .round = round->kind,
             .verdict = round->verdict);
    }
}

static void notify_owner(const struct operation *operation, bool decided, redlock_vote vote) {
    if (operation->listener.on_vote != NULL) {
        operation->listener.on_vote(operation->listener.owner, decided, vote);
    }
}

/* Counts a recorded vote in the statistics of its node, and emits it as an event. */
static void record_vote(const struct operation *operation, struct node *node, bool decided) {
    redlock_vote vote = (redlock_vote)operation->round.votes[node->index];
    node->votes[vote]++;
    if (operation->operations->context->events.wanted & VOTE_EVENTS) {
        emit_vote(operation, node, vote, decided);
    }
}

/* Casts a plain grant: most votes are this one, and carry nothing else. */
static inline void cast_grant(struct operation *operation, struct node *node, uint64_t fence) {
    bool decided = round_grant(&operation->round, node->index, fence);
    record_vote(operation, node, decided);
    notify_owner(operation, decided, REDLOCK_VOTE_GRANTED);
}

/* Casts a denial of a DIAGNOSE also in the failed try, if that doubts the node's own. */
static void confirm_denial(struct operation *tried, const struct node *node, redlock_vote vote) {
    if (vote == REDLOCK_VOTE_DENIED && tried->round.doubts_denials) {
        round_vote(&tried->round, node->index, vote, 0);
    }
}

static __attribute__((noinline)) void cast_other(struct operation *operation, struct node *node,
                                                 const struct reply_outcome *outcome,
                                                 const char *detail) {
    record_permits(operation, node, outcome);
    mark_queued(operation, node, outcome);
    if (outcome->is_access_denied) {
        round_record_refusing(&operation->round, node->index);
    }
    bool decided = round_vote(&operation->round, node->index, outcome->vote, outcome->other_ttl_ms);
    record_vote(operation, node, decided);
    if (operation->tried != NULL) {
        confirm_denial(operation->tried, node, outcome->vote);
    }
    if (detail != NULL && detail[0] != '\0') {
        record_detail(operation, node->index, detail);
    }
    /* Redlock step 5: a possible holder must be released, so this becomes a pending release. */
    if (round_vote_leaves_undone(outcome->vote) && operation_is_release(operation) &&
        (operation->may_hold & node_bit(node))) {
        defer_release(operation, node, outcome->vote);
    }
    notify_owner(operation, decided, outcome->vote);
}

/* Returns why the grants of the node do not count. */
static const char *why_untrusted(struct node *node, const struct trust_view *view) {
    /* Trust: the node is sound again, but may have lost the key since the round began. */
    return view->fault == TRUST_NO_FAULT ? "it may have lost keys since it was asked"
                                         : guard_why(&node->guard, view);
}

static void vote_untrusted(struct operation *operation, struct node *node, struct trust_view view) {
    uint64_t left_ms = guard_distrust_ms(&view);
    struct reply_outcome outcome = {
        .vote = REDLOCK_VOTE_UNTRUSTED,
        .other_ttl_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
        .is_access_denied = view.fault == TRUST_REFUSED && node->guard.trust.is_forbidden,
    };
    cast_other(operation, node, &outcome, why_untrusted(node, &view));
}

/*
 * Returns whether a counter is so far ahead of the masters' clocks that the node's grant does not
 * count (wire/fence.h). In a RAISE only the fence itself may be beyond the limit. Renewals take no
 * new fence from counters.
 */
static bool is_beyond(struct operation *operation, const struct node *node, uint64_t fence) {
    struct round *round = &operation->round;
    if (fence == 0 || round->kind == ROUND_RENEW) {
        return false;
    }
    /* The masters' clocks at the time of the answer, which a minority of them cannot set. */
    uint64_t limit =
        members_fence_limit(operation->operations->members, uplink_heard_at(&node->uplink));
    round->fence_limit = limit;
    /* A RAISE may set the fence that it carries, but no other counter beyond the limit. */
    return fence > (round->kind == ROUND_RAISE ? nanos_max(limit, operation->arguments.fence)
                                               : limit + FENCE_MARGIN);
}

/*
 * Casts ERROR for a counter beyond the limit. In a RAISE the counter is recorded if it is within
 * the margin, because the lease may have to raise to it all the same.
 */
static __attribute__((noinline)) void vote_beyond(struct operation *operation, struct node *node,
                                                  uint64_t fence) {
    struct round *round = &operation->round;
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
    cast_other(operation, node, &PLAIN_VOTE(ERROR), detail);
}

/* ---- nodes that lost keys ---- */

static bool has_lost(const struct operation *operation, const struct node *node) {
    return operation->operations->context->lost_at >= operation->round.start && /* rarely true */
           node->guard.trust.lost_at >= operation->round.start;
}

/* Takes back the grants of nodes that may have lost the key since. */
static __attribute__((noinline)) void void_lost_grants(struct operation *operation) {
    const struct members *members = operation->operations->members;
    uint32_t rest = round_grants(&operation->round) & members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        /* The key was granted before the loss, so it may be another client's by now. */
        if (has_lost(operation, node)) {
            const struct trust_view view = guard_look(&node->guard);
            /*
             * The vote becomes UNTRUSTED. If no quorum is possible any more, the round ends as NO.
             */
            bool decided = round_void(&operation->round, node->index);
            record_vote(operation, node, decided);
            record_detail(operation, node->index, why_untrusted(node, &view));
            notify_owner(operation, decided, REDLOCK_VOTE_UNTRUSTED);
        }
    }
}

/* Reviews earlier grants before a new one is counted: only a grant can make a round a YES. */
static void review_grants(struct operation *operation) {
    if (operation->operations->context->lost_at >= operation->round.start) {
        void_lost_grants(operation);
    }
}

/*
 * Returns whether a grant counts. If not, the node may still have the key. The renewals of a node
 * that is only slow count (core/trust.h).
 */
static bool grant_counts(const struct operation *operation, const struct node *node,
                         const struct trust_view *view) {
    return (view->fault == TRUST_NO_FAULT && !has_lost(operation, node)) ||
           (view->fault == TRUST_STALE && operation->round.kind == ROUND_RENEW);
}

/* Casts a grant that counts and was pushed. */
static void cast_push(struct operation *operation, struct node *node, const struct push *push) {
    uint64_t until =
        guard_key_stands_until(&node->guard, push->expires_ms, push->time_us, clock_now());
    bool decided = round_push(&operation->round, node->index, push->fence, until);
    record_vote(operation, node, decided);
    notify_owner(operation, decided, REDLOCK_VOTE_GRANTED);
}

/* Casts the vote of a node that has granted: by an answer, or by `push`. */
static __attribute__((noinline)) void vote_reviewed(struct operation *operation, struct node *node,
                                                    uint64_t fence, const struct push *push,
                                                    struct trust_view view) {
    /* Trust first: a node that may have lost keys grants to two holders. */
    if (!grant_counts(operation, node, &view)) {
        vote_untrusted(operation, node, view);
    } else if (is_beyond(operation, node, fence)) {
        vote_beyond(operation, node, fence);
    } else if (push != NULL) {
        cast_push(operation, node, push);
    } else {
        cast_grant(operation, node, fence);
    }
}

/* Casts a grant. Most come from a sound node and have no fence: these need no other check. */
static void vote_granted(struct operation *operation, struct node *node,
                         const struct reply_outcome *outcome) {
    struct trust_view view = guard_judge(&node->guard);
    /* Nothing was lost anywhere since the round began, so there are no grants to review. */
    bool is_sound = view.fault == TRUST_NO_FAULT &&
                    operation->operations->context->lost_at < operation->round.start;
    if (is_sound && outcome->fence == 0) {
        cast_grant(operation, node, 0);
    } else {
        review_grants(operation);
        vote_reviewed(operation, node, outcome->fence, NULL, view);
    }
}

static __attribute__((noinline)) void vote_unconfirmed(struct operation *operation,
                                                       struct node *node,
                                                       const struct reply_outcome *outcome) {
    uint32_t bit = node_bit(node);
    /* The grant counts once the replicas have confirmed it, by the reply to the WAIT. */
    if (operation->asked & bit) {
        operation->unconfirmed |= bit;
        round_record_fence(&operation->round, node->index, outcome->fence);
    } else {
        cast_other(operation, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

/*
 * Casts the vote that a key is held. The keys of a replica and of a duplicate are another node's,
 * perhaps the key that this operation has just set there, so that they deny nothing. Nor does a
 * node that was asked not to grant a free key, because its grants do not count (round/call.c).
 */
static __attribute__((noinline)) void vote_held(struct operation *operation, struct node *node,
                                                const struct reply_outcome *outcome,
                                                const char *detail) {
    struct trust_view view = guard_judge(&node->guard);
    bool is_free = view.fault != TRUST_NO_FAULT && outcome->other_ttl_ms == 0;
    if (is_free) {
        round_record_left_free(&operation->round, node->index);
        mark_queued(operation, node, outcome);
    }
    if (outcome->other_ttl_ms == 0 && operation->arguments.ttl_ms == 0) {
        detail = "left free for the holder";
    }
    if (is_free || view.fault == TRUST_REPLICA || view.fault == TRUST_DUPLICATE) {
        vote_untrusted(operation, node, view);
    } else if (!operation->round.doubts_denials) { /* otherwise the DIAGNOSE's answer is awaited */
        cast_other(operation, node, outcome, detail);
    }
}

void operation_vote(struct operation *operation, struct node *node,
                    const struct reply_outcome *outcome, const char *detail) {
    if (outcome->vote == REDLOCK_VOTE_DENIED) {
        vote_held(operation, node, outcome, detail);
    } else if (outcome->vote != REDLOCK_VOTE_GRANTED) {
        cast_other(operation, node, outcome, detail);
    } else if (operation_is_release(operation)) {
        /* A release is done or not: trust, fences and replicas only matter for grants. */
        cast_grant(operation, node, outcome->fence);
    } else if (operation->replicas == 0) {
        vote_granted(operation, node, outcome);
    } else {
        vote_unconfirmed(operation, node, outcome);
    }
}

/* ---- replicas ---- */

void operation_asks_replicas(struct operation *operation, const struct node *node) {
    operation->asked |= node_bit(node);
}

static void vote_confirmed(struct operation *operation, struct node *node, int64_t confirmations) {
    struct reply_outcome outcome = {.vote = REDLOCK_VOTE_GRANTED,
                                    .fence = round_answer(&operation->round, node->index).fence};
    /* With fewer copies a promoted replica may lack the key, so the grant does not count. */
    if (confirmations >= operation->replicas) {
        vote_granted(operation, node, &outcome);
        return;
    }
    char detail[80];
    snprintf(detail, sizeof(detail), "%" PRId64 " of %" PRIu32 " replicas confirmed it",
             confirmations, operation->replicas);
    cast_other(operation, node, &PLAIN_VOTE(UNTRUSTED), detail);
}

void operation_confirm(struct operation *operation, struct node *node, const struct reply *reply) {
    uint32_t bit = node_bit(node);
    if (!(operation->unconfirmed & bit)) {
        return; /* the node did not grant */
    }
    operation->unconfirmed &= ~bit;
    if (reply == NULL) {
        operation_vote_without_answer(operation, node);
    } else if (reply->type == REPLY_INTEGER) {
        vote_confirmed(operation, node, reply->integer);
    } else {
        if (reply->type == REPLY_ERROR) {
            node_complain(node, reply);
        }
        cast_other(operation, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

void operation_push(struct operation *operation, struct node *node, const struct push *push) {
    /* A push of a fenced lock carries the counter, and no other does. */
    bool is_fit = kind_is_fenced(operation->kind) == (push->fence > 0);
    review_grants(
        operation_hold(operation)); /* may end the round, and drop the owner's reference */
    if (is_fit && round_awaits_push(&operation->round, node->index)) {
        /* A push that does not count is a vote, too: the node's DENIED was about an earlier holder.
         */
        round_withdraw(&operation->round, node->index);
        vote_reviewed(operation, node, push->fence, push, guard_judge_push(&node->guard));
    }
    operation_drop(operation);
}

void operation_record_open(struct operation *operation, const struct node *node, uint64_t open_ms) {
    if (round_awaits_push(&operation->round, node->index)) {
        round_record_open(&operation->round, node->index, (uint32_t)nanos_min(open_ms, UINT32_MAX));
        notify_owner(operation, false, REDLOCK_VOTE_DENIED);
    }
}

void operation_record_permit(struct operation *operation, const struct node *node,
                             uint32_t permit) {
    /* An offer counts like a grant: while the round waits for it, and from a trusted node. */
    if (operation->round.permits != NULL && round_awaits_push(&operation->round, node->index) &&
        guard_judge_push(&node->guard).fault == TRUST_NO_FAULT) {
        permits_add_offer(operation->round.permits, node->index, permit);
        notify_owner(operation, false, REDLOCK_VOTE_GRANTED);
    }
}

/* Casts ERROR, with the server's text, for a command to a server that refuses the client. */
static void vote_denied_access(struct operation *operation, struct node *node, const char *text) {
    operation_vote(operation, node,
                   &(struct reply_outcome){.vote = REDLOCK_VOTE_ERROR, .is_access_denied = true},
                   text);
}

void operation_vote_out_of_memory(struct operation *operation, struct node *node) {
    operation_vote(operation, node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
}

void operation_vote_unsent(struct operation *operation, struct node *node) {
    redlock_vote vote = node_vote_unsent(node);
    operation_vote(
        operation, node,
        &(struct reply_outcome){.vote = vote, .is_access_denied = vote == REDLOCK_VOTE_REFUSED},
        NULL);
}

/*
 * Commands follow the login without waiting for its answer, so a server that refuses the login may
 * have carried them out all the same, as the default user.
 */
void operation_vote_without_answer(struct operation *operation, struct node *node) {
    const char *refusal = uplink_refusal(&node->uplink);
    /* Without a connection the command cannot have been carried out: nothing to undo. */
    if (!uplink_was_reached(&node->uplink)) {
        operation_vote_unsent(operation, node);
    } else if (refusal != NULL) {
        vote_denied_access(operation, node, refusal);
    } else {
        /* The command may have been carried out, so the node counts as a possible holder. */
        operation_vote(operation, node, &PLAIN_VOTE(BROKEN), "no answer before its end");
    }
}

void operation_vote_error(struct operation *operation, struct node *node,
                          const struct reply *reply) {
    const char *text = reply->type == REPLY_ERROR ? reply->text : "an answer that makes no sense";
    if (reply->type == REPLY_ERROR) {
        node_complain(node, reply);
    }
    if (reply_denies_access(text)) { /* often because the login was refused before */
        const char *refusal = uplink_refusal(&node->uplink);
        vote_denied_access(operation, node, refusal != NULL ? refusal : text);
    } else {
        operation_vote(operation, node, &PLAIN_VOTE(ERROR), text);
    }
}

/* ---- commands whose votes need a beat ahead of them ---- */

void operation_send_beats(const struct operation *operation) {
    const struct members *members = operation->operations->members;
    uint32_t rest = operation->nodes & members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        /* The beat that reports a loss comes between the grant and the renewal (core/trust.h). */
        node_beat(node, operation->round.start);
    }
}

uint32_t operation_prepare_take(struct operation *operation) {
    const struct members *members = operation->operations->members;
    uint32_t rest = operation->round.members;
    uint32_t takers = 0;
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        /* Answers come in order, so the node's trust is current before its grant arrives. */
        node_beat(node, operation->round.start);
        /* Our own key, taken at its original, would deny the command. */
        if (node_is_duplicate(node)) {
            vote_untrusted(operation, node, guard_look(&node->guard));
        } else if (operation->nodes & node_bit(node)) {
            takers |= node_bit(node);
        } else {
            operation_vote_unsent(operation, node);
        }
    }
    return takers;
}
