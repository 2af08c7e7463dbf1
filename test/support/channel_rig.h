/*
 * A node's connection and its channel (lib/node/channel.h) on their own, without a client: the test
 * fires the heartbeat in the client's place, and receives what the client would be notified of. For
 * programs that are linked with the library's own objects.
 */
#ifndef REDLOCK_TEST_CHANNEL_RIG_H
#define REDLOCK_TEST_CHANNEL_RIG_H

#define call harness_call /* the library has a struct of this name, too */
#include "harness.h"
#undef call

#include "node/channel.h"
#include "node/context.h"
#include "node/uplink.h"

#define RIG_TEXT_MAX 8192

struct channel_rig {
    struct fixture *fixture;
    struct context context;
    struct uplink commands;
    struct channel channel;
    size_t ready, broken, messages; /* number of callbacks of each kind */
    char last[RIG_TEXT_MAX + 1];    /* the last message */
    size_t last_length;

    /* Run inside the callbacks, unless NULL, after the fields above are set; may do anything. */
    void (*then_ready)(struct channel_rig *rig);
    void (*then_broken)(struct channel_rig *rig);
    void (*then_message)(struct channel_rig *rig);
};

/*
 * Makes the connection to the first node of the options, and a channel to the second, or to the
 * first if there is only one. Begins to connect; the channel is not wanted yet. The rig ends with
 * the fixture.
 */
struct channel_rig *rig_create(struct fixture *f, const redlock_options *options);

/* Makes a rig as rig_create does, with patient options, and wants its channel. */
struct channel_rig *rig_on(struct fixture *f, const char *commands, const char *channel);

/* Advances the clock until a probe is due, and fires the heartbeat. */
void rig_beat(struct channel_rig *rig);

/* Run the loop until the channel is in the state; until it has been ready `times` times. */
void wait_state(struct channel_rig *rig, enum channel_state state);
void wait_ready(struct channel_rig *rig, size_t times);

/* Runs the loop until the channel has broken `times` times. */
void wait_broken(struct channel_rig *rig, size_t times);

/*
 * Run the loop and advance the clock second by second until the channel is in the state; until it
 * has broken `times` times.
 */
void beat_until(struct channel_rig *rig, enum channel_state state);
void beat_until_broken(struct channel_rig *rig, size_t times);

/* Runs the loop until `count` messages have arrived. */
void wait_messages(struct channel_rig *rig, size_t count);

/* Runs the loop until the last probe has returned, sends another, and waits for it. */
void probe(struct channel_rig *rig);

/* Asserts that the reason why the channel is not ready contains the text. */
void assert_why(const struct channel_rig *rig, const char *text);

#endif
