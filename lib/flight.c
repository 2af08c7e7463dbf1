#include "flight.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/options.h"
#include "node.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The longest detail that is kept. */
#define DETAIL_MAX 160

struct flight_detail {
    struct flight_detail *next;
    uint32_t node;
    char text[DETAIL_MAX];
};

const struct pool_kind flight_kind = {.size = sizeof(struct flight), .max_spares = 4096};

/* Beside each flight for a permit. */
const struct pool_kind permits_kind = {.size = sizeof(struct permits), .max_spares = 1024};

static void on_set_reply(struct conn_request *request, void *owner, const struct reply *reply);
static void on_wait_reply(struct conn_request *request, void *owner, const struct reply *reply);

static void begin_round(struct flight *flight, const struct flight_plan *plan,
                        struct permits *permits) {
    const struct members *members = &flight->context->members;
    round_begin(&flight->round, plan->kind, members_lists(members), plan->now, plan->ttl,
                plan->awaited);
    if (permits != NULL) {
        permits_begin(permits, plan->permits);
        flight->round.permits = permits;
    }
}

struct flight *flight_create(struct context *context, struct flight_listener listener,
                             const struct flight_plan *plan) {
    struct permits *permits = plan->permits > 0 ? pool_take(&context->permits) : NULL;
    if (plan->permits > 0 && permits == NULL) {
        return NULL;
    }
    struct flight *flight = pool_take(&context->flights);
    if (flight == NULL) {
        if (permits != NULL) {
            pool_put(&context->permits, permits);
        }
        return NULL;
    }
    context->flights_out++;
    flight->request.on_reply = on_set_reply;
    flight->wait.on_reply = on_wait_reply;
    flight->request.claim = flight->wait.claim = LOAD_NEW;
    flight->context = context;
    flight->listener = listener;
    flight->key = key_hold(plan->key);
    memcpy(flight->token, plan->token, sizeof(flight->token));
    flight->references = 1;
    flight->may_hold = plan->may_hold;
    flight->keep_until = plan->keep_until;
    flight->stay_until = plan->stay_until;
    flight->node_ttl = nanos_add(plan->ttl, plan->lock_delay);
    flight->is_fenced = plan->is_fenced;
    flight->fence = plan->fence;
    flight->step = plan->step;
    flight->intent_ms = plan->intent_ms;
    flight->replicas = plan->replicas;
    flight->asked = flight->unconfirmed = 0;
    flight->is_void = false;
    flight->details = NULL;
    begin_round(flight, plan, permits);
    return flight;
}

struct flight *flight_hold(struct flight *flight) {
    flight->references++;
    return flight;
}

void flight_drop(struct flight *flight) {
    if (flight == NULL || --flight->references > 0) {
        return;
    }
    struct context *context = flight->context;
    while (flight->details != NULL) {
        struct flight_detail *detail = flight->details;
        flight->details = detail->next;
        memory_free(&context->allocator, detail);
    }
    key_drop(flight->key);
    if (flight->round.permits != NULL) {
        pool_put(&context->permits, flight->round.permits);
    }
    pool_put(&context->flights, flight);
    context->flights_out--;
    if (context->is_closing) {
        context_wake(context); /* it may have been the last that the farewell waits for */
    }
}

/* ---- votes ---- */

static void note_detail(struct flight *flight, uint32_t node, const char *text) {
    struct flight_detail *detail = memory_alloc(&flight->context->allocator, sizeof(*detail));
    if (detail == NULL) {
        return; /* the vote counts without its words */
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

static bool is_release(const struct flight *flight) {
    return flight->round.kind == ROUND_RELEASE || flight->round.kind == ROUND_SETTLE;
}

static bool was_not_done(redlock_vote vote) {
    return vote == REDLOCK_VOTE_UNREACHABLE || vote == REDLOCK_VOTE_BROKEN ||
           vote == REDLOCK_VOTE_ERROR;
}

/* Nobody waits for a server that refuses while the client closes. */
static void owe(const struct flight *flight, struct node *node, redlock_vote vote) {
    if (flight->context->is_closing && vote == REDLOCK_VOTE_ERROR) {
        flight->context->unreleased++;
        return;
    }
    node_owe(node, &(struct owed){.key = flight->key,
                                  .token = flight->token,
                                  .until = flight->keep_until,
                                  .stay_until = flight->stay_until});
}

static bool count(struct round *round, uint32_t node, const struct reply_outcome *outcome) {
    return outcome->vote == REDLOCK_VOTE_GRANTED
               ? round_grant(round, node, outcome->fence)
               : round_vote(round, node, outcome->vote, outcome->other_ttl_ms);
}

/* What is free at a node whose grants do not count is of no use. */
static void note_permits(const struct flight *flight, const struct node *node,
                         const struct reply_outcome *outcome) {
    struct permits *permits = flight->round.permits;
    if (outcome->free_length == 0 || guard_judge(&node->guard).verdict != TRUST_FULL) {
        return;
    }
    for (uint32_t permit = 0; permit < permits->count; permit++) {
        if (reply_says_free(outcome, permit)) {
            permits_note(permits, node->index, permit);
        }
    }
}

static void cast(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail) {
    note_permits(flight, node, outcome);
    bool decided = count(&flight->round, node->index, outcome);
    if (detail != NULL && detail[0] != '\0') {
        note_detail(flight, node->index, detail);
    }
    if (is_release(flight) && was_not_done(outcome->vote) &&
        (flight->may_hold >> node->index & 1)) {
        owe(flight, node, outcome->vote);
    }
    if (flight->listener.on_vote != NULL) {
        flight->listener.on_vote(flight->listener.owner, decided, outcome->vote);
    }
}

/* What a node granted that is not trusted is not counted; it may be there all the same. */
static bool is_counted(const struct flight *flight, const struct trust_view *view) {
    return view->verdict == TRUST_FULL ||
           (view->verdict == TRUST_YOUNG && flight->round.kind == ROUND_RENEW);
}

static void vote_untrusted(struct flight *flight, struct node *node, struct trust_view view) {
    uint64_t left_ms = guard_distrust_ms(&view);
    struct reply_outcome outcome = {
        .vote = REDLOCK_VOTE_UNTRUSTED,
        .other_ttl_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
    };
    cast(flight, node, &outcome, guard_why(&node->guard));
}

/* A grant counts if the node's word does. */
static void vote_granted(struct flight *flight, struct node *node,
                         const struct reply_outcome *outcome) {
    struct trust_view view = guard_judge(&node->guard);
    if (is_counted(flight, &view)) {
        cast(flight, node, outcome, NULL);
    } else {
        vote_untrusted(flight, node, view);
    }
}

void flight_vote(struct flight *flight, struct node *node, const struct reply_outcome *outcome,
                 const char *detail) {
    uint32_t bit = UINT32_C(1) << node->index;
    if (outcome->vote != REDLOCK_VOTE_GRANTED || is_release(flight)) {
        cast(flight, node, outcome, detail);
    } else if (flight->replicas == 0) {
        vote_granted(flight, node, outcome);
    } else if (flight->asked & bit) {
        flight->unconfirmed |= bit;
        flight->round.fences[node->index] = outcome->fence; /* it counts when it is confirmed */
    } else {
        cast(flight, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

/* ---- replicas ---- */

uint64_t flight_wait_ms(const struct context *context) {
    return options_wait_ms(&context->options);
}

void flight_asks_replicas(struct flight *flight, const struct node *node) {
    flight->asked |= UINT32_C(1) << node->index;
}

static void vote_confirmed(struct flight *flight, struct node *node, int64_t confirmations) {
    struct reply_outcome outcome = {.vote = REDLOCK_VOTE_GRANTED,
                                    .fence = flight->round.fences[node->index]};
    if (confirmations >= flight->replicas) {
        vote_granted(flight, node, &outcome);
        return;
    }
    char detail[80];
    snprintf(detail, sizeof(detail), "%" PRId64 " of %" PRIu32 " replicas confirmed it",
             confirmations, flight->replicas);
    cast(flight, node, &PLAIN_VOTE(UNTRUSTED), detail);
}

void flight_confirm(struct flight *flight, struct node *node, const struct reply *reply) {
    uint32_t bit = UINT32_C(1) << node->index;
    if (!(flight->unconfirmed & bit)) {
        return; /* it was no grant */
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
        cast(flight, node, &PLAIN_VOTE(UNTRUSTED), "its replicas could not be asked");
    }
}

void flight_vote_without_answer(struct flight *flight, struct node *node) {
    if (node_was_reached(node)) {
        flight_vote(flight, node, &PLAIN_VOTE(BROKEN), "no answer before its end");
    } else {
        flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), NULL);
    }
}

void flight_vote_error(struct flight *flight, struct node *node, const struct reply *reply) {
    const char *text = reply->type == REPLY_ERROR ? reply->text : "an answer that makes no sense";
    if (reply->type == REPLY_ERROR) {
        node_complain(node, reply);
    }
    flight_vote(flight, node, &PLAIN_VOTE(ERROR), text);
}

/* ---- SET ---- */

static void on_set_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct flight *flight = (struct flight *)request;
    struct node *node = owner;
    if (reply == NULL) {
        flight_vote_without_answer(flight, node);
    } else {
        struct reply_outcome outcome = reply_to_set(reply);
        if (outcome.vote == REDLOCK_VOTE_ERROR) {
            flight_vote_error(flight, node, reply);
        } else {
            flight_vote(flight, node, &outcome, NULL);
        }
    }
    flight_drop(flight);
}

static void on_wait_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct flight *flight =
        (struct flight *)(void *)((char *)request - offsetof(struct flight, wait));
    flight_confirm(flight, owner, reply);
    flight_drop(flight);
}

/* Whoever has not been looked at for a second is, before it grants anything. */
static void look_at_nodes(const struct context *context, uint64_t now) {
    uint32_t rest = members_all(&context->members);
    struct node *node;
    while ((node = members_take(&context->members, &rest)) != NULL) {
        node_beat(node, now, GUARD_BEAT_NANOS);
    }
}

/* A SET, and behind it a WAIT if its replicas are to confirm it. */
static bool send_set(struct flight *flight, struct node *node, const struct bytes *command,
                     size_t set_length) {
    if (command->failed || !node_send(node, &flight->request, command->data, set_length)) {
        return false;
    }
    flight_hold(flight);
    if (flight->replicas > 0 &&
        node_send(node, &flight->wait, command->data + set_length, command->length - set_length)) {
        flight_hold(flight);
        flight_asks_replicas(flight, node);
    }
    return true;
}

void flight_send_set(struct flight *flight, uint32_t nodes) {
    struct context *context = flight->context;
    struct bytes *command = &context->scratch;
    look_at_nodes(context, flight->round.start);
    bytes_clear(command);
    command_set(command, flight->key->bytes, flight->key->length, flight->token, context->owner,
                nanos_to_ms(flight->node_ttl));
    size_t set_length = command->length;
    if (flight->replicas > 0) {
        command_wait(command, flight->replicas, flight_wait_ms(context));
    }
    flight->request.sent_at = flight->wait.sent_at = flight->round.start;
    flight->request.length = set_length;
    flight->wait.length = command->length - set_length;
    uint32_t rest = flight->round.members;
    struct node *node;
    while ((node = members_take(&context->members, &rest)) != NULL) {
        if (node_is_twin(node)) { /* it would be denied by our own key */
            vote_untrusted(flight, node, guard_look(&node->guard));
        } else if (!(nodes >> node->index & 1) || !send_set(flight, node, command, set_length)) {
            flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE),
                        command->failed ? "out of memory" : NULL);
        }
    }
}

uint32_t flight_prepare_take(struct flight *flight, uint32_t nodes) {
    struct context *context = flight->context;
    uint32_t rest = flight->round.members;
    uint32_t takers = 0;
    struct node *node;
    look_at_nodes(context, flight->round.start);
    while ((node = members_take(&context->members, &rest)) != NULL) {
        if (node_is_twin(node)) {
            vote_untrusted(flight, node, guard_look(&node->guard));
        } else if (nodes >> node->index & 1) {
            takers |= UINT32_C(1) << node->index;
        } else {
            flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), NULL);
        }
    }
    return takers;
}
