/*
 * The happy path: a new channel asks for its number (CLIENT ID) before it subscribes. Once the
 * channel is ready, the first key to watch makes the node's connection send CLIENT TRACKING, with
 * the channel's number: a ready channel leads to the same server as the node's connection, so the
 * number is not another client's there. CLIENT CACHING and GETRANGE follow at once, for each key.
 *
 * Failures: a refusal is logged once, and nothing is watched until there is a new channel. When a
 * channel is ready, no answer to an earlier CLIENT TRACKING is due any more: the probe's answer
 * came after those to all earlier commands of the node's connection.
 */
#include "node/tracking.h"

#include "base/nanos.h"
#include "core/event.h"
#include "io/clock.h"
#include "wire/command.h"

#include <inttypes.h>
#include <stdio.h>

static struct context *tracking_context(const struct tracking *tracking) {
    return tracking->commands->context;
}

static void give_up_tracking(struct tracking *tracking, const char *command, bool lacks_right,
                             const char *why) {
    tracking->state = TRACKING_REFUSED;
    if (!tracking->has_warned) {
        tracking->has_warned = true;
        EMIT(&tracking_context(tracking)->events, tracking_refused,
             .node = tracking->commands->name, .right = lacks_right ? command : "", .why = why);
    }
}

void tracking_refused(struct tracking *tracking, const char *command, const struct reply *reply) {
    give_up_tracking(tracking, command, reply_lacks_right(reply), reply->text);
}

static void on_number(struct conn_request *request, void *owner, const struct reply *reply) {
    struct tracking *tracking =
        (struct tracking *)(void *)((char *)request - offsetof(struct tracking, number));
    (void)owner;
    if (reply != NULL && reply->type == REPLY_INTEGER) {
        tracking->target = reply->integer;
    }
    tracking->lacks_number = reply != NULL && reply_lacks_right(reply);
}

static void on_order(struct conn_request *request, void *owner, const struct reply *reply) {
    struct tracking *tracking =
        (struct tracking *)(void *)((char *)request - offsetof(struct tracking, order));
    (void)owner;
    if (reply != NULL && reply->type == REPLY_ERROR) {
        tracking_refused(tracking, "+client|tracking", reply);
    }
}

void tracking_init(struct tracking *tracking, struct uplink *commands) {
    *tracking = (struct tracking){.commands = commands};
}

#define WORDS(...)                                                                                 \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), (const char *[]) {               \
        __VA_ARGS__                                                                                \
    }

/* Sends the command in `scratch` as one of the client's own, which no bound refuses. */
static bool send_command(struct uplink *uplink, struct conn_request *request) {
    const struct bytes *command = &uplink->context->scratch;
    request->sent_at = clock_now();
    request->length = command->length;
    request->load_class = LOAD_OWN;
    return !command->failed && uplink_send(uplink, request, command->data, command->length);
}

static bool send_words(struct uplink *uplink, struct conn_request *request, unsigned count,
                       const char *const *words) {
    bytes_clear(&uplink->context->scratch);
    command_words(&uplink->context->scratch, count, words);
    return send_command(uplink, request);
}

void tracking_begin(struct tracking *tracking, struct uplink *channel) {
    tracking->state = TRACKING_OFF; /* until the first watch on the new channel */
    tracking->target = 0;
    tracking->number.on_reply = on_number;
    send_words(channel, &tracking->number, WORDS("CLIENT", "ID"));
}

/* Sends CLIENT TRACKING, once for a channel. Returns whether keys can be watched. */
static bool turn_on(struct tracking *tracking) {
    char target[24];
    if (tracking->state != TRACKING_OFF) {
        return tracking->state == TRACKING_ON;
    }
    if (tracking->target == 0) { /* CLIENT ID was refused, or its answer was no number */
        give_up_tracking(tracking, "+client|id", tracking->lacks_number, "CLIENT ID");
        return false;
    }
    snprintf(target, sizeof(target), "%" PRId64, tracking->target);
    tracking->order.on_reply = on_order;
    if (send_words(tracking->commands, &tracking->order,
                   WORDS("CLIENT", "TRACKING", "ON", "REDIRECT", target, "OPTIN", "NOLOOP"))) {
        tracking->state = TRACKING_ON; /* replies come in order: the answer is not awaited */
    }
    return tracking->state == TRACKING_ON;
}

unsigned tracking_watch(struct tracking *tracking, struct tracking_requests *requests,
                        const char *key, size_t length) {
    struct uplink *commands = tracking->commands;
    struct bytes *scratch = &commands->context->scratch;
    if (!turn_on(tracking) ||
        !send_words(commands, &requests->caching, WORDS("CLIENT", "CACHING", "YES"))) {
        return 0;
    }
    bytes_clear(scratch);
    command_look(scratch, key, length);
    context_wake(commands->context);
    return send_command(commands, &requests->look) ? 2 : 1;
}
