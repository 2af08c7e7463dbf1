/*
 * Many locks of one client, which must not harm each other, the masters, or the client's close.
 * Also the renewals of one lock when nodes are slow, away, or back, and the top-ups of many.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "watchdog.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define THREE 3
#define LOCKS 5000

static int three_masters(void **state) {
    return start_fixture(state, THREE, NULL);
}

static void begin_to_hold(struct fixture *f, redlock_client *client, unsigned first,
                          unsigned count) {
    for (unsigned i = first; i < first + count; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        request.watchdog = true;
        request.wait_ms = REDLOCK_FOREVER;
        begin_acquire(f, client, &request);
    }
}

static void hold_crowd(struct fixture *f, redlock_client *client) {
    begin_to_hold(f, client, 0, LOCKS);
    wait_all_ended(f, "all of the crowd is acquired");
}

static redlock_options options_with_queue(struct fixture *f, uint32_t max_commands) {
    redlock_options options = patient_options(f, masters_uris(f->masters), THREE);

    options.max_commands = max_commands;
    options.retry_delay_ms = options.retry_delay_max_ms = 5;
    options.close_timeout_ms = 120000;
    options.log_level = REDLOCK_LOG_WARN;
    return options;
}

/*
 * Asserts that nothing is left at the first masters except the flag that stays for a while after
 * there was a queue.
 */
static void assert_empty(struct fixture *f, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *of_queues = "EXISTS redlock:waiting redlock:queues";
        long long left = masters_query_integer(f->masters, i, of_queues);
        assert_int_equal(masters_query_integer(f->masters, i, "DBSIZE"), left);
    }
}

/* -------------------------------------------------------------------------------------- closing */

/* The queues take 16 calls at once, and each round is abandoned before its end. */
static void a_client_that_closes_leaves_nothing(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 16);
    redlock_client *client = connect_with(f, &options);

    hold_crowd(f, client);
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 0);
    assert_empty(f, THREE);
}

/* Requests are still pending, more than the queues hold. */
static void a_client_that_closes_undoes_what_is_under_way(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 64);
    redlock_client *client = connect_with(f, &options);

    begin_to_hold(f, client, 0, LOCKS);
    run_turns(f, 1);
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 0);
    assert_empty(f, THREE);
}

/* redlock_client_drain reports the keys that may be left at unreachable nodes. */
static void what_a_dead_node_keeps_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_client *client = connect_with(f, &options);

    begin_to_hold(f, client, 0, 10);
    wait_all_ended(f, "all are acquired");
    wait_all_answered(f, client);
    masters_kill(f->masters, 2);
    wait_connected(f, client, 2);
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 10);
    assert_empty(f, 2);
}

#define LONG_KEYS 100
#define LONG_KEY 2000

/*
 * An unreachable node has more pending releases than are remembered: one line reports this, until
 * the TTLs end.
 */
static void releases_without_room_are_reported_until_their_keys_are_gone(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_lock *locks[LONG_KEYS];

    options.max_bytes = 65536;
    redlock_client *client = connect_with(f, &options);
    for (size_t i = 0; i < LONG_KEYS; i++) {
        char key[LONG_KEY];
        snprintf(key, sizeof(key), "%0*zu", LONG_KEY - 1, i);
        locks[i] = hold(f, client, key, LONG_TTL_MS);
        wait_all_answered(f, client); /* a node that lags would have a full queue */
    }
    masters_kill(f->masters, 2);
    wait_connected(f, client, 2);
    for (size_t i = 0; i < LONG_KEYS; i++) {
        assert_int_equal(await(f, begin_release(f, locks[i])), REDLOCK_OK);
    }
    size_t pending = node_info(client, 2).pending_releases;
    assert_int_in_range(pending, 1, LONG_KEYS - 1);
    assert_int_equal(log_capture_count(&f->capture, "no room to remember 1 more release"), 1);
    pass_time(LONG_TTL_MS);
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 0);
}

/* ---------------------------------------------------------------------------------------- turns */

struct ticks {
    unsigned reported;
    unsigned most;
};

static void count_reported(struct loss *loss, void *arg) {
    struct ticks *ticks = arg;

    (void)loss;
    ticks->reported++;
}

static void on_tick(evutil_socket_t fd, short what, void *arg) {
    struct ticks *ticks = arg;

    (void)fd;
    (void)what;
    ticks->most = ticks->reported > ticks->most ? ticks->reported : ticks->most;
    ticks->reported = 0;
}

/*
 * The application's own events get their time between two turns. Its loop was away before, so that
 * all locks are ready when the close begins.
 */
static void a_turn_deals_with_so_many_locks(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_client *client = connect_with(f, &options);
    struct ticks ticks = {0, 0};

    for (unsigned i = 0; i < LOCKS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        struct loss *loss = watch_loss(f, &request);
        loss->then = count_reported;
        loss->then_arg = &ticks;
        begin_acquire(f, client, &request);
    }
    wait_all_ended(f, "all of the crowd is acquired");
    pass_time(2000);
    run_turns(f, 1); /* the heartbeat is late */
    struct event *tick = event_new(f->base, -1, EV_PERSIST, on_tick, &ticks);
    event_add(tick, &(struct timeval){0, 1});
    close_client(f, client);
    event_free(tick);
    assert_int_in_range(ticks.most, 1, 2200); /* two turns may come between two ticks */
}

/* ---------------------------------------------------------------------------------------- terms */

/* Each lock is requested on its own terms, many of which share an entry in the client's table. */
static void locks_may_all_differ_in_their_terms(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_client *client = connect_with(f, &options);

    for (unsigned i = 0; i < LOCKS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, LONG_TTL_MS - i);
        begin_acquire(f, client, &request);
    }
    wait_all_ended(f, "all of the crowd is acquired");
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 0);
    assert_empty(f, THREE);
}

/* ------------------------------------------------------------------------------------- renewals */

#define TTL_MS 60000
#define NODE_TIMEOUT_MS 1000

/* Each answer takes many times as long as a round of an acquisition would wait. */
static void renewals_that_are_answered_late_count(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    const char *uris[THREE];
    for (size_t i = 0; i < THREE; i++) {
        uris[i] = proxy_uri(detour.proxies[i]);
    }
    redlock_options options = patient_options(f, uris, THREE);
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    redlock_client *client = connect_with(f, &options);
    redlock_request request = request_for(KEY, TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    request.watchdog = true;
    request.wait_ms = REDLOCK_FOREVER;
    redlock_lock *lock = hold_for(f, client, &request);
    for (unsigned i = 0; i < 20; i++) {
        size_t sent = proxy_arrived(detour.proxies[0], ANY_SCRIPT);
        proxies_hold_replies(detour.proxies, 0, THREE);
        pass_time(TTL_MS / 3);
        wait_arrived(f, detour.proxies[0], ANY_SCRIPT, sent + 1);
        pass_time(10 * NODE_TIMEOUT_MS);
        run_turns(f, 3);
        assert_int_equal(loss->count, 0);
        proxies_pass_replies(detour.proxies, 0, THREE);
        wait_valid(f, lock, TTL_MS / 2);
        wait_all_answered(f, client); /* a reply that is held again and again is a stall */
    }
    assert_int_equal(loss->count, 0);
}

/* The remaining nodes are asked a few times until the loss, not ten times a second. */
static void without_a_quorum_renewals_are_few(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    hold_renewed(f, client, KEY, 10000, &loss);
    masters_kill(f->masters, 1);
    masters_kill(f->masters, 2);
    size_t before = executed(f, 0, "evalsha");
    assert_int_equal(pass_until_lost(f, client, 0, 100, loss), REDLOCK_EEXPIRED);
    assert_int_in_range(executed(f, 0, "evalsha") - before, 2, 30); /* heartbeats included */
}

#define SHARING 1000

struct renewals {
    struct fixture *f;
    size_t most; /* number of renewals at the first master */
};

static bool has_renewals(void *arg) {
    const struct renewals *renewals = arg;

    return executed(renewals->f, 0, "pexpire") >= renewals->most;
}

/*
 * Each call of RENEW executes one MGET, and one PEXPIRE for each key. Without ticks nearly all
 * locks would renew alone: a step of the clock is 1/200 of an interval.
 */
static void renewals_of_a_crowd_share_calls(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    begin_to_hold(f, client, 0, SHARING);
    wait_all_ended(f, "all of the crowd is acquired");
    size_t calls = executed(f, 0, "mget");
    size_t renewed = executed(f, 0, "pexpire");
    struct renewals renewals = {f, renewed + 3 * SHARING};

    pass_until(f, client, 0, LONG_TTL_MS / 600, has_renewals, &renewals, "all were renewed");
    calls = executed(f, 0, "mget") - calls;
    renewed = executed(f, 0, "pexpire") - renewed;
    assert_in_range(calls, renewed / 64, renewed / 24);
}

#define LOST 2000
#define LOSS_LINE ": held -> lost"

static bool are_all_lost(void *arg) {
    const struct fixture *f = arg;
    const struct loss *loss;
    size_t lost = 0;

    TAILQ_FOREACH(loss, &f->losses, link) {
        lost += loss->count > 0;
    }
    return lost == LOST;
}

/* Returns the number of lines omitted, as stated by the lines about losses. */
static unsigned long left_out(const struct log_capture *capture) {
    unsigned long sum = 0;

    for (size_t i = 0; i < capture->count && i < LOG_CAPTURE_LINES; i++) {
        const char *reported = strstr(capture->lines[i], LOSS_LINE " (");
        sum += reported != NULL ? strtoul(reported + strlen(LOSS_LINE " ("), NULL, 10) : 0;
    }
    return sum;
}

/*
 * A crowd is lost at once: the first losses have lines, and later lines state how many were
 * omitted.
 */
static void losses_of_a_crowd_do_not_flood_the_log(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_client *client = connect_with(f, &options);

    for (unsigned i = 0; i < LOST; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        watch_loss(f, &request);
        request.wait_ms = REDLOCK_FOREVER;
        begin_acquire(f, client, &request);
    }
    wait_all_ended(f, "all of the crowd is acquired");
    pass_time(LONG_TTL_MS);
    run_until(f, are_all_lost, f, "all of the crowd is lost");
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    hold_for(f, client, &request);
    pass_time(LONG_TTL_MS);
    wait_lost(f, loss);
    size_t lines = log_capture_count(&f->capture, LOSS_LINE);
    assert_int_in_range(lines, 21, 200); /* plus one for each second that the losses take */
    assert_int_equal(lines + left_out(&f->capture), LOST + 1);
}

/* The renewals of a crowd are due, and are sent in slices: losses do not wait for them. */
static void losses_come_before_renewals(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 65536);
    redlock_client *client = connect_with(f, &options);

    for (unsigned i = 0; i < LOCKS + LOST; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, i < LOCKS ? TTL_MS : TTL_MS / 5);
        request.watchdog = i < LOCKS;
        request.wait_ms = REDLOCK_FOREVER;
        if (!request.watchdog) {
            watch_loss(f, &request);
        }
        begin_acquire(f, client, &request);
    }
    wait_all_ended(f, "all of the crowd is acquired");
    stop_time();
    pass_time(TTL_MS / 2);
    run_turns(f, 3); /* the renewals take five */
    assert_true(are_all_lost(f));
    resume_time();
}

/* Otherwise the next renewal would be minutes away. */
static void a_node_that_comes_back_is_asked_at_once(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    request.watchdog = true;
    redlock_lock *lock = hold_for(f, detour.client, &request);
    wait_holders(f, KEY, THREE);
    go_away(f, &detour, 1);
    go_away(f, &detour, 2);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ENOQUORUM);
    pass_time(2000);
    run_turns(f, 3);
    uint64_t before_ms = redlock_validity_ms(lock);
    proxy_accept(detour.proxies[1]);
    wait_valid(f, lock, before_ms + 500);
}

/* -------------------------------------------------------------------------------------- top-ups */

#define LACKING 500

/* The locks that renew in many times the time that a test takes: an interval is minutes long. */
#define FEW (LACKING / 4)

static uint64_t renewed(const redlock_client *client) {
    redlock_stats stats = {.size = sizeof(stats)};

    assert_int_equal(redlock_client_stats(client, &stats), REDLOCK_OK);
    return stats.renewed;
}

struct keys {
    struct fixture *f;
    size_t master;
};

static long long keys_at(struct fixture *f, size_t master) {
    return masters_query_integer(f->masters, master, "EVAL %s 0",
                                 "return #redis.call('KEYS', 'crowd:*')");
}

static bool are_all_there(void *arg) {
    const struct keys *keys = arg;

    return keys_at(keys->f, keys->master) == LACKING;
}

struct renewal {
    const redlock_client *client;
    uint64_t wanted; /* number of renewals */
};

static bool are_renewed(void *arg) {
    const struct renewal *renewal = arg;

    return renewed(renewal->client) >= renewal->wanted;
}

/*
 * Holds the locks at all masters: a request may have found no room at one of them, and the first
 * renewal adds that one.
 */
static void hold_everywhere(struct fixture *f, redlock_client *client) {
    struct renewal renewal = {client, LACKING};

    begin_to_hold(f, client, 0, LACKING);
    wait_all_ended(f, "all of the crowd is acquired");
    wait_all_answered(f, client);
    pass_time(LONG_TTL_MS / 3);
    run_until(f, are_renewed, &renewal, "all are renewed");
    for (size_t i = 0; i < THREE; i++) {
        struct keys keys = {f, i};
        run_until(f, are_all_there, &keys, "each master has all keys");
    }
    wait_all_answered(f, client);
}

/* The renewals that find the keys missing are followed by few others. */
static void top_ups_wait_for_room(void **state) {
    struct fixture *f = *state;
    redlock_options options = options_with_queue(f, 16);
    redlock_client *client = connect_with(f, &options);
    struct keys keys = {f, 2};

    hold_everywhere(f, client);
    masters_kill(f->masters, 2);
    masters_restart(f->masters, 2);
    wait_disconnected(f, client, 2, 1);
    wait_connected(f, client, THREE);
    uint64_t before = renewed(client);
    pass_time(LONG_TTL_MS / 3);
    run_until(f, are_all_there, &keys, "the master that has restarted has all keys");
    assert_int_in_range(renewed(client) - before, LACKING, LACKING + FEW);
    assert_int_equal(node_info(client, 2).disconnected, 1);
}

/* No lock is ever renewed. */
static void top_ups_of_a_new_node_wait_for_room(void **state) {
    struct fixture *f = *state;
    const char *const *uris = masters_uris(f->masters);
    redlock_options options = options_with_queue(f, 16);
    struct keys keys = {f, 2};

    options.node_count = 1;
    redlock_client *client = connect_with(f, &options);
    for (unsigned i = 0; i < LACKING; i++) {
        char key[32];
        snprintf(key, sizeof(key), "crowd:%u", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        request.wait_ms = REDLOCK_FOREVER;
        begin_acquire(f, client, &request);
    }
    wait_all_ended(f, "all of the crowd is acquired");
    assert_int_equal(redlock_client_change_nodes(client, uris + 1, 2), REDLOCK_OK);
    run_until(f, are_all_there, &keys, "a new master has all keys");
    keys.master = 1;
    run_until(f, are_all_there, &keys, "the other new master has them, too");
    assert_int_equal(renewed(client), 0);
}

static bool is_full(void *client) {
    return node_info(client, 2).commands >= 12; /* 3/4 of the room */
}

/*
 * While a node executes no top-up, it has no room for all of the next renewals: these do not find
 * that it lacks the keys.
 */
static void top_ups_wait_through_renewals(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    const char *uris[THREE];
    struct keys keys = {f, 2};

    proxies_create(f, proxies, uris);
    redlock_options options = options_with_queue(f, 16);
    options.nodes = uris;
    redlock_client *client = connect_with(f, &options);
    hold_everywhere(f, client);
    struct renewal renewal = {client, renewed(client)};
    send_to(f, 2, 3, "FLUSHALL");
    proxy_hold_requests(proxies[2], "SET");
    for (unsigned i = 0; i < 2; i++) {
        pass_time(LONG_TTL_MS / 3);
        renewal.wanted += LACKING;
        run_until(f, are_renewed, &renewal, "all are renewed");
        run_until(f, is_full, client, "the node has no room");
    }
    assert_int_equal(keys_at(f, 2), 0);
    proxy_pass_requests(proxies[2]);
    run_until(f, are_all_there, &keys, "the node has all keys");
    assert_int_in_range(renewed(client), renewal.wanted, renewal.wanted + FEW);
    assert_int_equal(node_info(client, 2).disconnected, 0);
}

/* ------------------------------------------------------------------------------------- slowness */

/* A server that answers SETs only when the test says so. */
struct slow {
    struct peer_link *link;
    unsigned waiting;
};

static void answer_later(struct peer_link *link, const struct command *command, void *arg) {
    struct slow *slow = arg;

    if (command_is(command, "SET", NULL)) {
        slow->link = link;
        slow->waiting++;
    } else {
        peer_answer_well(link, command, NULL);
    }
}

#define CALLS 30
#define STALL_MS 20000

static bool has_all_calls(void *arg) {
    return ((const struct slow *)arg)->waiting == CALLS;
}

/* The last answer takes three times the stall timeout, but each follows the one before it soon. */
static void who_answers_slowly_is_not_stalled(void **state) {
    struct fixture *f = *state;
    struct slow slow = {NULL, 0};
    const char *uri = peer_uri(peer_create(f, answer_later, &slow));
    redlock_options options = patient_options(f, &uri, 1);
    struct call *calls[CALLS];
    char key[CALLS][16];

    options.node_timeout_ms = 10 * STALL_MS;
    options.stall_timeout_ms = STALL_MS;
    redlock_client *client = connect_with(f, &options);
    for (unsigned i = 0; i < CALLS; i++) {
        snprintf(key[i], sizeof(key[i]), "slow:%u", i);
        redlock_request request = request_for(key[i], LONG_TTL_MS);
        calls[i] = begin_acquire(f, client, &request);
    }
    run_until(f, has_all_calls, &slow, "the server has all calls");
    for (unsigned i = 0; i < CALLS; i++) {
        pass_time(STALL_MS / 10);
        run_turns(f, 3);
        peer_say(slow.link, "+OK\r\n");
        await(f, calls[i]);
        assert_ended(calls[i], REDLOCK_OK);
    }
    assert_int_equal(node_info(client, 0).disconnected, 0);
}

#define ON_THREE_MASTERS(test) cmocka_unit_test_setup_teardown(test, three_masters, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_THREE_MASTERS(a_client_that_closes_leaves_nothing),
        ON_THREE_MASTERS(a_client_that_closes_undoes_what_is_under_way),
        ON_THREE_MASTERS(what_a_dead_node_keeps_is_reported),
        ON_THREE_MASTERS(releases_without_room_are_reported_until_their_keys_are_gone),
        ON_THREE_MASTERS(a_turn_deals_with_so_many_locks),
        ON_THREE_MASTERS(locks_may_all_differ_in_their_terms),
        ON_THREE_MASTERS(renewals_that_are_answered_late_count),
        ON_THREE_MASTERS(without_a_quorum_renewals_are_few),
        ON_THREE_MASTERS(renewals_of_a_crowd_share_calls),
        ON_THREE_MASTERS(losses_of_a_crowd_do_not_flood_the_log),
        ON_THREE_MASTERS(losses_come_before_renewals),
        ON_THREE_MASTERS(a_node_that_comes_back_is_asked_at_once),
        ON_THREE_MASTERS(top_ups_wait_for_room),
        ON_THREE_MASTERS(top_ups_of_a_new_node_wait_for_room),
        ON_THREE_MASTERS(top_ups_wait_through_renewals),
        ON_NO_MASTERS(who_answers_slowly_is_not_stalled),
    };

    return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
