/*
 * The happy path: round_plan makes a flight from a plan; round_send picks the command, by the kind
 * of the lock and of the round. A SET is sent at once, after the calls of this turn if one of them
 * may name its key. A script's call is collected, to be shared by many locks, and sent at the end
 * of the turn; only top-ups, and tries that must go at once, are sent at once and alone.
 *
 * Failures: without memory for a flight nothing is sent. A node that cannot be sent the command
 * votes UNREACHABLE or REFUSED at once. A release that does not reach a node becomes a pending
 * release of the node (flight.c), as does one for which there was no flight.
 */
#include "round/send.h"

#include "round/set.h"

void rounds_init(struct rounds *rounds, struct context *context, const struct members *members) {
    flights_init(&rounds->flights, context, members);
    batches_init(&rounds->batches, context, members);
}

void rounds_finish(struct rounds *rounds) {
    batches_finish(&rounds->batches);
    flights_finish(&rounds->flights);
}

enum script round_release_script(const struct kind *kind, uint64_t ticket, uint64_t stay_until,
                                 uint64_t now) {
    /* Before stay_until (min_hold_ms) the key is left to expire, and passed to no waiter. */
    return now < stay_until ? kind->stay : ticket > 0 ? kind->leave : kind->release;
}

static enum script script_of(const struct flight_plan *plan) {
    switch (plan->round) {
    case ROUND_ACQUIRE:
        return plan->is_new ? plan->kind->take : plan->kind->top_up;
    case ROUND_QUEUE:
        return plan->kind->queue;
    case ROUND_RELEASE:
    /* A DIAGNOSE also releases the failed try. */
    case ROUND_DIAGNOSE:
        return round_release_script(plan->kind, plan->ticket, plan->stay_until, plan->now);
    default:
        return plan->kind->renew;
    }
}

/* Sends a SET now, after the calls of this turn if one of them may name the key. */
static void send_set(struct rounds *rounds, struct flight *flight, uint32_t nodes) {
    /* A release of the key in this turn goes first: the SET would be denied by our old token. */
    if (batches_may_hold(&rounds->batches, flight->plan.key)) {
        batches_send(&rounds->batches);
    }
    set_send(flight, nodes);
}

void round_send(struct rounds *rounds, struct flight *flight) {
    const struct flight_plan *plan = &flight->plan;
    enum script script = script_of(plan);
    EMIT(&rounds->flights.context->events, round_sent, .request = plan->request,
         .key = plan->key->bytes, .round = plan->round);
    bool takes = plan->round == ROUND_ACQUIRE || plan->round == ROUND_QUEUE;
    /* Commands that take the key refresh the nodes' trust first, and leave duplicates out. */
    uint32_t nodes = takes ? flight_prepare_take(flight) : plan->nodes;
    /* Locks share a call at the end of the turn, except top-ups and tries that go at once. */
    if (script == SCRIPT_NONE) {
        send_set(rounds, flight, nodes);
    } else if (!takes || (plan->is_new && plan->order != FLIGHT_AT_ONCE)) {
        batches_add(&rounds->batches, script, nodes, flight);
    } else {
        batches_send_alone(&rounds->batches, script, nodes, flight);
    }
}

bool round_send_unattended(struct rounds *rounds, const struct flight_plan *plan) {
    struct flight *flight = round_plan(rounds, FLIGHT_UNATTENDED, plan);
    if (flight != NULL) {
        round_send(rounds, flight);
    }
    flight_drop(flight);
    return flight != NULL;
}

/* Makes a release that there was no memory to send a pending release of `nodes`, a mask. */
static void defer_to_nodes(const struct rounds *rounds, const struct release *release,
                           uint32_t nodes) {
    const struct members *members = rounds->flights.members;
    uint32_t rest = nodes & members_all(members);
    struct node *node;
    while ((node = members_take(members, &rest)) != NULL) {
        node_defer_release(node, release);
    }
}

bool round_send_release(struct rounds *rounds, struct flight_listener listener,
                        const struct release *release, uint32_t nodes, uint64_t now) {
    const struct flight_plan plan = {.round = ROUND_DIAGNOSE,
                                     .request = release->request,
                                     .kind = release->kind,
                                     .key = release->key,
                                     .token = release->token,
                                     .ticket = release->ticket,
                                     .now = now,
                                     .nodes = nodes,
                                     .may_hold = nodes,
                                     .keep_until = release->until,
                                     .stay_until = release->stay_until};
    struct flight *flight = round_plan(rounds, listener, &plan);
    if (flight == NULL) { /* no flight to report failures, so it is pending at all nodes */
        defer_to_nodes(rounds, release, nodes);
        return false;
    }
    round_send(rounds, flight);
    flight_drop(flight);
    return true;
}
