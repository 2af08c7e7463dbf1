/*
 * A node's channel (lib/node/channel.h) in simulated worlds: one process with one node, and every
 * fault of the network, the server and the process, one after the other. A seed decides everything,
 * as in redlock-sim.
 *
 *   redlock-sim-channel [FIRST [LAST [trace]]]
 *
 * In each world:
 *   - on_ready and on_broken alternate, and no message comes between on_broken and on_ready;
 *   - each name is new, and a message published to a name is never received under another;
 *   - a ready channel has subscribed to its name at the server that its node's connection leads to;
 *   - after all faults have ended the channel becomes ready within a bound, and messages arrive;
 *   - once the channel is not wanted any more no connection is left, and all memory is freed.
 */
#include "check.h"
#include "network.h"
#include "process.h"
#include "words.h"
#include "world.h"

#include "core/options.h"
#include "io/clock.h"
#include "io/random.h"
#include "node/channel.h"
#include "node/context.h"
#include "node/uplink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLDS 3000
#define STALL_MS 300
#define NAMES_MAX 4096

struct stage {
    struct world world;
    struct network network;
    struct checker checker;
    struct event_base process;
    struct alarm birth;
    struct task publication, mishap;
    struct context context;
    struct uplink commands;
    struct channel channel;
    struct timer heartbeat;
    bool has_failed; /* out of memory, so the client could not be created */
    bool is_ready;   /* on_ready was called, and on_broken has not followed */
    bool has_faults;
    char uri[64];
    /* the channel's names, each recorded when it was ready */
    char names[NAMES_MAX][CHANNEL_NAME_SIZE];
    unsigned name_count;
    uint64_t messages; /* number of messages so far */
};

static struct stage *stage; /* the stage of the running world */

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            violate(&stage->world, INVARIANT_CALLBACKS, __VA_ARGS__);                              \
        }                                                                                          \
    } while (0)

/* ---- what the channel reports ---- */

static const char *name_now(void) {
    return stage->names[stage->name_count - 1];
}

static struct server *server_of_node(void) {
    return &stage->network.servers[0];
}

static bool is_subscribed_at_node(const char *name) {
    const struct link *link;
    TAILQ_FOREACH(link, &stage->network.links, all_link) {
        if (link->server == server_of_node() && strcmp(link->channel, name) == 0) {
            return true;
        }
    }
    return false;
}

static void on_ready(struct channel *channel) {
    const char *name = channel_name(channel);
    TRACE(&stage->world, "ready: %s", name);
    REQUIRE(!stage->is_ready, "on_ready twice");
    REQUIRE(channel->is_wanted, "on_ready though nobody wants the channel");
    REQUIRE(is_subscribed_at_node(name), "on_ready without a subscription");
    for (unsigned i = 0; i < stage->name_count; i++) {
        REQUIRE(strcmp(stage->names[i], name) != 0, "a name comes twice: %s", name);
    }
    stage->is_ready = true;
    if (stage->name_count < NAMES_MAX) {
        strcpy(stage->names[stage->name_count++], name);
    }
}

static void on_broken(struct channel *channel) {
    TRACE(&stage->world, "broken: %s", channel_why(channel));
    REQUIRE(stage->is_ready, "on_broken without on_ready");
    REQUIRE(!channel_is_ready(channel), "on_broken of a ready channel");
    stage->is_ready = false;
}

/* Each message is the name that it was published to. */
static void on_message(struct channel *channel, const char *text, size_t length) {
    REQUIRE(stage->is_ready && channel_is_ready(channel),
            "a message to a channel that is not ready");
    REQUIRE(length == strlen(text) && strcmp(text, name_now()) == 0,
            "a message to another name: %s, not %s", text, name_now());
    stage->messages++;
}

static const struct channel_listener channel_listener = {
    .on_ready = on_ready,
    .on_broken = on_broken,
    .on_message = on_message,
};

/* ---- the node's connection ---- */

static void on_connecting(struct uplink *uplink, uint64_t now) {
    (void)uplink;
    (void)now;
}

static void on_up(struct uplink *uplink) {
    (void)uplink;
    channel_command_up(&stage->channel);
}

static void on_down(struct uplink *uplink, uint64_t now) {
    (void)uplink;
    (void)now;
    channel_command_down(&stage->channel);
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

/* ---- the process ---- */

static void on_turn(void *arg) {
    (void)arg;
    stage->context.is_woken = false;
    stage->context.in_turn = true;
    net_flush(&stage->context.net);
    stage->context.in_turn = false;
}

static void set_heartbeat(uint64_t now) {
    timer_set(&stage->heartbeat, now + CHANNEL_BEAT_NANOS);
}

/* Fires the client's heartbeat; now and then no waiter is left. */
static void on_heartbeat(void *arg) {
    uint64_t now = clock_now();
    (void)arg;
    channel_beat(&stage->channel, now);
    channel_probe(&stage->channel, now);
    if (stage->has_faults && rng_chance(&stage->world.rng, 100)) {
        bool is_wanted = !stage->channel.is_wanted;
        stage->is_ready = is_wanted && stage->is_ready;
        channel_want(&stage->channel, is_wanted);
    }
    set_heartbeat(now);
}

static void be_born(void *owner) {
    redlock_options options = REDLOCK_OPTIONS_INIT, checked;
    const char *nodes[] = {stage->uri};
    redlock_error error;
    redlock_loop *loop = loop_on_libevent(&stage->process, &stage->process.allocator);
    (void)owner;
    options.nodes = nodes;
    options.node_count = 1;
    options.stall_timeout_ms = STALL_MS;
    options.reconnect_delay_ms = 10;
    options.reconnect_delay_max_ms = 200;
    options.allocator = &stage->process.allocator;
    stage->has_failed =
        options_read(&options, &checked, &error) != REDLOCK_OK ||
        context_init(&stage->context, loop, &checked, on_turn, NULL, &error) != REDLOCK_OK ||
        uplink_init(&stage->commands, &stage->context, &uplink_listener, HANDSHAKE_FOR_COMMANDS, 0,
                    stage->uri, &error) != REDLOCK_OK ||
        channel_init(&stage->channel, &stage->context, &stage->commands, &channel_listener, 0,
                     stage->uri, &error) != REDLOCK_OK;
    timer_init(&stage->heartbeat, loop, on_heartbeat, NULL);
    if (!stage->has_failed) {
        uplink_start(&stage->commands);
        channel_want(&stage->channel, true);
        set_heartbeat(clock_now());
    }
}

static void die(void) {
    if (!stage->has_failed) {
        running = &stage->process;
        channel_stop(&stage->channel, "the end");
        uplink_stop(&stage->commands, "the end");
        timer_finish(&stage->heartbeat);
        channel_finish(&stage->channel);
        uplink_finish(&stage->commands);
        context_finish(&stage->context);
        running = NULL;
        REQUIRE(stage->process.block_count == 0, "%zu blocks are left", stage->process.block_count);
    }
    network_bury(&stage->network, &stage->process);
    process_finish(&stage->process);
}

/* ---- the world ---- */

/* Makes the server publish to the channel's name, as a script called by another client does. */
static void on_publication(void *owner) {
    struct words words = {.count = 3};
    (void)owner;
    if (stage->is_ready) {
        words.word[0] = (struct word){"PUBLISH", 7};
        words.word[1] = words.word[2] = (struct word){name_now(), strlen(name_now())};
        master_run(&server_of_node()->master, &words);
    }
    task_schedule(&stage->world, &stage->publication,
                  stage->world.now + rng_between(&stage->world.rng, MS, 50 * MS));
}

static struct link *draw_link(void) {
    struct link *link = TAILQ_FIRST(&stage->network.links);
    while (link != NULL && TAILQ_NEXT(link, all_link) != NULL &&
           rng_chance(&stage->world.rng, 600)) {
        link = TAILQ_NEXT(link, all_link);
    }
    return link;
}

static void stop_server(struct server *server, uint64_t until) {
    server->is_gone = rng_chance(&stage->world.rng, 300);
    server->paused_until = 0;
    server_break(server);
    server->down_until = until;
    master_start(&server->master, until);
}

static void on_mishap(void *owner) {
    struct rng *rng = &stage->world.rng;
    struct server *server = server_of_node();
    struct path *path = &stage->network.paths[0][0];
    uint64_t until = stage->world.now + rng_below(rng, 3000 * MS);
    struct link *link = draw_link();
    unsigned kind = (unsigned)rng_below(rng, 9);
    (void)owner;
    if (!stage->has_faults) {
        return;
    }
    TRACE(&stage->world, "mishap %u until %" PRIu64 " ms", kind, until / MS);
    if (kind == 0 && link != NULL) {
        link_break(link);
    } else if (kind == 1 && link != NULL) {
        link->replies.is_lost = true; /* half-open */
    } else if (kind == 2 && link != NULL) {
        link->requests.is_lost = true;
    } else if (kind == 3) {
        server->paused_until = until;
    } else if (kind == 4) {
        stop_server(server, until);
    } else if (kind == 5) {
        path->requests_held_until = until;
    } else if (kind == 6) {
        path->replies_held_until = until;
    } else if (kind == 7) {
        process_pause(&stage->process, until);
    } else if (kind == 8) {
        server->error = rng_chance(rng, 500) ? "BUSY Redis is busy" : "NOPERM this user may not";
        server->error_until = until;
    }
    task_schedule(&stage->world, &stage->mishap, stage->world.now + rng_below(rng, 4000 * MS));
}

static void begin(uint64_t seed, FILE *trace) {
    struct rng *rng;
    memset(stage, 0, sizeof(*stage));
    world_init(&stage->world, seed, trace);
    rng = &stage->world.rng;
    network_init(&stage->network, &stage->world, 1);
    check_init(&stage->checker, &stage->network, 1);
    stage->network.paths[0][0].latency = rng_between(rng, MS / 10, 5 * MS);
    stage->network.paths[0][0].jitter = rng_below(rng, 5 * MS) + 1;
    process_init(&stage->process, &stage->world, 0);
    stage->process.network = &stage->network;
    stage->process.on_check = check_process;
    stage->process.lateness = rng_below(rng, 10 * MS) + 1;
    stage->process.failures = rng_chance(rng, 300) ? 20 : 0;
    stage->has_faults = true;
    snprintf(stage->uri, sizeof(stage->uri), "redis://10.0.0.1:%u", SIM_FIRST_PORT);
    alarm_init(&stage->birth, &stage->process, be_born, NULL);
    alarm_set(&stage->birth, stage->world.now + 1);
    task_init(&stage->publication, on_publication, NULL);
    task_init(&stage->mishap, on_mishap, NULL);
    task_schedule(&stage->world, &stage->publication, stage->world.now + 1);
    task_schedule(&stage->world, &stage->mishap, stage->world.now + rng_below(rng, 2000 * MS));
}

static void pass(uint64_t ms) {
    world_run_until(&stage->world, stage->world.now + ms * MS);
}

/* Ends all faults, and wants the channel. */
static void heal(void) {
    stage->has_faults = false;
    stage->process.failures = 0;
    pass(5000);
    if (stage->has_failed) {
        return;
    }
    running = &stage->process;
    channel_want(&stage->channel, true);
    running = NULL;
}

/* Checks that the channel is ready after the longest of all waits, and stays ready. */
static void be_alive(void) {
    uint64_t messages;
    pass(CHANNEL_REFUSED_NANOS / MS + 4 * STALL_MS + 4000);
    REQUIRE(stage->is_ready, "not ready: %s", channel_why(&stage->channel));
    messages = stage->messages;
    unsigned names = stage->name_count;
    pass(5000);
    REQUIRE(stage->messages > messages, "no messages arrive");
    REQUIRE(stage->name_count == names, "a ready channel breaks without a fault");
}

static void be_unwanted(void) {
    running = &stage->process;
    channel_want(&stage->channel, false);
    running = NULL;
    pass(2000);
    REQUIRE(stage->channel.uplink.conn == NULL, "a connection is left");
    REQUIRE(!channel_is_ready(&stage->channel), "still ready");
}

/* Returns whether no invariant was violated. */
static bool run(uint64_t seed, FILE *trace, uint64_t *names) {
    bool is_good;
    begin(seed, trace);
    pass(60000);
    heal();
    if (!stage->has_failed && !stage->world.violated) {
        be_alive();
    }
    if (!stage->has_failed && !stage->world.violated) {
        be_unwanted();
    }
    *names += stage->name_count;
    task_cancel(&stage->world, &stage->publication);
    task_cancel(&stage->world, &stage->mishap);
    die();
    is_good = !stage->world.violated;
    if (!is_good) {
        printf("# seed %" PRIu64 ": %s\n", seed, stage->world.violation);
    }
    network_finish(&stage->network);
    check_finish(&stage->checker);
    world_finish(&stage->world);
    return is_good;
}

int main(int argc, char **argv) {
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t last = argc > 2 ? strtoull(argv[2], NULL, 10) : first + WORLDS - 1;
    uint64_t names = 0, bad = 0;
    stage = malloc(sizeof(*stage));
    if (stage == NULL) {
        return 1;
    }
    printf("1..1\n");
    for (uint64_t seed = first; seed <= last; seed++) {
        bad += !run(seed, argc > 3 ? stdout : NULL, &names);
    }
    free(stage);
    printf("# %" PRIu64 " worlds, ready %" PRIu64 " times\n", last - first + 1, names);
    printf("%sok 1 - a channel lives through every fault\n", bad > 0 ? "not " : "");
    return bad > 0;
}
