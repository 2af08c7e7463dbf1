/*
 * A node's channel on real servers, without a client (support/channel_rig.h): when it is ready,
 * what it receives, and what invalidates its name. The last tests deny it rights and memory.
 */
#include "channel_rig.h"
#include "clocks.h"
#include "folder.h"
#include "master_data.h"
#include "proxy.h"
#if HAS_TLS
#include "authority.h"
#endif

#include "io/reader.h"

#include <ctype.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int one_master(void **state) {
    return start_fixture(state, 1, NULL);
}

static int two_masters(void **state) {
    return start_fixture(state, 2, NULL);
}

#define ON_ONE_MASTER(test) cmocka_unit_test_setup_teardown(test, one_master, finish)
#define ON_TWO_MASTERS(test) cmocka_unit_test_setup_teardown(test, two_masters, finish)

/* Makes a rig on the fixture's first master, and waits until its channel is ready. */
static struct channel_rig *rig_ready(struct fixture *f) {
    const char *uri = masters_uri(f->masters, 0);
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_ready(rig, 1);
    return rig;
}

/* Returns the number of channels with subscribers at the first master. */
static size_t subscribed(struct fixture *f) {
    char *names = masters_query(f->masters, 0, "PUBSUB CHANNELS");
    size_t count = names[0] != '\0';

    for (const char *at = names; *at != '\0'; at++) {
        count += *at == '\n';
    }
    free(names);
    return count;
}

/* Publishes to the channel from a script, as the scripts that notify waiters do. */
static void publish(struct channel_rig *rig, const char *text, size_t length) {
    long long receivers = masters_query_integer(rig->fixture->masters, 0, "EVAL %s 0 %s %b",
                                                "return redis.call('publish', ARGV[1], ARGV[2])",
                                                channel_name(&rig->channel), text, length);

    assert_int_equal(receivers, 1);
}

static void assert_works(struct channel_rig *rig) {
    size_t count = rig->messages;

    publish(rig, "hello", 5);
    wait_messages(rig, count + 1);
    assert_string_equal(rig->last, "hello");
}

static void kill_type(struct fixture *f, const char *type) {
    assert_int_equal(masters_query_integer(f->masters, 0, "CLIENT KILL TYPE %s SKIPME yes", type),
                     1);
}

/* Asserts that the name is new, and copies it to `name`. */
static void assert_renamed(const struct channel_rig *rig, char name[CHANNEL_NAME_SIZE]) {
    assert_string_not_equal(channel_name(&rig->channel), name);
    strcpy(name, channel_name(&rig->channel));
}

/* ----------------------------------------------------------------------------------- messages */

static void it_becomes_ready(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    const char *name = channel_name(&rig->channel);

    assert_int_equal(strlen(name), strlen("redlock:") + CHANNEL_DIGITS);
    assert_memory_equal(name, "redlock:", 8);
    for (const char *digit = name + 8; *digit != '\0'; digit++) {
        assert_true(isxdigit((unsigned char)*digit));
    }
    assert_string_equal(channel_why(&rig->channel), "");
    assert_int_equal(subscribed(f), 1);
    assert_int_equal(rig->messages, 0);
    wait_logged(f, "its messages arrive");
    assert_int_equal(log_capture_count(&f->capture, "connected"),
                     0); /* only a node's connection logs this */
    assert_int_equal(rig->channel.uplink.disconnected, 0);
    assert_works(rig);
}

static bool is_node_up(void *arg) {
    const struct channel_rig *rig = arg;

    return rig->commands.state == UPLINK_UP;
}

static void nobody_connects_unasked(void **state) {
    struct fixture *f = *state;
    const char *uri = masters_uri(f->masters, 0);
    redlock_options options = patient_options(f, &uri, 1);
    struct channel_rig *rig = rig_create(f, &options);
    size_t asked;

    run_until(f, is_node_up, rig, "the node is connected");
    for (size_t i = 0; i < 5; i++) {
        rig_beat(rig);
        run_turns(f, 2);
    }
    assert_int_equal(rig->channel.state, CHANNEL_OFF);
    assert_int_equal(subscribed(f), 0);
    asked = executed(f, 0, "evalsha"); /* for scripts, only by the other connection */
    assert_true(asked > 0);
    channel_want(&rig->channel, true);
    wait_ready(rig, 1);
    assert_int_equal(executed(f, 0, "evalsha"), asked + 1); /* the probe */
}

static void messages_arrive_whole_and_in_order(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    static char longest[READER_TEXT_MAX];
    char number[16];

    publish(rig, "", 0);
    wait_messages(rig, 1);
    assert_int_equal(rig->last_length, 0);
    publish(rig, "a\0b\r\n$1\r\n", 9);
    wait_messages(rig, 2);
    assert_int_equal(rig->last_length, 9);
    assert_memory_equal(rig->last, "a\0b\r\n$1\r\n", 9);
    memset(longest, 'x', sizeof(longest));
    publish(rig, longest, sizeof(longest));
    wait_messages(rig, 3);
    assert_int_equal(rig->last_length, sizeof(longest));
    assert_memory_equal(rig->last, longest, sizeof(longest));
    masters_query_integer(f->masters, 0, "EVAL %s 0 %s",
                          "for i = 1, 5000 do redis.call('publish', ARGV[1], i) end return 1",
                          channel_name(&rig->channel));
    for (size_t i = 4; i <= 5003; i++) {
        wait_messages(rig, i);
    }
    snprintf(number, sizeof(number), "%d", 5000);
    assert_string_equal(rig->last, number);
    assert_int_equal(rig->messages, 5003);
    assert_int_equal(rig->broken, 0);
}

/*
 * A server may send faster than the client reads: a read takes only part of the bytes, so that it
 * ends.
 */
static void a_read_takes_a_part_of_what_there_is(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);

    masters_query_integer(f->masters, 0, "EVAL %s 0 %s",
                          "for i = 1, 5000 do redis.call('publish', ARGV[1], i) end return 1",
                          channel_name(&rig->channel));
    send_to(f, 0, 1, "PING"); /* so the messages have been written, as far as there is room */
    uplink_read(&rig->channel.uplink);
    assert_int_in_range(rig->messages, 1, 1000);
    wait_messages(rig, 5000);
    assert_int_equal(rig->broken, 0);
}

static size_t expected;

static void count_up(struct channel_rig *rig) {
    assert_int_equal(strtoull(rig->last, NULL, 10), ++expected);
}

static void none_is_lost_or_doubled(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);

    expected = 0;
    rig->then_message = count_up;
    for (size_t i = 1; i <= 20; i++) {
        masters_query_integer(f->masters, 0, "EVAL %s 0 %s %d",
                              "for i = ARGV[2] - 99, ARGV[2] do "
                              "redis.call('publish', ARGV[1], string.format('%.0f', i)) "
                              "end return 1",
                              channel_name(&rig->channel), (int)i * 100);
        channel_probe(&rig->channel, UINT64_MAX); /* between them */
    }
    wait_messages(rig, 2000);
    assert_int_equal(expected, 2000);
}

static void a_message_too_long_ends_the_connection(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    static char longer[READER_TEXT_MAX + 1];
    char name[CHANNEL_NAME_SIZE] = "";

    assert_renamed(rig, name);
    memset(longer, 'x', sizeof(longer));
    publish(rig, longer, sizeof(longer));
    wait_ready(rig, 2);
    assert_renamed(rig, name);
    assert_true(log_capture_has(&f->capture, "no messages: sent a message that is too long"));
    assert_int_equal(rig->messages, 0);
    assert_works(rig);
}

/* A program that starts another one must not pass on its connections. */
static void connections_are_closed_on_exec(void **state) {
    struct fixture *f = *state;
    bool open_before[1024] = {false};
    size_t opened = 0;

    for (int fd = 0; fd < 1024; fd++) {
        open_before[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    rig_ready(f);
    for (int fd = 0; fd < 1024; fd++) {
        int flags = open_before[fd] ? -1 : fcntl(fd, F_GETFD);

        if (flags >= 0) {
            opened++;
            assert_true((flags & FD_CLOEXEC) != 0);
        }
    }
    assert_int_equal(opened, 2);
}

/* After SUBSCRIBE a server accepts no commands: the library sends none. */
static void nothing_is_sent_any_more(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct conn_request request = {.length = sizeof(ping) - 1, .load_class = LOAD_OWN};

    assert_false(uplink_send(&rig->channel.uplink, &request, ping, sizeof(ping) - 1));
    assert_false(uplink_subscribe(&rig->channel.uplink, &request, "again", ping, sizeof(ping) - 1));
    run_turns(f, 3);
    assert_works(rig);
    assert_int_equal(uplink_commands(&rig->channel.uplink), 0);
}

static void unix_sockets_have_channels_too(void **state) {
    struct fixture *f = *state;
    const char *uri = masters_unix_uri(f->masters, 0);
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_ready(rig, 1);
    assert_works(rig);
}

/* The login is the node's; channels belong to no database. */
static void the_login_is_the_nodes(void **state) {
    struct fixture *f = *state;
    char uri[64];
    struct channel_rig *rig;
    char *list;

    send_to(f, 0, 1, "ACL SETUSER waiter on >secret ~* &redlock:* +@all -select");
    snprintf(uri, sizeof(uri), "redis://waiter:secret@127.0.0.1:%d/3", masters_port(f->masters, 0));
    rig = rig_on(f, masters_uri(f->masters, 0), uri);
    wait_ready(rig, 1);
    list = masters_query(f->masters, 0, "CLIENT LIST TYPE pubsub");
    assert_non_null(strstr(list, "user=waiter"));
    assert_non_null(strstr(list, "db=0"));
    free(list);
    send_to(f, 0, 1, "ACL SETUSER waiter resetpass >changed");
    kill_type(f, "pubsub");
    wait_logged(f, "no messages: WRONGPASS");
    send_to(f, 0, 1, "ACL SETUSER waiter >secret");
    wait_ready(rig, 2);
}

/* ------------------------------------------------------------------------------------- probes */

static void probes_go_on(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);

    for (size_t i = 0; i < 10; i++) {
        probe(rig);
    }
    assert_int_equal(rig->channel.probes, 12); /* the very first one again, with the text */
    assert_int_equal(rig->messages, 0);        /* probes are the channel's own */
    size_t texts = executed(f, 0, "eval");
    send_to(f, 0, 1, "SCRIPT FLUSH");
    probe(rig);
    probe(rig);
    assert_int_equal(rig->ready, 1);
    assert_int_equal(rig->broken, 0);
    assert_int_equal(executed(f, 0, "eval"), texts + 1);
}

/* The node's connection and the subscription lead to different servers. */
static void two_servers_are_no_channel(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_on(f, masters_uri(f->masters, 0), masters_uri(f->masters, 1));

    wait_logged(f, "no messages: a probe reached nobody");
    wait_executed(f, 0, "publish", 5);
    assert_int_equal(rig->ready, 0);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 0);
}

static void silence_ends_it(void **state) {
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create(f, 0);
    struct channel_rig *rig = rig_on(f, masters_uri(f->masters, 0), proxy_uri(proxy));
    char name[CHANNEL_NAME_SIZE] = "";

    wait_ready(rig, 1);
    assert_renamed(rig, name);
    probe(rig);
    proxy_hold_replies(proxy);
    rig_beat(rig);
    wait_executed(f, 0, "publish", 3);
    beat_until_broken(rig, 1);
    assert_true(
        log_capture_has(&f->capture, "no messages: stalled: a probe has not come back for"));
    proxy_pass_replies(proxy);
    wait_ready(rig, 2);
    assert_renamed(rig, name);
    assert_works(rig);
    assert_int_equal(rig->commands.disconnected, 0);
}

/* A loop that was blocked has not read what may have arrived. */
static void a_late_heartbeat_judges_nothing(void **state) {
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create(f, 0);
    struct channel_rig *rig = rig_on(f, masters_uri(f->masters, 0), proxy_uri(proxy));

    wait_ready(rig, 1);
    probe(rig);
    proxy_hold_replies(proxy);
    rig_beat(rig);
    wait_executed(f, 0, "publish", 3);
    pass_time(3 * PATIENT_MS);
    rig_beat(rig);
    assert_true(channel_is_ready(&rig->channel));
    pass_time(3 * PATIENT_MS);
    rig_beat(rig); /* only once */
    assert_false(channel_is_ready(&rig->channel));
    wait_broken(rig, 1);
}

/* The script's answer is late, but its message is not: only the node's connection is concerned. */
static void a_late_answer_ends_nothing(void **state) {
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create(f, 0);
    struct channel_rig *rig = rig_on(f, proxy_uri(proxy), masters_uri(f->masters, 0));

    wait_ready(rig, 1);
    proxy_hold_replies(proxy);
    rig_beat(rig);
    wait_executed(f, 0, "publish", 2);
    publish(rig, "behind", 6);
    wait_messages(rig, 1); /* so the probe has arrived */
    channel_beat(&rig->channel, rig->channel.probe.request.sent_at + nanos_from_ms(2 * PATIENT_MS));
    channel_beat(&rig->channel, rig->channel.beaten_at + CHANNEL_BEAT_NANOS);
    channel_beat(&rig->channel, rig->channel.beaten_at + CHANNEL_BEAT_NANOS);
    assert_true(channel_is_ready(&rig->channel));
    proxy_pass_replies(proxy);
    probe(rig);
    assert_int_equal(rig->broken, 0);
}

/* ------------------------------------------------------------------------- ends of connections */

static void a_restarted_server_gets_a_new_name(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    char name[CHANNEL_NAME_SIZE] = "";

    for (size_t i = 1; i <= 3; i++) {
        assert_renamed(rig, name);
        masters_kill(f->masters, 0);
        wait_broken(rig, i);
        masters_restart(f->masters, 0);
        wait_ready(rig, i + 1);
        assert_int_equal(rig->broken, i);
    }
    assert_renamed(rig, name);
    assert_works(rig);
}

static void either_connection_may_end(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    char name[CHANNEL_NAME_SIZE] = "";

    for (size_t i = 1; i <= 6; i++) {
        assert_renamed(rig, name);
        kill_type(f, i % 2 == 0 ? "normal" : "pubsub");
        wait_ready(rig, i + 1);
        assert_int_equal(rig->broken, i);
        assert_works(rig);
        assert_int_equal(subscribed(f), 1);
    }
    assert_int_equal(rig->commands.disconnected, 3);
    assert_renamed(rig, name);
}

/* An answer to a probe of the old name does not count for the new name. */
static void a_late_answer_counts_for_its_name_alone(void **state) {
    struct fixture *f = *state;
    struct proxy *proxy = proxy_create(f, 0);
    struct channel_rig *rig = rig_on(f, proxy_uri(proxy), masters_uri(f->masters, 0));

    wait_ready(rig, 1);
    uint64_t before = rig->channel.probes;
    proxy_hold_replies(proxy);
    rig_beat(rig);
    kill_type(f, "pubsub");
    wait_broken(rig, 1);
    wait_state(rig, CHANNEL_PROBING);
    assert_int_equal(rig->channel.probes, before + 1);
    assert_true(rig->channel.probe.is_for_another);
    rig_beat(rig); /* nothing to judge yet */
    proxy_pass_replies(proxy);
    wait_ready(rig, 2);
    assert_int_equal(rig->channel.probes, before + 2);
    assert_int_equal(rig->broken, 1);
}

static void a_stopped_server_is_dropped_and_comes_back(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    char name[CHANNEL_NAME_SIZE] = "";

    assert_renamed(rig, name);
    freeze(f, 0);
    beat_until(rig, CHANNEL_OFF);
    assert_int_equal(rig->broken, 1);
    assert_true(rig->commands.disconnected > 0);
    assert_why(rig, "the node is not connected");
    thaw(f, 0);
    wait_ready(rig, 2);
    assert_renamed(rig, name);
    assert_works(rig);
}

/* ------------------------------------------------------------------------ wanted and not wanted */

static void who_is_not_wanted_leaves(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    char name[CHANNEL_NAME_SIZE] = "";

    for (size_t i = 0; i < 3; i++) {
        assert_renamed(rig, name);
        channel_want(&rig->channel, false);
        assert_false(channel_is_ready(&rig->channel));
        wait_state(rig, CHANNEL_OFF);
        assert_why(rig, "nobody waits");
        assert_int_equal(rig->broken, 0);
        rig_beat(rig);
        run_turns(f, 2);
        assert_int_equal(rig->channel.state, CHANNEL_OFF);
        assert_int_equal(subscribed(f), 0);
        rig->ready = 0;
        channel_want(&rig->channel, true);
        wait_ready(rig, 1);
    }
    channel_want(&rig->channel, false);
    channel_want(&rig->channel, true); /* before the connection was closed */
    assert_false(channel_is_ready(&rig->channel));
    rig->ready = 0;
    wait_ready(rig, 1);
    assert_works(rig);
    assert_int_equal(rig->broken, 0);
}

static void want_no_more(struct channel_rig *rig) {
    channel_want(&rig->channel, false);
}

static void want_anew(struct channel_rig *rig) {
    rig->ready = rig->broken = 0;
    channel_want(&rig->channel, false);
    channel_want(&rig->channel, true);
    rig->then_ready = rig->then_broken = rig->then_message = NULL;
}

static void it_may_be_given_up_in_each_callback(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);

    rig->then_message = want_no_more;
    masters_query_integer(f->masters, 0, "EVAL %s 0 %s",
                          "for i = 1, 9 do redis.call('publish', ARGV[1], i) end return 1",
                          channel_name(&rig->channel));
    wait_state(rig, CHANNEL_OFF);
    assert_int_equal(rig->messages, 1);
    rig->ready = 0;
    rig->then_ready = want_no_more;
    channel_want(&rig->channel, true);
    wait_state(rig, CHANNEL_READY - 1);
    wait_state(rig, CHANNEL_OFF);
    assert_int_equal(rig->ready, 1);
    rig->ready = 0;
    rig->then_ready = NULL;
    rig->then_broken = want_no_more;
    channel_want(&rig->channel, true);
    wait_ready(rig, 1);
    kill_type(f, "pubsub");
    wait_broken(rig, 1);
    wait_state(rig, CHANNEL_OFF);
    assert_int_equal(rig->broken, 1);
}

static void it_may_be_wanted_anew_in_each_callback(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);

    rig->then_message = want_anew;
    publish(rig, "anew", 4);
    wait_messages(rig, 1);
    wait_ready(rig, 1);
    rig->then_broken = want_anew;
    kill_type(f, "normal");
    wait_broken(rig, 0);
    wait_state(rig, CHANNEL_OFF);
    wait_ready(rig, 1);
    assert_works(rig);
}

static void it_stops_in_each_state(void **state) {
    struct fixture *f = *state;
    const char *uri = masters_uri(f->masters, 0);

    for (enum channel_state at = CHANNEL_OFF; at <= CHANNEL_READY; at++) {
        struct channel_rig *rig = rig_on(f, uri, uri);

        if (at != CHANNEL_OFF) {
            wait_state(rig, at);
        }
        channel_stop(&rig->channel, "the client is closing");
        assert_int_equal(rig->channel.state, CHANNEL_OFF);
        assert_why(rig, "the client is closing");
        channel_beat(&rig->channel, 0);
        channel_command_up(&rig->channel);
        run_turns(f, 3);
        assert_int_equal(rig->channel.state, CHANNEL_OFF);
        assert_int_equal(rig->broken, 0);
    }
}

/* ------------------------------------------------------------------------------------- rights */

/* Sets a user's rules, which take effect on open connections at once. */
static void rule(struct fixture *f, const char *rules) {
    char command[160];
    char *answer;

    snprintf(command, sizeof(command), "ACL SETUSER waiter %s", rules);
    answer = masters_query(f->masters, 0, command);
    assert_string_equal(answer, "OK");
    free(answer);
}

/* Creates a user, and returns the URI for its login. */
static const char *uri_as(struct fixture *f, const char *rules) {
    static char uri[64];

    rule(f, rules);
    snprintf(uri, sizeof(uri), "redis://waiter:secret@127.0.0.1:%d", masters_port(f->masters, 0));
    return uri;
}

#define RULES "reset on >secret ~* &redlock:* +@all "

/*
 * A user lacks a right from the start, is granted it, and loses it again: each time the log names
 * the missing right once.
 */
static void is_refused(struct fixture *f, const char *without, const char *with,
                       const char *refused, const char *needed) {
    const char *uri = uri_as(f, without);
    struct channel_rig *rig = rig_on(f, uri, uri);
    char line[128];

    snprintf(line, sizeof(line), "no messages: %s is refused, the user needs %s: ", refused,
             needed);
    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, refused);
    assert_why(rig, needed);
    assert_int_equal(subscribed(f), 0);
    for (size_t i = 0; i < 3; i++) {
        beat_until(rig, CHANNEL_CONNECTING);
        wait_state(rig, CHANNEL_REFUSED);
    }
    assert_int_equal(log_capture_count(&f->capture, line), 1);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 1);
    rule(f, with);
    beat_until(rig, CHANNEL_CONNECTING);
    wait_ready(rig, 1);
    assert_works(rig);
    rule(f, without);
    rig_beat(rig); /* in case the server keeps the subscription */
    wait_broken(rig, 1);
    wait_state(rig, CHANNEL_REFUSED);
    assert_int_equal(log_capture_count(&f->capture, line), 2);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 2);
    channel_want(&rig->channel, false);
    assert_int_equal(rig->channel.state, CHANNEL_OFF);
    assert_int_equal(rig->commands.disconnected, 0);
}

static void without_a_right_to_the_channel(void **state) {
    is_refused(*state, RULES "resetchannels", RULES, "SUBSCRIBE", "&redlock:*");
}

static void without_subscribe(void **state) {
    struct fixture *f = *state;
    const char *uri = uri_as(f, RULES "-subscribe");
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, "SUBSCRIBE is refused, the user needs +subscribe: ");
    rule(f, RULES);
    beat_until(rig, CHANNEL_CONNECTING);
    wait_ready(rig, 1);
    assert_int_equal(f->capture.levels[REDLOCK_LOG_WARN], 1);
}

static void without_publish(void **state) {
    is_refused(*state, RULES "-publish", RULES, "PUBLISH by a script", "+publish");
}

static void without_scripts(void **state) {
    struct fixture *f = *state;
    const char *uri = uri_as(f, RULES "-eval -evalsha");
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, "PUBLISH by a script is refused, the user needs +eval +evalsha: ");
}

/* The subscription's user may subscribe, but the user of the node's connection may not publish. */
static void without_a_right_to_publish_to_the_channel(void **state) {
    struct fixture *f = *state;
    const char *uri = uri_as(f, RULES "resetchannels");
    struct channel_rig *rig = rig_on(f, uri, masters_uri(f->masters, 0));

    wait_state(rig, CHANNEL_REFUSED);
    assert_why(rig, "PUBLISH by a script is refused, the user needs &redlock:*: ");
}

/* The rights that the log names are enough, besides those of the handshake and of scripts. */
static void the_rights_that_are_named_are_enough(void **state) {
    struct fixture *f = *state;
    const char *uri =
        uri_as(f, "reset on >secret resetchannels &redlock:* +subscribe +publish +eval +evalsha");
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_ready(rig, 1);
    probe(rig);
    assert_works(rig);
}

static void a_new_connection_asks_at_once(void **state) {
    struct fixture *f = *state;
    const char *uri = uri_as(f, RULES "-subscribe");
    struct channel_rig *rig = rig_on(f, uri, uri);

    wait_state(rig, CHANNEL_REFUSED);
    rule(f, RULES);
    kill_type(f, "normal");
    wait_ready(rig, 1);
    kill_type(f, "pubsub"); /* not a refusal */
    wait_ready(rig, 2);
}

/* ------------------------------------------------------------------------------------- memory */

/* Returns whether an attempt has ended, successfully or not. */
static bool has_tried(void *arg) {
    const struct channel_rig *rig = arg;

    return channel_is_ready(&rig->channel) || rig->channel.uplink.disconnected > 0 ||
           rig->commands.disconnected > 0;
}

/* Wants a channel that is off, and refuses memory until the attempt has ended. */
static void try_without_memory(struct channel_rig *rig, void (*take)(size_t), size_t n) {
    rig->ready = rig->broken = 0;
    rig->channel.uplink.disconnected = rig->commands.disconnected = 0;
    take(n);
    channel_want(&rig->channel, true);
    run_until(rig->fixture, has_tried, rig, "the attempt has ended");
}

static struct counting_allocator *allocator;

static void take_from_the_library(size_t n) {
    allocator->refuse_after = n;
}

static void without_memory_it_is_tried_again(void **state) {
    struct fixture *f = *state;
    struct channel_rig *rig = rig_ready(f);
    bool was_refused = true;

    allocator = &f->allocator;
    for (size_t n = 0; was_refused; n++) {
        channel_want(&rig->channel, false);
        wait_state(rig, CHANNEL_OFF);
        try_without_memory(rig, take_from_the_library, n);
        was_refused = allocator->refuse_after == 0;
        allocator->refuse_after = SIZE_MAX;
        wait_ready(rig, 1);
        assert_works(rig);
    }
}

#if HIREDIS_MAJOR >= 1

static size_t served =
    SIZE_MAX; /* number of calls that still succeed before one fails; SIZE_MAX: all */

static bool is_out(void) {
    return served != SIZE_MAX && served-- == 0;
}

static void *short_malloc(size_t size) {
    return is_out() ? NULL : malloc(size);
}

static void *short_calloc(size_t count, size_t size) {
    return is_out() ? NULL : calloc(count, size);
}

static void *short_realloc(void *memory, size_t size) {
    return is_out() ? NULL : realloc(memory, size);
}

static char *short_strdup(const char *text) {
    return is_out() ? NULL : strdup(text);
}

static void take_from_hiredis(size_t n) {
    served = n;
}

static bool has_messages_or_broken(void *arg) {
    const struct channel_rig *rig = arg;

    return rig->messages == 3 || rig->broken > 0;
}

/* Makes three messages arrive while one request for memory is refused. */
static void hear_without_memory(struct channel_rig *rig, size_t n) {
    rig->messages = rig->broken = 0;
    rig->ready = 1;
    for (size_t i = 0; i < 3; i++) {
        publish(rig, "hello", 5);
    }
    take_from_hiredis(n);
    run_until(rig->fixture, has_messages_or_broken, rig, "the messages have come, or the end has");
}

static void without_memory_hiredis_is_tried_again(void **state) {
    struct fixture *f = *state;
    hiredisAllocFuncs functions = {.mallocFn = short_malloc,
                                   .callocFn = short_calloc,
                                   .reallocFn = short_realloc,
                                   .strdupFn = short_strdup,
                                   .freeFn = free};
    struct channel_rig *rig;
    bool was_refused = true;

    hiredisSetAllocators(&functions);
    rig = rig_ready(f);
    for (size_t n = 0; was_refused; n++) {
        channel_want(&rig->channel, false);
        wait_state(rig, CHANNEL_OFF);
        try_without_memory(rig, take_from_hiredis, n);
        was_refused = served == SIZE_MAX;
        served = SIZE_MAX;
        wait_ready(rig, 1);
        assert_works(rig);
    }
    was_refused = true;
    for (size_t n = 0; was_refused; n++) {
        hear_without_memory(rig, n);
        was_refused = served == SIZE_MAX;
        served = SIZE_MAX;
        wait_ready(rig, rig->broken + 1);
        assert_works(rig);
    }
    hiredisResetAllocators();
}

#endif

/* ---------------------------------------------------------------------------------------- TLS */

#if HAS_TLS

static char folder[FOLDER_SIZE];

static int one_tls_master(void **state) {
    static const struct certificate certificate = {.file = "good", .names = "IP:127.0.0.1"};
    static char paths[3][FOLDER_SIZE + 16];
    const char *arguments[] = {"--tls-cert-file",
                               paths[0],
                               "--tls-key-file",
                               paths[1],
                               "--tls-ca-cert-file",
                               paths[2],
                               "--tls-auth-clients",
                               "no",
                               NULL};
    const struct masters_options options = {.arguments = arguments, .tls = true};
    struct authority *authority;

    if (folder_make(folder, "channel") != 0) {
        return -1;
    }
    authority = authority_create(folder, "ca");
    authority_issue(authority, &certificate);
    authority_destroy(authority);
    snprintf(paths[0], sizeof(paths[0]), "%s/good.pem", folder);
    snprintf(paths[1], sizeof(paths[1]), "%s/good.key", folder);
    snprintf(paths[2], sizeof(paths[2]), "%s/ca.pem", folder);
    return start_fixture_with(state, 1, &options);
}

static int finish_tls(void **state) {
    return finish(state) != 0 || folder_remove(folder) != 0 ? -1 : 0;
}

static void a_channel_lives_over_tls(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 1);
    static char longest[READER_TEXT_MAX];
    char path[FOLDER_SIZE + 16];
    struct channel_rig *rig;

    snprintf(path, sizeof(path), "%s/ca.pem", folder);
    options.tls_ca_file = path;
    rig = rig_create(f, &options);
    channel_want(&rig->channel, true);
    wait_ready(rig, 1);
    memset(longest, 'x', sizeof(longest));
    for (size_t i = 1; i <= 100; i++) {
        publish(rig, longest, sizeof(longest));
    }
    wait_messages(rig, 100);
    assert_memory_equal(rig->last, longest, sizeof(longest));
    kill_type(f, "pubsub");
    wait_ready(rig, 2);
    probe(rig);
    assert_works(rig);
    assert_int_equal(rig->commands.disconnected, 0);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_ONE_MASTER(it_becomes_ready),
        ON_ONE_MASTER(nobody_connects_unasked),
        ON_ONE_MASTER(messages_arrive_whole_and_in_order),
        ON_ONE_MASTER(a_read_takes_a_part_of_what_there_is),
        ON_ONE_MASTER(none_is_lost_or_doubled),
        ON_ONE_MASTER(a_message_too_long_ends_the_connection),
        ON_ONE_MASTER(connections_are_closed_on_exec),
        ON_ONE_MASTER(nothing_is_sent_any_more),
        ON_ONE_MASTER(unix_sockets_have_channels_too),
        ON_ONE_MASTER(the_login_is_the_nodes),
        ON_ONE_MASTER(probes_go_on),
        ON_TWO_MASTERS(two_servers_are_no_channel),
        ON_ONE_MASTER(silence_ends_it),
        ON_ONE_MASTER(a_late_heartbeat_judges_nothing),
        ON_ONE_MASTER(a_late_answer_ends_nothing),
        ON_ONE_MASTER(a_restarted_server_gets_a_new_name),
        ON_ONE_MASTER(either_connection_may_end),
        ON_ONE_MASTER(a_late_answer_counts_for_its_name_alone),
        ON_ONE_MASTER(a_stopped_server_is_dropped_and_comes_back),
        ON_ONE_MASTER(who_is_not_wanted_leaves),
        ON_ONE_MASTER(it_may_be_given_up_in_each_callback),
        ON_ONE_MASTER(it_may_be_wanted_anew_in_each_callback),
        ON_ONE_MASTER(it_stops_in_each_state),
        ON_ONE_MASTER(without_a_right_to_the_channel),
        ON_ONE_MASTER(without_subscribe),
        ON_ONE_MASTER(without_publish),
        ON_ONE_MASTER(without_scripts),
        ON_ONE_MASTER(without_a_right_to_publish_to_the_channel),
        ON_ONE_MASTER(the_rights_that_are_named_are_enough),
        ON_ONE_MASTER(a_new_connection_asks_at_once),
        ON_ONE_MASTER(without_memory_it_is_tried_again),
#if HIREDIS_MAJOR >= 1
        ON_ONE_MASTER(without_memory_hiredis_is_tried_again),
#endif
#if HAS_TLS
        cmocka_unit_test_setup_teardown(a_channel_lives_over_tls, one_tls_master, finish_tls),
#endif
    };

    if (HIREDIS_MAJOR < 1) {
        print_message("# hiredis before 1.0 ends the process when it has no memory: not tested\n");
    }
    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
