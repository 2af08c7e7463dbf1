/*
 * Servers that are broken, or hostile, to a subscribed connection: the process survives any bytes,
 * the reason for the end is reported, and the channel becomes ready again once the server behaves.
 *
 * The node is a peer that plays a trick: instead of confirming the subscription, right after
 * confirming it, or when the channel is ready.
 */
#include "channel_rig.h"
#include "clocks.h"
#include "harness_peer.h"

#include "io/clock.h"
#include "io/net.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ON_CONNECT = 1, INSTEAD = 2, APPENDED = 4, WHEN_READY = 8, AFTER = APPENDED | WHEN_READY };

/*
 * A trick. In its bytes, "{c}" stands for the name of the channel, and "{m}" for the start of a
 * message.
 */
struct trick {
    const char *name;
    unsigned moments; /* mask of the moments at which it is played */
    const char *bytes;
    const char *why; /* part of the reason for the end; NULL: any reason */
    size_t repeat;   /* number of repetitions of the bytes; 0: once */
    bool endless;    /* then sends "1" forever */
    bool hang_up;
};

#define UNASKED "sent a message that nobody asked for"
#define SUBSCRIBE "$9\r\nsubscribe\r\n"
#define MESSAGE "$7\r\nmessage\r\n"
#define CHANNEL "$20\r\n__redis__:invalidate\r\n"
#define CHANGE MESSAGE CHANNEL

static const struct trick tricks[] = {
    {"a message too early", INSTEAD, "*3\r\n" MESSAGE "{c}$1\r\nx\r\n", UNASKED, 0, false, false},
    {"a second confirmation", AFTER, "*3\r\n" SUBSCRIBE "{c}:1\r\n", UNASKED, 0, false, false},
    {"another channel's confirmation", INSTEAD | AFTER, "*3\r\n" SUBSCRIBE "$1\r\nc\r\n:1\r\n",
     UNASKED, 0, false, false},
    {"another channel's message", INSTEAD | AFTER, "*3\r\n" MESSAGE "$1\r\nc\r\n$1\r\nx\r\n",
     UNASKED, 0, false, false},
    {"no channel's message", INSTEAD | AFTER, "*3\r\n" MESSAGE "$0\r\n\r\n$1\r\nx\r\n", UNASKED, 0,
     false, false},
    {"a null channel", INSTEAD | AFTER, "*3\r\n" MESSAGE "$-1\r\n$1\r\nx\r\n", "nobody asked for",
     0, false, false},
    {"a numbered channel", INSTEAD | AFTER, "*3\r\n" MESSAGE ":1\r\n$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"the end of the subscription", INSTEAD | AFTER, "*3\r\n$11\r\nunsubscribe\r\n{c}:0\r\n",
     UNASKED, 0, false, false},
    {"the end of all subscriptions", INSTEAD | AFTER, "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
     UNASKED, 0, false, false},
    {"a pattern's subscription", INSTEAD | AFTER, "*3\r\n$10\r\npsubscribe\r\n{c}:1\r\n", UNASKED,
     0, false, false},
    {"a pattern's message", INSTEAD | AFTER, "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n{c}$1\r\nx\r\n",
     UNASKED, 0, false, false},
    {"a shard's message", INSTEAD | AFTER, "*3\r\n$8\r\nsmessage\r\n{c}$1\r\nx\r\n", UNASKED, 0,
     false, false},
    {"a word too long", INSTEAD | AFTER, "*3\r\n$8\r\nmessages\r\n{c}$1\r\nx\r\n", UNASKED, 0,
     false, false},
    {"a word too short", INSTEAD | AFTER, "*3\r\n$0\r\n\r\n{c}$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"a word in capitals", INSTEAD | AFTER, "*3\r\n$7\r\nMESSAGE\r\n{c}$1\r\nx\r\n", UNASKED, 0,
     false, false},
    {"a word as a status", INSTEAD | AFTER, "*3\r\n+message\r\n{c}$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"a word as a number", INSTEAD | AFTER, "*3\r\n:1\r\n:2\r\n:3\r\n", UNASKED, 0, false, false},
    {"a word as an error", INSTEAD | AFTER, "*3\r\n-message\r\n{c}$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"no word", INSTEAD | AFTER, "*3\r\n$-1\r\n{c}$1\r\nx\r\n", "nobody asked for", 0, false,
     false},
    {"a message that is a number", AFTER, "*3\r\n" MESSAGE "{c}:1\r\n", UNASKED, 0, false, false},
    {"a message that is null", AFTER, "*3\r\n" MESSAGE "{c}$-1\r\n", "nobody asked for", 0, false,
     false},
    {"a message that is a status", AFTER, "*3\r\n" MESSAGE "{c}+x\r\n", UNASKED, 0, false, false},
    {"a message that is an error", AFTER, "*3\r\n" MESSAGE "{c}-x\r\n", UNASKED, 0, false, false},
    {"a message that is a list", AFTER, "*3\r\n" MESSAGE "{c}*1\r\n$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"a change too early", INSTEAD, "*3\r\n" CHANGE "*1\r\n$1\r\nx\r\n", UNASKED, 0, false, false},
    {"a change that is a text", AFTER, "*3\r\n" CHANGE "$1\r\nx\r\n", UNASKED, 0, false, false},
    {"a change that is a number", AFTER, "*3\r\n" CHANGE ":1\r\n", UNASKED, 0, false, false},
    {"a change that is an error", AFTER, "*3\r\n" CHANGE "-x\r\n", UNASKED, 0, false, false},
    {"a change of no key", AFTER, "*3\r\n" CHANGE "*0\r\n", UNASKED, 0, false, false},
    {"a change of two keys", AFTER, "*3\r\n" CHANGE "*2\r\n$1\r\nx\r\n$1\r\ny\r\n", UNASKED, 0,
     false, false},
    {"a change of a numbered key", AFTER, "*3\r\n" CHANGE "*1\r\n:1\r\n", UNASKED, 0, false, false},
    {"a change of a null key", AFTER, "*3\r\n" CHANGE "*1\r\n$-1\r\n", "nobody asked for", 0, false,
     false},
    {"a change of a list", AFTER, "*3\r\n" CHANGE "*1\r\n*1\r\n$1\r\nx\r\n", UNASKED, 0, false,
     false},
    {"a change of a key too long", AFTER, "*3\r\n" CHANGE "*1\r\n$8193\r\n", "too long", 0, true,
     false},
    {"a change of nested lists", AFTER, "*3\r\n" CHANGE "*1\r\n", UNASKED, 100000, false, false},
    {"changes nobody asked for, and a list", AFTER, "*3\r\n" CHANGE "*1\r\n$1\r\nx\r\n*2\r\n",
     UNASKED, 0, false, false},
    {"changes of all keys, and a list", AFTER,
     "*3\r\n" CHANGE "*-1\r\n*3\r\n" CHANGE "$-1\r\n*2\r\n", UNASKED, 100, false, false},
    {"a change's word alone", AFTER, "*3\r\n$7\r\nmessage\r\n" CHANNEL "{c}", UNASKED, 0, false,
     false},
    {"a confirmation that is a text", INSTEAD, "*3\r\n" SUBSCRIBE "{c}$1\r\n1\r\n", UNASKED, 0,
     false, false},
    {"a confirmation of a number", INSTEAD, "*3\r\n" SUBSCRIBE ":1\r\n$1\r\nx\r\n", UNASKED, 0,
     false, false},
    {"a confirmation that is null", INSTEAD, "*3\r\n" SUBSCRIBE "{c}$-1\r\n", "nobody asked for", 0,
     false, false},
    {"a list of nothing", INSTEAD | AFTER, "*0\r\n", UNASKED, 0, false, false},
    {"a null list", INSTEAD | AFTER, "*-1\r\n", UNASKED, 0, false, false},
    {"a list of one", INSTEAD | AFTER, "*1\r\n" MESSAGE, UNASKED, 0, false, false},
    {"a list of two", INSTEAD | AFTER, "*2\r\n" MESSAGE "{c}", UNASKED, 0, false, false},
    {"a list of four", INSTEAD | AFTER, "*4\r\n" MESSAGE "{c}$1\r\nx\r\n$1\r\ny\r\n", UNASKED, 0,
     false, false},
    {"a list of a million", INSTEAD | AFTER, "*1000000\r\n" MESSAGE "{c}", UNASKED, 0, true, false},
    {"a list too long", INSTEAD | AFTER, "*2147483647\r\n", UNASKED, 0, true, false},
    {"a list longer than any number", INSTEAD | AFTER, "*99999999999999999999\r\n", NULL, 0, false,
     false},
    {"a list of negative length", INSTEAD | AFTER, "*-5\r\n", NULL, 0, false, false},
    {"nested lists", INSTEAD | AFTER, "*3\r\n", UNASKED, 100000, false, false},
    {"nested lists of one", INSTEAD | AFTER, "*1\r\n", UNASKED, 100000, false, false},
    {"a list for a channel", AFTER, "*3\r\n" MESSAGE "*3\r\n", UNASKED, 0, false, false},
    {"a number", INSTEAD | AFTER, ":1\r\n", UNASKED, 0, false, false},
    {"a status", INSTEAD | AFTER, "+OK\r\n", UNASKED, 0, false, false},
    {"a text", INSTEAD | AFTER, "$2\r\nhi\r\n", UNASKED, 0, false, false},
    {"null", INSTEAD | AFTER, "$-1\r\n", UNASKED, 0, false, false},
    {"a thousand replies", INSTEAD | AFTER, "+OK\r\n", UNASKED, 1000, false, false},
    {"an error", AFTER, "-ERR go away\r\n", "ERR go away", 0, false, false},
    {"two errors", AFTER, "-ERR go away\r\n-ERR gone\r\n", "ERR go away", 0, false, false},
    {"an error without words", AFTER, "-\r\n", "refused without a reason", 0, false, false},
    {"an error for a while", INSTEAD, "-LOADING Redis is loading\r\n", "LOADING Redis is loading",
     0, false, false},
    {"600 MB announced, and sent", AFTER, "*3\r\n" MESSAGE "{c}$629145600\r\n",
     "sent an answer without end", 0, true, false},
    {"600 MB for a word", INSTEAD | AFTER, "*3\r\n$629145600\r\n", "sent an answer without end", 0,
     true, false},
    {"600 MB for a channel", AFTER, "*3\r\n" MESSAGE "$629145600\r\n", "sent an answer without end",
     0, true, false},
    {"more than a message may have", AFTER, "*3\r\n" MESSAGE "{c}$8193\r\n", "too long", 0, true,
     false},
    {"a message of negative length", AFTER, "*3\r\n" MESSAGE "{c}$-7\r\n", NULL, 0, false, false},
    {"a length without an end", INSTEAD | AFTER, "*", "sent an answer without end", 0, true, false},
    {"a number without an end", INSTEAD, "*3\r\n" SUBSCRIBE "{c}:", "sent an answer without end", 0,
     true, false},
    {"an error without an end", INSTEAD | AFTER, "-", "sent an answer without end", 0, true, false},
    {"a message after rubbish", AFTER, "{m}x\r\n*3\r\n", NULL, 3, false, false},
    {"a push", INSTEAD | AFTER, ">3\r\n" MESSAGE "{c}$1\r\nx\r\n", NULL, 3, false, false},
    {"a push of a confirmation", INSTEAD | AFTER, ">3\r\n" SUBSCRIBE "{c}:1\r\n", NULL, 3, false,
     false},
    {"a push of the wrong shape", INSTEAD | AFTER, ">1\r\n>1\r\n>1\r\n:1\r\n", NULL, 0, false,
     false},
    {"types of the newer protocol", INSTEAD | AFTER,
     "~3\r\n" MESSAGE "{c}_\r\n%1\r\n#t\r\n,1.5\r\n", NULL, 0, false, false},
    {"a truth for a message", AFTER, "*3\r\n" MESSAGE "{c}#t\r\n", NULL, 0, false, false},
    {"a fraction for a message", AFTER, "*3\r\n" MESSAGE "{c},1.5\r\n", NULL, 0, false, false},
    {"a great number for a message", AFTER, "*3\r\n" MESSAGE "{c}(123\r\n", NULL, 0, false, false},
    {"a verbatim text for a message", AFTER, "*3\r\n" MESSAGE "{c}=5\r\ntxt:x\r\n", NULL, 0, false,
     false},
    {"a web page", INSTEAD | AFTER, "HTTP/1.1 400 Bad Request\r\n\r\n", NULL, 0, false, false},
    {"noise", INSTEAD | AFTER, "\x8f\x13\xfe\x7f\r\n\xc3\x28*\r\n$\r\n", NULL, 100, false, false},
    {"empty lines", INSTEAD | AFTER, "\r\n", NULL, 1000, false, false},
    {"half a confirmation, and the end", INSTEAD, "*3\r\n" SUBSCRIBE "{c}", NULL, 0, false, true},
    {"half a message, and the end", AFTER, "*3\r\n" MESSAGE "{c}$5\r\nhel", NULL, 0, false, true},
    {"messages, and the end", AFTER, "{m}$1\r\nx\r\n", NULL, 1000, false, true},
    {"messages, and a list", AFTER, "{m}$1\r\nx\r\n*2\r\n", UNASKED, 100, false, false},
    {"the end", ON_CONNECT | INSTEAD | AFTER, "", NULL, 0, false, true},
    {"a confirmation of nothing", ON_CONNECT, "*3\r\n" SUBSCRIBE "$1\r\nc\r\n:1\r\n",
     "nobody asked for", 3, false, false},
    {"a message of nothing", ON_CONNECT, "*3\r\n" MESSAGE "$1\r\nc\r\n$1\r\nx\r\n",
     "nobody asked for", 3, false, false},
};
#define TRICKS (sizeof(tricks) / sizeof(tricks[0]))

/* The server: its subscriber, and the trick to play. */
static struct {
    struct peer *peer;
    struct peer_link *subscriber; /* the latest; NULL: none yet */
    char channel[64];
    const struct trick *trick; /* NULL: the server behaves */
    unsigned moment;
    const char *to_subscribe, *to_probe; /* answers that replace the right ones; NULL: none */
} server;

static char endless[65536];

static void say_bulk(struct peer_link *link, const char *text) {
    char header[32];

    snprintf(header, sizeof(header), "$%zu\r\n", strlen(text));
    peer_say(link, header);
    peer_say(link, text);
    peer_say(link, "\r\n");
}

static void begin_message(struct peer_link *link) {
    peer_say(link, "*3\r\n" MESSAGE);
    say_bulk(link, server.channel);
}

/* Sends a trick's bytes, with the channel's name filled in. */
static void say_filled(struct peer_link *link, const char *bytes) {
    const char *brace;

    while ((brace = strchr(bytes, '{')) != NULL) {
        peer_send(link, bytes, (size_t)(brace - bytes));
        if (brace[1] == 'c') {
            say_bulk(link, server.channel);
        } else {
            begin_message(link);
        }
        bytes = brace + 3;
    }
    peer_say(link, bytes);
}

static void play(struct peer_link *link) {
    const struct trick *trick = server.trick;
    size_t repeat = trick->repeat == 0 ? 1 : trick->repeat;

    server.trick = NULL;
    for (size_t i = 0; i < repeat; i++) {
        say_filled(link, trick->bytes);
    }
    if (trick->endless) {
        peer_pour(link, endless, sizeof(endless));
    }
    if (trick->hang_up) {
        peer_hang_up(link);
    }
}

static bool is_to_play(unsigned moment) {
    return server.trick != NULL && server.moment == moment;
}

static void greet(struct peer_link *link, void *arg) {
    (void)arg;
    if (link == server.subscriber) {
        server.subscriber = NULL; /* another link may reuse the memory of this one */
    }
    if (is_to_play(ON_CONNECT)) {
        play(link);
    }
}

static void subscribe(struct peer_link *link, const struct command *command) {
    server.subscriber = link;
    command_text(command, 1, server.channel, sizeof(server.channel));
    if (server.to_subscribe != NULL) {
        peer_say(link, server.to_subscribe);
    } else if (is_to_play(INSTEAD)) {
        play(link);
    } else {
        peer_say(link, "*3\r\n" SUBSCRIBE);
        say_bulk(link, server.channel);
        peer_say(link, ":1\r\n");
        if (is_to_play(APPENDED)) {
            play(link);
        }
    }
}

static void publish(struct peer_link *link, const struct command *command) {
    bool has_subscriber = peer_has(server.peer, server.subscriber);
    char text[64];

    if (server.to_probe != NULL) {
        peer_say(link, server.to_probe);
        return;
    }
    command_text(command, 4, text, sizeof(text));
    if (has_subscriber) {
        begin_message(server.subscriber);
        say_bulk(server.subscriber, text);
    }
    peer_say(link, has_subscriber ? ":1\r\n" : ":0\r\n");
}

static void answer(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is(command, "SUBSCRIBE", NULL)) {
        subscribe(link, command);
    } else if (command_is_script(command)) {
        publish(link, command);
    } else {
        peer_answer_well(link, command, arg);
    }
}

static struct channel_rig *rig_at(struct fixture *f, struct peer *peer) {
    struct channel_rig *rig;

    memset(&server, 0, sizeof(server));
    server.peer = peer;
    peer_greet(peer, greet);
    rig = rig_on(f, peer_uri(peer), peer_uri(peer));
    wait_ready(rig, 1);
    return rig;
}

/* Asserts that messages arrive. */
static void assert_works(struct channel_rig *rig) {
    size_t count = rig->messages;

    begin_message(server.subscriber);
    say_bulk(server.subscriber, "hello");
    wait_messages(rig, count + 1);
    assert_string_equal(rig->last, "hello");
    probe(rig);
}

/* ------------------------------------------------------------------------------------- tricks */

/* The end of a connection, and its reason, recorded before the next attempt. */
struct end {
    const struct channel_rig *rig;
    uint64_t disconnected;
    char why[192];
};

static bool has_ended(void *arg) {
    struct end *end = arg;
    const struct uplink *uplink = &end->rig->channel.uplink;

    if (uplink->disconnected == end->disconnected) {
        return false;
    }
    snprintf(end->why, sizeof(end->why), "%s", uplink->reason);
    return true;
}

static void begin_trick(struct channel_rig *rig, const struct trick *trick, unsigned moment) {
    if (moment == WHEN_READY) {
        server.trick = trick;
        play(server.subscriber);
        return;
    }
    channel_want(&rig->channel, false);
    wait_state(rig, CHANNEL_OFF);
    server.trick = trick;
    server.moment = moment;
    rig->ready = rig->broken = 0;
    channel_want(&rig->channel, true);
}

static void survive(struct channel_rig *rig, struct peer *peer, const struct trick *trick,
                    unsigned moment) {
    struct end end = {.rig = rig};
    size_t poured = peer_poured(peer);
    char what[128];

    snprintf(what, sizeof(what), "%s (at %u) has ended", trick->name, moment);
    end.disconnected = rig->channel.uplink.disconnected;
    begin_trick(rig, trick, moment);
    if (moment != WHEN_READY) {
        end.disconnected = rig->channel.uplink.disconnected;
    }
    run_until(rig->fixture, has_ended, &end, what);
    if (end.why[0] == '\0' || (trick->why != NULL && strstr(end.why, trick->why) == NULL)) {
        fail_msg("%s (at %u): the reason is: %s", trick->name, moment, end.why);
    }
    if (peer_poured(peer) - poured > (32 << 20)) {
        fail_msg("%s: %zu bytes were taken", trick->name, peer_poured(peer) - poured);
    }
    wait_ready(rig, rig->broken + 1);
    assert_works(rig);
    assert_int_equal(rig->commands.disconnected, 0);
}

static void survive_all(struct fixture *f, unsigned moment) {
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig;

    memset(endless, '1', sizeof(endless));
    rig = rig_at(f, peer);
    for (size_t i = 0; i < TRICKS; i++) {
        if ((tricks[i].moments & moment) != 0) {
            survive(rig, peer, &tricks[i], moment);
        }
    }
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

static void a_bad_first_word_is_survived(void **state) {
    survive_all(*state, ON_CONNECT);
}

static void a_bad_confirmation_is_survived(void **state) {
    survive_all(*state, INSTEAD);
}

static void a_bad_word_after_the_confirmation_is_survived(void **state) {
    survive_all(*state, APPENDED);
}

static void a_bad_message_is_survived(void **state) {
    survive_all(*state, WHEN_READY);
}

static void all_may_come_byte_by_byte(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig;

    peer_set_chunk(peer, 1);
    rig = rig_at(f, peer);
    for (size_t i = 0; i < 5; i++) {
        assert_works(rig);
    }
    assert_int_equal(rig->channel.uplink.disconnected, 0);
    for (size_t i = 0; i < TRICKS; i++) {
        if ((tricks[i].moments & WHEN_READY) != 0 && tricks[i].repeat == 0 && !tricks[i].endless) {
            survive(rig, peer, &tricks[i], WHEN_READY);
        }
    }
}

/* ------------------------------------------------------------------- answers to SUBSCRIBE */

static void a_silent_server_is_dropped(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);

    server.to_subscribe = "";
    channel_want(&rig->channel, false);
    wait_state(rig, CHANNEL_OFF);
    channel_want(&rig->channel, true);
    wait_state(rig, CHANNEL_SUBSCRIBING);
    assert_why(rig, "SUBSCRIBE is not answered yet");
    while (rig->channel.state == CHANNEL_SUBSCRIBING) {
        rig_beat(rig);
        run_turns(f, 2);
    }
    wait_logged(f, "no messages: stalled: no answer for");
    rig->ready = 0;
    server.to_subscribe = NULL;
    wait_ready(rig, 1);
}

static void a_refusal_is_reported_in_words(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);

    server.to_subscribe = "-ERR unknown command 'SUBSCRIBE', with args beginning with: 'x'\r\n";
    peer_drop_links(peer);
    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, "SUBSCRIBE is refused: ERR unknown command 'SUBSCRIBE'");
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 1);
    server.to_subscribe = NULL;
    beat_until(rig, CHANNEL_CONNECTING);
    wait_ready(rig, 2);
}

/* -------------------------------------------------------------------------- answers to probes */

static void what_is_no_receiver_is_none(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    static const char *const forgeries[] = {":0\r\n",  ":-1\r\n",     "+OK\r\n",
                                            "$-1\r\n", "$1\r\n1\r\n", "+1\r\n"};

    for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
        struct end end = {.rig = rig, .disconnected = rig->channel.uplink.disconnected};

        server.to_probe = forgeries[i];
        rig_beat(rig);
        run_until(f, has_ended, &end, "the probe is found to be wrong");
        assert_non_null(strstr(end.why, "a probe"));
        server.to_probe = NULL;
        wait_ready(rig, i + 2);
    }
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

/* A server that is busy or loading has refused nothing: the next heartbeat probes again. */
static void a_busy_server_is_probed_again(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    size_t commands;

    server.to_probe = "-BUSY Redis is busy running a script.\r\n";
    for (size_t i = 0; i < 10; i++) {
        commands = peer_commands(peer);
        rig_beat(rig);
        wait_peer_commands(f, peer, commands + 1);
        run_turns(f, 3);
    }
    assert_true(channel_is_ready(&rig->channel));
    peer_drop_links(peer);
    wait_state(rig, CHANNEL_PROBING);
    server.to_probe = NULL;
    wait_peer_commands(f, peer, peer_commands(peer));
    run_turns(f, 5);
    beat_until(rig, CHANNEL_READY);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

static void scripts_may_be_lacking_for_ever(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    size_t commands = peer_commands(peer);

    server.to_probe = "-NOSCRIPT No matching script.\r\n";
    rig_beat(rig);
    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, "PUBLISH by a script is refused: NOSCRIPT");
    assert_int_equal(peer_commands(peer), commands + 2); /* by its SHA-1, and with its text */
}

/*
 * A server may send probes that were never sent: they prove nothing, and are delivered to no
 * waiter.
 */
static void forged_probes_prove_nothing(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);

    server.to_probe = ":1\r\n";
    rig_beat(rig);
    begin_message(server.subscriber);
    say_bulk(server.subscriber, "probe:1"); /* the previous probe */
    begin_message(server.subscriber);
    say_bulk(server.subscriber, "probe:");
    begin_message(server.subscriber);
    say_bulk(server.subscriber, "probe:99999999999999999999999999999999999999999999");
    begin_message(server.subscriber);
    say_bulk(server.subscriber, "hello");
    wait_messages(rig, 1);
    assert_string_equal(rig->last, "hello");
    assert_false(rig->channel.probe.has_arrived);
    beat_until_broken(rig, 1);
    assert_true(log_capture_has(&f->capture, "stalled: a probe has not come back"));
    server.to_probe = NULL;
    rig->ready = rig->broken = 0;
    wait_state(rig, CHANNEL_READY);
}

/* ----------------------------------------------------------------------------- endless messages */

/* A server may send messages forever: memory stays bounded, and the loop keeps running. */
static void messages_without_end_keep_nobody(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    static char flood[65536];
    char one[128];
    size_t length;

    length = (size_t)snprintf(one, sizeof(one), "*3\r\n" MESSAGE "$%zu\r\n%s\r\n$1\r\nx\r\n",
                              strlen(server.channel), server.channel);
    for (size_t at = 0; at < 1000 * length; at += length) {
        memcpy(flood + at % (1000 * length), one, length);
    }
    counting_allocator_mark(&f->allocator);
    peer_pour(server.subscriber, flood, 1000 * length);
    wait_messages(rig, 10000);
    wait_messages(rig, 50000);
    assert_int_equal(f->allocator.peak, f->allocator.bytes);
    assert_int_equal(rig->broken, 0);
    channel_want(&rig->channel, false);
    wait_state(rig, CHANNEL_OFF);
}

/* ---------------------------------------------------------------------- a connection on its own */

/* A connection that only the test uses. */
struct wire {
    struct conn *conn;
    size_t replies, messages, ends;
    bool closes; /* at the first message */
    char why[128];
};

static struct wire wire;

static void on_wire_closed(void *owner, const char *why) {
    (void)owner;
    wire.ends++;
    snprintf(wire.why, sizeof(wire.why), "%s", why);
    conn_destroy(wire.conn);
    wire.conn = NULL;
}

static void on_wire_room(void *owner) {
    (void)owner;
}

static void on_wire_message(void *owner, const char *text, size_t length) {
    (void)owner;
    assert_int_equal(length, strlen(text));
    wire.messages++;
    if (wire.closes) {
        conn_close(wire.conn, "that was enough");
    }
}

static const struct conn_listener wire_listener = {
    .on_closed = on_wire_closed,
    .on_room = on_wire_room,
    .on_message = on_wire_message,
};

static void on_wire_reply(struct conn_request *request, void *owner, const struct reply *reply) {
    (void)request;
    (void)owner;
    wire.replies += reply != NULL;
}

static void open_wire(struct channel_rig *rig, struct peer *peer) {
    struct conn_address address = {
        .host = "127.0.0.1",
        .port = (uint16_t)strtoul(strrchr(peer_uri(peer), ':') + 1, NULL, 10),
    };
    redlock_error error;

    memset(&wire, 0, sizeof(wire));
    wire.conn = conn_open(&rig->context.net, &address, &wire_listener, NULL, &error);
    assert_non_null(wire.conn);
}

#define SUBSCRIBE_C "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"

static void send_subscribe(struct channel_rig *rig, struct conn_request *request) {
    *request = (struct conn_request){
        .on_reply = on_wire_reply, .length = sizeof(SUBSCRIBE_C) - 1, .load_class = LOAD_OWN};
    assert_true(conn_subscribe(wire.conn, request, "c", SUBSCRIBE_C, sizeof(SUBSCRIBE_C) - 1));
    context_wake(&rig->context);
}

static bool has_wire_ended(void *arg) {
    (void)arg;
    return wire.ends > 0;
}

static void confirm_too_early(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is(command, "ECHO", NULL)) {
        peer_say(link, "*3\r\n" SUBSCRIBE "$1\r\nc\r\n:1\r\n");
    } else {
        answer(link, command, arg);
    }
}

/* The confirmation must come after the answers to the commands before SUBSCRIBE. */
static void a_confirmation_before_its_turn_is_none(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, confirm_too_early, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    static const char echo[] = "*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n";
    struct conn_request first = {
        .on_reply = on_wire_reply, .length = sizeof(echo) - 1, .load_class = LOAD_OWN};
    struct conn_request second;

    open_wire(rig, peer);
    assert_true(conn_send(wire.conn, &first, echo, sizeof(echo) - 1));
    send_subscribe(rig, &second);
    run_until(f, has_wire_ended, NULL, "the connection has ended");
    assert_int_equal(wire.replies, 0);
    assert_non_null(strstr(wire.why, "sent an array that nobody asked for"));
}

static void say_nine_messages(struct peer_link *link, const struct command *command, void *arg) {
    if (wire.conn != NULL && command_is(command, "SUBSCRIBE", "c")) {
        peer_say(link, "*3\r\n" SUBSCRIBE "$1\r\nc\r\n:1\r\n");
        for (size_t i = 0; i < 9; i++) {
            peer_say(link, "*3\r\n" MESSAGE "$1\r\nc\r\n$1\r\nx\r\n");
        }
    } else {
        answer(link, command, arg);
    }
}

/* Messages that arrived together with the one that closed the connection are not reported. */
static void a_connection_that_is_ending_reports_nothing(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, say_nine_messages, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    struct conn_request request;

    open_wire(rig, peer);
    wire.closes = true;
    send_subscribe(rig, &request);
    run_until(f, has_wire_ended, NULL, "the connection has ended");
    assert_int_equal(wire.replies, 1);
    assert_int_equal(wire.messages, 1);
    assert_string_equal(wire.why, "that was enough");
}

/* A missing confirmation is noticed even long after the uplink last had a reason to check. */
static void a_subscription_without_an_answer_is_noticed(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    struct uplink *uplink = &rig->commands;
    struct conn_request request = {
        .on_reply = on_wire_reply, .length = sizeof(SUBSCRIBE_C) - 1, .load_class = LOAD_OWN};

    channel_want(&rig->channel, false);
    wait_state(rig, CHANNEL_OFF);
    for (size_t i = 0; i < 4; i++) {
        pass_time(PATIENT_MS);
        run_turns(f, 3);
    }
    server.to_subscribe = "";
    request.sent_at = clock_now();
    assert_true(uplink_subscribe(uplink, &request, "c", SUBSCRIBE_C, sizeof(SUBSCRIBE_C) - 1));
    context_wake(&rig->context);
    for (size_t i = 0; i < 10 && uplink->disconnected == 0; i++) {
        pass_time(PATIENT_MS);
        run_turns(f, 5);
    }
    assert_int_equal(uplink->disconnected, 1);
}

/* ------------------------------------------------------------------------------------ signals */

static void hang_up_after_the_handshake(struct peer_link *link, const struct command *command,
                                        void *arg) {
    answer(link, command, arg);
    if (server.trick != NULL && command_is(command, "CLIENT", "ID")) {
        peer_hang_up(link);
    }
}

/* Writing SUBSCRIBE to a closed Unix socket fails: the host may not receive SIGPIPE. */
static void a_write_to_a_closed_connection_raises_no_signal(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create_unix(f, hang_up_after_the_handshake, NULL);
    struct channel_rig *rig = rig_at(f, peer);
    struct sigaction disposition;
    sigset_t before;
    sigset_t after;

    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_BLOCK, NULL, &before);
    channel_want(&rig->channel, false);
    wait_state(rig, CHANNEL_OFF);
    server.trick = &tricks[0];
    channel_want(&rig->channel, true);
    for (uint64_t i = 1; i <= 20; i++) {
        struct end end = {.rig = rig, .disconnected = rig->channel.uplink.disconnected};

        run_until(f, has_ended, &end, "the connection has ended");
    }
    sigpending(&after);
    assert_false(sigismember(&after, SIGPIPE));
    sigprocmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGPIPE), sigismember(&before, SIGPIPE));
    sigaction(SIGPIPE, NULL, &disposition);
    assert_ptr_equal(disposition.sa_handler, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_NO_MASTERS(a_bad_first_word_is_survived),
        ON_NO_MASTERS(a_bad_confirmation_is_survived),
        ON_NO_MASTERS(a_bad_word_after_the_confirmation_is_survived),
        ON_NO_MASTERS(a_bad_message_is_survived),
        ON_NO_MASTERS(all_may_come_byte_by_byte),
        ON_NO_MASTERS(a_silent_server_is_dropped),
        ON_NO_MASTERS(a_refusal_is_reported_in_words),
        ON_NO_MASTERS(what_is_no_receiver_is_none),
        ON_NO_MASTERS(a_busy_server_is_probed_again),
        ON_NO_MASTERS(scripts_may_be_lacking_for_ever),
        ON_NO_MASTERS(forged_probes_prove_nothing),
        ON_NO_MASTERS(messages_without_end_keep_nobody),
        ON_NO_MASTERS(a_confirmation_before_its_turn_is_none),
        ON_NO_MASTERS(a_connection_that_is_ending_reports_nothing),
        ON_NO_MASTERS(a_subscription_without_an_answer_is_noticed),
        ON_NO_MASTERS(a_write_to_a_closed_connection_raises_no_signal),
    };

    return cmocka_run_group_tests_name("channel_hostile", tests, NULL, NULL);
}
