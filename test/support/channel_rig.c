#include "channel_rig.h"

#include "clocks.h"

#include "core/options.h"
#include "io/clock.h"
#include "io/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct channel_rig *rig_of(struct context *context) {
    return (struct channel_rig *)((char *)context - offsetof(struct channel_rig, context));
}

/* ---------------------------------------------------------------------- the node's connection */

static void on_connecting(struct uplink *uplink, uint64_t now) {
    (void)uplink;
    (void)now;
}

static void on_up(struct uplink *uplink) {
    channel_command_up(&rig_of(uplink->context)->channel);
}

static void on_down(struct uplink *uplink, uint64_t now) {
    (void)now;
    channel_command_down(&rig_of(uplink->context)->channel);
}

static void on_room(struct uplink *uplink) {
    (void)uplink;
}

static void on_refusal(struct uplink *uplink, const struct reply *reply) {
    (void)uplink;
    (void)reply;
}

static const struct uplink_listener uplink_listener = {
    .on_connecting = on_connecting,
    .on_up = on_up,
    .on_down = on_down,
    .on_room = on_room,
    .on_refusal = on_refusal,
};

/* -------------------------------------------------------------------------------- the channel */

static void on_ready(struct channel *channel) {
    struct channel_rig *rig = rig_of(channel->uplink.context);

    rig->ready++;
    assert_true(channel_is_ready(channel));
    assert_int_equal(rig->ready, rig->broken + 1);
    if (rig->then_ready != NULL) {
        rig->then_ready(rig);
    }
}

static void on_broken(struct channel *channel) {
    struct channel_rig *rig = rig_of(channel->uplink.context);

    rig->broken++;
    assert_false(channel_is_ready(channel));
    assert_int_equal(rig->ready, rig->broken);
    if (rig->then_broken != NULL) {
        rig->then_broken(rig);
    }
}

static void on_message(struct channel *channel, const char *text, size_t length) {
    struct channel_rig *rig = rig_of(channel->uplink.context);

    assert_true(channel_is_ready(channel));
    assert_int_in_range(length, 0, RIG_TEXT_MAX);
    assert_int_equal(text[length], '\0');
    rig->messages++;
    memcpy(rig->last, text, length + 1);
    rig->last_length = length;
    if (rig->then_message != NULL) {
        rig->then_message(rig);
    }
}

static const struct channel_listener channel_listener = {
    .on_ready = on_ready,
    .on_broken = on_broken,
    .on_message = on_message,
};

/* ------------------------------------------------------------------------------------ the rig */

static void on_turn(void *arg) {
    struct channel_rig *rig = arg;

    rig->context.is_woken = false;
    rig->context.in_turn = true;
    net_flush(&rig->context.net);
    rig->context.in_turn = false;
}

static void destroy(void *object) {
    struct channel_rig *rig = object;

    channel_stop(&rig->channel, "the test is over");
    uplink_stop(&rig->commands, "the test is over");
    channel_finish(&rig->channel);
    uplink_finish(&rig->commands);
    context_finish(&rig->context);
    free(rig);
}

struct channel_rig *rig_create(struct fixture *f, const redlock_options *options) {
    struct channel_rig *rig = calloc(1, sizeof(*rig));
    const char *last = options->nodes[options->node_count - 1];
    redlock_loop *loop = loop_on_libevent(f->base, &f->allocator.hook);
    redlock_options checked;
    redlock_error error;

    assert_non_null(rig);
    assert_non_null(loop);
    rig->fixture = f;
    assert_true(random_init());
    assert_int_equal(options_read(options, &checked, &error), REDLOCK_OK);
    assert_int_equal(context_init(&rig->context, loop, &checked, on_turn, rig, &error), REDLOCK_OK);
    loop_drop(loop); /* the context is its only user now */
    assert_int_equal(uplink_init(&rig->commands, &rig->context, &uplink_listener,
                                 HANDSHAKE_FOR_COMMANDS, 0, checked.nodes[0], &error),
                     REDLOCK_OK);
    assert_int_equal(channel_init(&rig->channel, &rig->context, &rig->commands, &channel_listener,
                                  0, last, &error),
                     REDLOCK_OK);
    at_finish(f, destroy, rig);
    uplink_start(&rig->commands);
    return rig;
}

struct channel_rig *rig_on(struct fixture *f, const char *commands, const char *channel) {
    const char *uris[] = {commands, channel};
    redlock_options options = patient_options(f, uris, 2);
    struct channel_rig *rig;

    options.stall_timeout_ms = PATIENT_MS;
    rig = rig_create(f, &options);
    channel_want(&rig->channel, true);
    return rig;
}

void rig_beat(struct channel_rig *rig) {
    pass_time(nanos_to_ms(CHANNEL_PROBE_NANOS));
    channel_beat(&rig->channel, clock_now());
    channel_probe(&rig->channel, clock_now());
}

/* ----------------------------------------------------------------------------------- waiting */

struct wish {
    struct channel_rig *rig;
    enum channel_state state;
    size_t count;
};

static bool is_in_state(void *arg) {
    const struct wish *wish = arg;

    return wish->rig->channel.state == wish->state;
}

void wait_state(struct channel_rig *rig, enum channel_state state) {
    struct wish wish = {rig, state, 0};
    char what[64];

    snprintf(what, sizeof(what), "the channel is in state %d", (int)state);
    run_until(rig->fixture, is_in_state, &wish, what);
}

static bool was_ready(void *arg) {
    const struct wish *wish = arg;

    return wish->rig->ready >= wish->count && channel_is_ready(&wish->rig->channel);
}

void wait_ready(struct channel_rig *rig, size_t times) {
    struct wish wish = {rig, CHANNEL_READY, times};

    run_until(rig->fixture, was_ready, &wish, "the channel is ready");
}

static bool has_broken(void *arg) {
    const struct wish *wish = arg;

    return wish->rig->broken >= wish->count;
}

void wait_broken(struct channel_rig *rig, size_t times) {
    struct wish wish = {rig, CHANNEL_OFF, times};

    run_until(rig->fixture, has_broken, &wish, "the channel has broken");
}

static bool is_in_state_or_beaten(void *arg) {
    const struct wish *wish = arg;

    if (!is_in_state(arg)) {
        rig_beat(wish->rig);
    }
    return is_in_state(arg);
}

void beat_until(struct channel_rig *rig, enum channel_state state) {
    struct wish wish = {rig, state, 0};
    char what[64];

    snprintf(what, sizeof(what), "some seconds later the channel is in state %d", (int)state);
    run_until(rig->fixture, is_in_state_or_beaten, &wish, what);
}

static bool has_broken_or_is_beaten(void *arg) {
    const struct wish *wish = arg;

    if (!has_broken(arg)) {
        rig_beat(wish->rig);
    }
    return has_broken(arg);
}

void beat_until_broken(struct channel_rig *rig, size_t times) {
    struct wish wish = {rig, CHANNEL_OFF, times};

    run_until(rig->fixture, has_broken_or_is_beaten, &wish, "some seconds later it has broken");
}

static bool has_messages(void *arg) {
    const struct wish *wish = arg;

    return wish->rig->messages >= wish->count;
}

void wait_messages(struct channel_rig *rig, size_t count) {
    struct wish wish = {rig, CHANNEL_READY, count};

    run_until(rig->fixture, has_messages, &wish, "so many messages have come");
}

static bool is_back(void *arg) {
    const struct wish *wish = arg;
    const struct channel *channel = &wish->rig->channel;

    return channel->probes >= wish->count && !channel->probe.is_pending &&
           channel->probe.is_answered && channel->probe.has_arrived;
}

static void wait_back(struct channel_rig *rig, size_t probes) {
    struct wish wish = {rig, CHANNEL_READY, probes};

    run_until(rig->fixture, is_back, &wish, "the probe has come back");
}

void probe(struct channel_rig *rig) {
    wait_back(rig, rig->channel.probes);
    rig_beat(rig);
    wait_back(rig, rig->channel.probes);
}

void assert_why(const struct channel_rig *rig, const char *text) {
    const char *why = channel_why(&rig->channel);

    if (strstr(why, text) == NULL) {
        log_capture_show(&rig->fixture->capture);
        fail_msg("\"%s\" is not in the reason: %s", text, why);
    }
}
