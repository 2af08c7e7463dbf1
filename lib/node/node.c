/*
 * The happy path: the uplink comes up, goes down and makes room; the guard learns the server's
 * identity. The node turns the former into retries of releases, and reports all to its owner.
 * Pending releases are due when the node comes UP, and when there is room in the queue that refused
 * one. Then the owner sends as many as fit (node_room) and reports each outcome (node_retried);
 * after the last one the rest is due.
 *
 * Failures: after an error, or without any room, the retry timer is set, and pending releases are
 * sent again after reconnect_delay_max. A release for which there is no room or memory is counted,
 * and its key is left to its TTL.
 */
#include "node/node.h"

#include "base/error.h"
#include "base/nanos.h"
#include "core/event.h"
#include "core/round.h"
#include "io/clock.h"

static void on_retry_timer(void *arg);

static struct context *node_context(const struct node *node) {
    return node->uplink.context;
}

/* ---- pending releases ---- */

static void retry_later(struct node *node, uint64_t now) {
    uint64_t delay = nanos_from_ms(node_context(node)->options.reconnect_delay_max_ms);
    timer_set(&node->retry_timer, nanos_add(now, delay));
}

/* Sends as many pending releases as fit. The rest follows after them, or when the timer fires. */
static void retry_releases(struct node *node) {
    timer_clear(&node->retry_timer);
    node->listener->on_releases_due(node->listener_arg, node);
    /* Pending releases: none could be sent, so no answer will make the rest due. */
    if (node->retries == 0 && node->pending.count > 0 && node->retry_timer.at == NANOS_NEVER) {
        retry_later(node, clock_now());
    }
}

static void on_retry_timer(void *arg) {
    struct node *node = arg;
    if (node_is_up(node)) {
        retry_releases(node);
    }
}

/* Emits the number of releases given up since the last such event, at most once a second. */
static void report_given_up(struct node *node, uint64_t now) {
    uint64_t given_up = node->unreleased - node->unreleased_reported;
    if (node->unreleased_reported_at != 0 &&
        nanos_sub(now, node->unreleased_reported_at) < GUARD_BEAT_NANOS) {
        return;
    }
    node->unreleased_reported = node->unreleased;
    node->unreleased_reported_at = now;
    EMIT(&node_context(node)->events, pending_releases_dropped, .node = node_name(node),
         .releases = given_up);
}

void node_defer_release(struct node *node, const struct release *release) {
    uint64_t now = clock_now();
    if (release->until <= now) { /* the key has expired at the node */
        return;
    }
    if (!pending_releases_add(&node->pending, release, now)) {
        node_give_up(node, release->until);
        report_given_up(node, now);
        return;
    }
    node->undelivered++;
    /* An UP node refused it, for an error or want of room; a node that is not UP will come UP. */
    if (node_is_up(node) && node->retry_timer.at == NANOS_NEVER) {
        retry_later(node, now);
    }
}

void node_give_up(struct node *node, uint64_t until) {
    node->unreleased++;
    node->unreleased_until = nanos_max(node->unreleased_until, until);
}

uint64_t node_unreleased(struct node *node, uint64_t now) {
    pending_releases_drop_expired(&node->pending, now);
    return node->pending.count + (now < node->unreleased_until ? node->unreleased : 0);
}

struct node_room node_room(const struct node *node) {
    const struct load_bounds *bounds = &node_context(node)->net.bounds;
    uint32_t commands = uplink_commands(&node->uplink);
    size_t bytes = uplink_bytes(&node->uplink);
    bool is_open = node->uplink.conn != NULL;
    return (struct node_room){
        .commands = is_open && commands < bounds->commands ? bounds->commands - commands : 0,
        .bytes = is_open && bytes < bounds->bytes ? bounds->bytes - bytes : 0,
    };
}

/* Sends the rest after the last answer. If one failed, the rest waits for the retry timer. */
void node_retried(struct node *node, redlock_vote vote) {
    bool is_last = --node->retries == 0;
    node->redelivered += !round_vote_leaves_undone(vote);
    if (!is_last || node->pending.count == 0 || !node_is_up(node) ||
        node->retry_timer.at != NANOS_NEVER) {
        return;
    }
    if (round_vote_leaves_undone(vote)) {
        retry_later(node, clock_now());
    } else {
        retry_releases(node);
    }
}

/* Half of an adaptive timeout's maximum, or of node_timeout_ms. */
void node_look_at_answers(struct node *node) {
    uint64_t fixed = nanos_from_ms(node_context(node)->options.node_timeout_ms);
    uint64_t allowed = fixed != 0 ? fixed : ANSWER_TIMEOUT_MAX;
    uint64_t takes = answer_time_usual(&node->uplink.traffic.answer_time);
    if (!node->was_slow && takes > allowed / 2) {
        node->was_slow = true;
        EMIT(&node_context(node)->events, node_slow, .node = node_name(node), .takes = takes,
             .allowed = allowed);
    }
}

bool node_is_releasing(const struct node *node) {
    return node_is_up(node) && node->pending.count > 0 &&
           (node->retries > 0 || uplink_commands(&node->uplink) > 0);
}

void node_drop_releases(struct node *node) {
    pending_releases_finish(&node->pending);
    pending_releases_init(&node->pending, &node_context(node)->allocator,
                          node_context(node)->options.max_bytes);
}

/* ---- the uplink ---- */

static void on_uplink_connecting(struct uplink *uplink, uint64_t now) {
    struct node *node = node_of(uplink);
    guard_connected(&node->guard, now);
    node->listener->on_attempt(node->listener_arg);
}

static void on_uplink_up(struct uplink *uplink) {
    struct node *node = node_of(uplink);
    EMIT(&uplink->context->events, node_up, .node = uplink->name);
    node->complaints = 0;
    node->connections++;
    guard_up(&node->guard, clock_now()); /* ahead of any command */
    channel_command_up(&node->channel);
    retry_releases(node);
    node->listener->on_up(node->listener_arg);
    if (guard_counts(&node->guard)) { /* the first beat was answered before the handshake's end */
        node->listener->on_sound(node->listener_arg);
    }
}

static void on_uplink_down(struct uplink *uplink, uint64_t now) {
    struct node *node = node_of(uplink);
    EMIT(&uplink->context->events, node_down, .node = uplink->name, .reason = uplink->reason,
         .retry_in = uplink_retries_in(uplink, now), .is_repeated = uplink_fails_again(uplink));
    channel_command_down(&node->channel);
    timer_clear(&node->retry_timer);
    pending_releases_drop_expired(&node->pending, now);
    context_wake(uplink->context); /* no request, nor a closing client, waits for it any more */
    node->listener->on_attempt(node->listener_arg);
}

/* Sends pending releases: one may be pending because there was no room for it. */
static void on_uplink_room(struct uplink *uplink) {
    struct node *node = node_of(uplink);
    if (node_is_up(node) && node->pending.count > 0) {
        retry_releases(node);
    }
    node->listener->on_room(node->listener_arg);
}

static void on_uplink_refusal(struct uplink *uplink, const struct reply *reply) {
    node_complain(node_of(uplink), reply);
}

static const struct uplink_listener uplink_listener = {
    .on_connecting = on_uplink_connecting,
    .on_up = on_uplink_up,
    .on_down = on_uplink_down,
    .on_room = on_uplink_room,
    .on_refusal = on_uplink_refusal,
};

void node_complain(struct node *node, const struct reply *reply) {
    enum reply_error meaning = reply_classify(reply);
    uint32_t bit = UINT32_C(1) << meaning;
    node->forbidden += reply_lacks_right(reply);
    if (!(node->complaints & bit)) {
        node->complaints |= bit;
        EMIT(&node_context(node)->events, node_refused, .node = node_name(node), .why = reply->text,
             .is_misconfigured = reply_is_for_operators(meaning));
    }
}

/* ---- the guard ---- */

void node_send_beat(struct node *node, uint64_t now) {
    if (uplink_is_new(&node->uplink) && !node->guard.has_sent_text) {
        node->uplink.lacks |= UINT32_C(1) << SCRIPT_BEAT; /* send the text, whether known or not */
    }
    guard_beat(&node->guard, now);
    channel_probe(&node->channel, now);
}

static void on_guard_identity(struct guard *guard) {
    struct node *node = node_of(guard->uplink);
    node->listener->on_identity(node->listener_arg, node);
}

static void on_guard_sound(struct guard *guard) {
    const struct node *node = node_of(guard->uplink);
    if (node_is_up(node)) { /* otherwise when it comes UP */
        node->listener->on_sound(node->listener_arg);
    }
}

bool node_refuses(const struct node *node) {
    const struct guard *guard = &node->guard;
    if (!node_is_up(node)) { /* the login or the database; otherwise a right that guards need */
        return node_vote_unsent(node) == REDLOCK_VOTE_REFUSED;
    }
    return guard_look(guard).fault == TRUST_REFUSED && guard->trust.is_forbidden;
}

/* ---- the channel ---- */

static struct node *node_of_channel(struct channel *channel) {
    return node_of(channel->commands);
}

static void on_ready(struct channel *channel) {
    struct node *node = node_of_channel(channel);
    node->listener->on_listening(node->listener_arg, node);
}

/* Does nothing: waiters without an entry poll, and get one when the channel is ready again. */
static void on_broken(struct channel *channel) {
    (void)channel;
}

static void on_channel_message(struct channel *channel, const char *text, size_t length) {
    struct node *node = node_of_channel(channel);
    node->listener->on_push(node->listener_arg, node, text, length);
}

static void on_channel_key_change(struct channel *channel, const char *key, size_t length) {
    struct node *node = node_of_channel(channel);
    node->listener->on_change(node->listener_arg, node, key, length);
}

static const struct channel_listener channel_listener = {
    .on_ready = on_ready,
    .on_broken = on_broken,
    .on_message = on_channel_message,
    .on_change = on_channel_key_change,
};

/* ---- life ---- */

redlock_status node_init(struct node *node, struct context *context,
                         const struct node_listener *listener, void *arg, uint32_t position,
                         const char *text, redlock_error *error) {
    *node = (struct node){.index = position, .listener = listener, .listener_arg = arg};
    pending_releases_init(&node->pending, &context->allocator, context->options.max_bytes);
    redlock_status status = uplink_init(&node->uplink, context, &uplink_listener,
                                        HANDSHAKE_FOR_COMMANDS, position, text, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    timer_init(&node->retry_timer, context->loop, on_retry_timer, node);
    guard_init(&node->guard, &node->uplink, on_guard_identity, on_guard_sound);
    return channel_init(&node->channel, context, &node->uplink, &channel_listener, position, text,
                        error);
}

void node_start(struct node *node) {
    uplink_start(&node->uplink);
}

void node_stop(struct node *node, const char *why) {
    channel_stop(&node->channel, why);
    uplink_stop(&node->uplink, why);
    timer_clear(&node->retry_timer); /* a NULL reply may have set the timer */
}

void node_finish(struct node *node) {
    pending_releases_finish(&node->pending);
    timer_finish(&node->retry_timer);
    channel_finish(&node->channel);
    uplink_finish(&node->uplink);
}
