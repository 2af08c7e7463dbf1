/*
 * The happy path: OFF -> CONNECTING -> SUBSCRIBING -> PROBING -> READY. The connection is made when
 * the channel is wanted and the node's own connection is up. On it the client subscribes to a new
 * random name. A probe, a script on the node's own connection, publishes a message to the name.
 * When the script has answered that a subscriber was sent the message, and the message has arrived,
 * both connections lead to one server, and the user has all rights. From time to time another probe
 * follows, unless messages come.
 *
 * Failures: when either connection ends, a probe has no subscriber, or its message does not come
 * back within stall_timeout_ms, the name is void: the connection is closed (ENDING), and the uplink
 * makes a new one, with its delays. After a refusal, which needs an operator, no connection is kept
 * (REFUSED), and the server is asked again after CHANNEL_REFUSED_NANOS; the refusal is logged once.
 * Each connection ends in on_connection_down, which decides the next state.
 */
#include "node/channel.h"

#include "core/event.h"
#include "io/clock.h"
#include "io/random.h"
#include "wire/command.h"
#include "wire/reply.h"
#include "wire/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The beginning of the messages of probes, and of no others. */
#define PROBE "probe:"

/*
 * The lateness of a beat that shows that the loop was away: a probe may have just been written, and
 * its message may have arrived without being read.
 */
#define LATE (50 * NANOS_PER_MS)

static struct context *channel_context(const struct channel *channel) {
    return channel->uplink.context;
}

static bool should_run(const struct channel *channel) {
    return channel->is_wanted && channel->commands->state == UPLINK_UP;
}

static bool is_subscribed(const struct channel *channel) {
    return channel->state == CHANNEL_PROBING || channel->state == CHANNEL_READY;
}

/* ---- starting and ending ---- */

static void start_connecting(struct channel *channel) {
    uplink_stop(&channel->uplink, "not connected yet");
    channel->state = CHANNEL_CONNECTING;
    channel->retry_at = 0;
    uplink_start_soon(&channel->uplink);
}

/* Closes the connection; on_connection_down follows from the loop. */
static void drop_connection(struct channel *channel, const char *why) {
    channel->state = CHANNEL_ENDING;
    uplink_drop(&channel->uplink, why);
}

/*
 * Ends a channel that should not run. If a message may be under delivery, the connection must
 * outlive this call: then on_connection_down follows.
 */
static void halt(struct channel *channel, const char *why) {
    if (channel->state == CHANNEL_SUBSCRIBING || is_subscribed(channel)) {
        /* The caller may be handling one of this connection's messages. */
        drop_connection(channel, why);
    } else if (channel->state != CHANNEL_ENDING) {
        uplink_stop(&channel->uplink, why);
        channel->state = CHANNEL_OFF;
    }
}

void channel_want(struct channel *channel, bool is_wanted) {
    channel->is_wanted = is_wanted;
    if (is_wanted) {
        channel_command_up(channel);
    } else {
        channel->has_reported_ready = channel->has_failed = false;
        halt(channel, "nobody waits");
    }
}

void channel_command_up(struct channel *channel) {
    if (channel->state == CHANNEL_OFF && should_run(channel)) {
        start_connecting(channel);
    }
}

void channel_command_down(struct channel *channel) {
    halt(channel, "the node is not connected");
}

static void on_connection_down(struct uplink *uplink, uint64_t now) {
    struct channel *channel = channel_of(uplink);
    bool had_reported_ready = channel->has_reported_ready;
    channel->has_reported_ready = false;
    channel->has_failed |= channel->is_wanted;
    if (!should_run(channel)) {
        channel->state = CHANNEL_OFF;
        uplink_rest(uplink);
    } else if (channel->retry_at > now) { /* channel_beat asks the server again then */
        channel->state = CHANNEL_REFUSED;
        uplink_rest(uplink);
    } else {
        channel->state = CHANNEL_CONNECTING;
        EMIT(&uplink->context->events, channel_down, .node = uplink->name, .reason = uplink->reason,
             .retry_in = uplink_retries_in(uplink, now), .is_repeated = uplink_fails_again(uplink));
    }
    if (had_reported_ready) {
        channel->listener->on_broken(channel);
    }
}

/* ---- refusals ---- */

/*
 * Returns the right that the user lacks, by the server's error: "... run the 'publish' command" and
 * "... can't run this command" are for commands, any other error is for channels.
 */
static const char *right_for(const struct reply *reply, const char *right_to_run) {
    return strstr(reply->text, " run th") != NULL ? right_to_run : "&redlock:*";
}

/*
 * Waits for an operator after the refusal of a command: logs it, drops the connection, and asks
 * again at retry_at. `right_to_run` is the right for the command itself.
 */
static void await_operator(struct channel *channel, const char *command, const char *right_to_run,
                           const struct reply *reply) {
    char why[sizeof(channel->uplink.reason)];
    bool is_forbidden = reply_lacks_right(reply);
    snprintf(why, sizeof(why), "%s is refused%s%s: %s", command,
             is_forbidden ? ", the user needs " : "",
             is_forbidden ? right_for(reply, right_to_run) : "", reply->text);
    if (!channel->has_warned) {
        channel->has_warned = true;
        EMIT(&channel_context(channel)->events, channel_refused, .node = channel->uplink.name,
             .why = why);
    }
    channel->retry_at = nanos_add(clock_now(), CHANNEL_REFUSED_NANOS);
    drop_connection(channel, why);
}

void channel_lacks_queue(struct channel *channel, const char *key) {
    char why[sizeof(channel->uplink.reason)];
    if (!channel->lacks_queue) {
        channel->lacks_queue = true;
        snprintf(why, sizeof(why),
                 "no queue entries, the user needs +zadd, +zrange, +zrem and ~%s" QUEUE_SUFFIX,
                 key);
        EMIT(&channel_context(channel)->events, channel_refused, .node = channel->uplink.name,
             .why = why);
    }
}

/* ---- probes ---- */

/* Sends a probe, unless an answer is still due, which then may send the next one. */
static void send_probe(struct channel *channel, uint64_t now) {
    struct channel_probe *probe = &channel->probe;
    struct bytes *scratch = &channel_context(channel)->scratch;
    if (probe->is_pending) {
        return;
    }
    probe->is_answered = probe->has_arrived = probe->is_excused = false;
    probe->eval.texted = 0;
    snprintf(probe->text, sizeof(probe->text), PROBE "%" PRIu64, ++channel->probes);
    bool with_text = eval_takes_text(&probe->eval, channel->commands, 0);
    const char *command = with_text ? "EVAL" : "EVALSHA";
    const char *script = with_text ? script_text(SCRIPT_PROBE) : script_sha(SCRIPT_PROBE);
    bytes_clear(scratch);
    command_words(scratch, 5, (const char *[]){command, script, "0", channel->name, probe->text});
    probe->request.sent_at = now;
    probe->request.length = scratch->length;
    probe->is_pending = !scratch->failed && uplink_send(channel->commands, &probe->request,
                                                        scratch->data, scratch->length);
    if (!probe->is_pending) {
        eval_not_sent(&probe->eval, channel->commands, 0);
    }
    context_wake(channel_context(channel));
}

/* Makes the channel ready once the first probe has both been answered and come back. */
static void finish_probing(struct channel *channel) {
    const struct channel_probe *probe = &channel->probe;
    /* PUBLISH also counts subscribers by pattern, so the answer alone proves nothing. */
    if (channel->state != CHANNEL_PROBING || !probe->is_answered || !probe->has_arrived) {
        return;
    }
    channel->state = CHANNEL_READY;
    channel->has_reported_ready = true;
    channel->has_warned = false;
    EMIT(&channel_context(channel)->events, channel_up, .node = channel->uplink.name);
    channel->listener->on_ready(channel);
}

static void on_probe_refused(struct channel *channel, const struct reply *reply) {
    bool is_script = reply_is_forbidden(reply);           /* the script, not its PUBLISH */
    if (reply_classify(reply) != REPLY_ERROR_TRY_LATER) { /* otherwise the next beat tries again */
        await_operator(channel, "PUBLISH by a script", is_script ? "+eval +evalsha" : "+publish",
                       reply);
    }
}

static void on_probe_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    struct channel_probe *probe = (struct channel_probe *)request;
    struct channel *channel = probe->channel;
    bool is_due_again = eval_is_asked_again(&probe->eval, channel->commands, 0, reply);
    is_due_again |= probe->is_for_another;
    (void)owner;
    probe->is_pending = probe->is_for_another = false;
    if (reply == NULL || !is_subscribed(channel)) {
        return;
    }
    if (is_due_again) { /* NOSCRIPT, or a probe for an earlier name */
        send_probe(channel, clock_now());
    } else if (reply->type == REPLY_ERROR) {
        on_probe_refused(channel, reply);
    } else if (reply->type == REPLY_INTEGER && reply->integer > 0) {
        probe->is_answered = true;
        probe->request.sent_at = clock_now(); /* the message is on its way from now on */
        finish_probing(channel);
    } else {
        drop_connection(channel, reply->type == REPLY_INTEGER
                                     ? "a probe reached nobody: is it another server?"
                                     : "a probe's answer makes no sense");
    }
}

/* Returns the time for which the server owes the probe: it answers earlier commands first. */
static uint64_t overdue(const struct channel *channel, uint64_t now) {
    const struct channel_probe *probe = &channel->probe;
    uint64_t heard_at = probe->is_pending ? uplink_heard_at(channel->commands) : 0;
    return nanos_sub(now, nanos_max(probe->request.sent_at, heard_at));
}

/* Drops the connection if the probe is overdue. After a late beat it gets more time, once. */
static void judge(struct channel *channel, uint64_t now, bool is_late) {
    uint64_t stall = uplink_stall_timeout(channel->commands);
    struct channel_probe *probe = &channel->probe;
    bool is_missing = !probe->has_arrived && !probe->is_for_another;
    if (!is_missing || overdue(channel, now) < stall) {
        return;
    }
    if (is_late && !probe->is_excused) {
        probe->is_excused = true;
        return;
    }
    char why[96];
    snprintf(why, sizeof(why), "stalled: a probe has not come back for %" PRIu64 " ms",
             nanos_to_ms(stall));
    drop_connection(channel, why);
}

/* Returns whether a probe is under way, or its message. */
static bool is_out(const struct channel_probe *probe) {
    return probe->is_pending || (probe->is_answered && !probe->has_arrived);
}

void channel_beat(struct channel *channel, uint64_t now) {
    /* The loop was away: replies may have arrived that it has not read yet. */
    bool is_late = nanos_sub(now, channel->beaten_at) > CHANNEL_BEAT_NANOS + LATE;
    channel->beaten_at = now;
    if (channel->state == CHANNEL_REFUSED && channel->retry_at <= now) {
        start_connecting(channel);
    } else if (is_subscribed(channel) && is_out(&channel->probe)) {
        judge(channel, now, is_late);
    }
}

/* A message proves as much as a probe does. The connection must exist. */
static bool is_probe_due(const struct channel *channel, uint64_t now) {
    return channel->state == CHANNEL_PROBING ||
           nanos_sub(now, uplink_heard_at(&channel->uplink)) >= CHANNEL_PROBE_NANOS;
}

void channel_probe(struct channel *channel, uint64_t now) {
    if (is_subscribed(channel) && !is_out(&channel->probe) && is_probe_due(channel, now)) {
        send_probe(channel, now);
    }
}

/* ---- the subscription ---- */

static void on_subscribed(struct conn_request *request, void *owner, const struct reply *reply) {
    struct channel *channel = channel_of(owner);
    (void)request;
    if (reply == NULL || channel->state != CHANNEL_SUBSCRIBING) {
        return;
    }
    if (reply->type != REPLY_ERROR) { /* subscribed: messages may arrive from now on */
        channel->state = CHANNEL_PROBING;
        send_probe(channel, clock_now());
    } else if (reply_classify(reply) == REPLY_ERROR_TRY_LATER) {
        drop_connection(channel, reply->text);
    } else {
        await_operator(channel, "SUBSCRIBE", "+subscribe", reply);
    }
}

static void draw_name(struct channel *channel) {
    char digits[33];
    snprintf(digits, sizeof(digits), "%016" PRIx64 "%016" PRIx64, random_seed(), random_seed());
    snprintf(channel->name, sizeof(channel->name), "redlock:%.*s", CHANNEL_DIGITS, digits);
}

/* Subscribes to a new name. Without memory the connection ends. */
static void on_connection_up(struct uplink *uplink) {
    struct channel *channel = channel_of(uplink);
    struct bytes *scratch = &uplink->context->scratch;
    draw_name(channel);
    tracking_begin(&channel->tracking, uplink); /* first: nothing can be sent after SUBSCRIBE */
    channel->state = CHANNEL_SUBSCRIBING;
    channel->probe.is_for_another = channel->probe.is_pending;
    bytes_clear(scratch);
    command_words(scratch, 2, (const char *[]){"SUBSCRIBE", channel->name});
    channel->subscription = (struct conn_request){.on_reply = on_subscribed,
                                                  .sent_at = clock_now(),
                                                  .length = scratch->length,
                                                  .load_class = LOAD_OWN};
    if (scratch->failed) {
        drop_connection(channel, "out of memory");
    } else {
        uplink_subscribe(uplink, &channel->subscription, channel->name, scratch->data,
                         scratch->length);
    }
    context_wake(uplink->context);
}

/* Takes in probes, and passes on other messages once scripts may know the name. */
static void on_connection_message(struct uplink *uplink, const char *text, size_t length) {
    struct channel *channel = channel_of(uplink);
    struct channel_probe *probe = &channel->probe;
    if (length >= sizeof(PROBE) - 1 && memcmp(text, PROBE, sizeof(PROBE) - 1) == 0) {
        probe->has_arrived |= strcmp(text, probe->text) == 0; /* not an earlier probe */
        finish_probing(channel);
    } else if (channel->state == CHANNEL_READY) {
        channel->listener->on_message(channel, text, length);
    }
}

static void on_connection_key_change(struct uplink *uplink, const char *key, size_t length) {
    struct channel *channel = channel_of(uplink);
    /* A change before that concerns no watch of ours. */
    if (channel->state == CHANNEL_READY && channel->tracking.state == TRACKING_ON) {
        channel->listener->on_change(channel, key, length);
    }
}

static void on_connection_connecting(struct uplink *uplink, uint64_t now) {
    (void)uplink;
    (void)now;
}

static void on_connection_room(struct uplink *uplink) {
    (void)uplink; /* bounds do not concern the client's own commands */
}

static void on_connection_refusal(struct uplink *uplink, const struct reply *reply) {
    (void)uplink;
    (void)reply; /* the node's own connection meets the same refusal, and logs it */
}

static const struct uplink_listener uplink_listener = {
    .on_connecting = on_connection_connecting,
    .on_up = on_connection_up,
    .on_down = on_connection_down,
    .on_room = on_connection_room,
    .on_refusal = on_connection_refusal,
    .on_message = on_connection_message,
    .on_change = on_connection_key_change,
};

/* ---- life ---- */

redlock_status channel_init(struct channel *channel, struct context *context,
                            struct uplink *commands, const struct channel_listener *listener,
                            uint32_t position, const char *text, redlock_error *error) {
    *channel = (struct channel){.commands = commands, .listener = listener};
    channel->probe = (struct channel_probe){
        .request = {.on_reply = on_probe_reply, .load_class = LOAD_OWN},
        .channel = channel,
        .eval = {.script = SCRIPT_PROBE},
    };
    tracking_init(&channel->tracking, commands);
    return uplink_init(&channel->uplink, context, &uplink_listener, HANDSHAKE_FOR_MESSAGES,
                       position, text, error);
}

void channel_stop(struct channel *channel, const char *why) {
    channel->is_wanted = channel->has_reported_ready = false;
    channel->state = CHANNEL_OFF;
    uplink_stop(&channel->uplink, why);
}

void channel_finish(struct channel *channel) {
    uplink_finish(&channel->uplink);
}

const char *channel_why(const struct channel *channel) {
    switch (channel->state) {
    case CHANNEL_SUBSCRIBING:
        return "SUBSCRIBE is not answered yet";
    case CHANNEL_PROBING:
        return "no probe has come back yet";
    case CHANNEL_READY:
        return "";
    case CHANNEL_ENDING:
        return "its connection is being closed";
    case CHANNEL_OFF:
    case CHANNEL_CONNECTING:
    case CHANNEL_REFUSED:
        break;
    }
    return channel->uplink.reason;
}
