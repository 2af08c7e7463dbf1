/*
 * The happy path: one SET of the flight's key and token is encoded, and sent to each node, followed
 * by a WAIT if replicas have to confirm the grant. Each reply is a vote.
 *
 * Failures: a node that cannot be sent the SET votes UNREACHABLE or REFUSED at once. A grant whose
 * WAIT could not be sent does not count (flight_vote). A NULL reply is a vote, too.
 */
#include "round/set.h"

#include "base/nanos.h"
#include "core/options.h"

#include <stddef.h>

static void on_set_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct flight *flight = (struct flight *)request;
    struct node *node = node_of(owner);
    /* Without an answer, the vote depends on whether there was a connection. */
    if (reply == NULL) {
        flight_vote_without_answer(flight, node);
    } else {
        struct reply_outcome outcome = reply_to_set(reply);
        /* The text of an error distinguishes a missing right from other errors. */
        if (outcome.vote == REDLOCK_VOTE_ERROR) {
            flight_vote_error(flight, node, reply);
        } else {
            flight_vote(flight, node, &outcome, NULL);
        }
    }
    flight_drop(flight);
}

static void on_set_wait_reply(struct conn_request *request, void *owner,
                              const struct reply *reply) {
    struct flight *flight =
        (struct flight *)(void *)((char *)request - offsetof(struct flight, wait));
    flight_confirm(flight, node_of(owner), reply);
    flight_drop(flight);
}

/* Encodes the SET, and after it the WAIT, if any, into the scratch buffer. */
static void encode_set(struct flight *flight, struct bytes *command) {
    const struct context *context = flight->flights->context;
    const struct flight_plan *plan = &flight->plan;
    bytes_clear(command);
    command_set(command, &(struct lock_arguments){.key = plan->key,
                                                  .value = flight->token,
                                                  .owner = context->owner,
                                                  .ttl_ms = nanos_to_ms(plan->node_ttl),
                                                  .step = plan->is_new});
    size_t set_length = command->length;
    if (plan->replicas > 0) {
        command_wait(command, plan->replicas, options_wait_ms(&context->options));
    }
    flight->request = (struct conn_request){.on_reply = on_set_reply,
                                            .sent_at = flight->plan.now,
                                            .length = set_length,
                                            .load_class = LOAD_NEW};
    flight->wait = (struct conn_request){.on_reply = on_set_wait_reply,
                                         .sent_at = flight->plan.now,
                                         .length = command->length - set_length,
                                         .load_class = LOAD_NEW};
}

/* Sends the encoded commands to a node. Returns false if the SET could not be sent. */
static bool send_set_to(struct flight *flight, struct node *node, const struct bytes *command) {
    size_t set_length = flight->request.length;
    /* Without memory the command is incomplete, and must not be sent. */
    if (command->failed || !node_send(node, &flight->request, command->data, set_length)) {
        return false;
    }
    /* One reference for each reply to come, so that late replies find the flight. */
    flight_hold(flight);
    /* On the same connection, because WAIT covers the writes of its own connection. */
    if (flight->plan.replicas > 0 &&
        node_send(node, &flight->wait, command->data + set_length, command->length - set_length)) {
        flight_hold(flight);
        flight_asks_replicas(flight, node);
    }
    return true;
}

void set_send(struct flight *flight, uint32_t nodes) {
    const struct members *members = flight->flights->members;
    struct bytes *command = &flight->flights->context->scratch;
    struct node *node;
    encode_set(flight, command);
    while ((node = members_take(members, &nodes)) != NULL) {
        /* A node that was sent the SET votes by its reply. */
        if (send_set_to(flight, node, command)) {
            continue;
        }
        if (command->failed) {
            flight_vote(flight, node, &PLAIN_VOTE(UNREACHABLE), "out of memory");
        } else {
            flight_vote_unsent(flight, node);
        }
    }
}
