/* The texts of scripts: a server gets those that it lacks, once, and no others. */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"
#include "wire/script.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY "orders:42"
#define FIVE 5

/* Bytes in which a client connects to a server that has the scripts, and queues there. */
#define WITHOUT_TEXTS 1500

/* With a few polls more; the shortest text that would be sent is longer than the difference. */
#define WITH_POLLS 2500

/* A little less than the text of QUEUE, and more than that of LEAVE with a connection's bytes. */
#define QUEUE_TEXT 20000

static uint64_t bytes_sent_to(const redlock_client *client, size_t node) {
    redlock_node_stats stats = {.size = sizeof(stats)};

    assert_int_equal(redlock_client_node_stats(client, node, &stats), REDLOCK_OK);
    return stats.bytes_sent;
}

static uint64_t bytes_sent(const redlock_client *client) {
    return bytes_sent_to(client, 0);
}

/*
 * Returns the bytes sent to the node that was asked least often: all nodes are asked again when one
 * has begun to listen, and sometimes several begin at once.
 */
static uint64_t least_bytes_sent(const redlock_client *client) {
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < FIVE; i++) {
        uint64_t bytes = bytes_sent_to(client, i);
        least = bytes < least ? bytes : least;
    }
    return least;
}

/* Returns options with guards, of nodes that count from the first heartbeat on. */
static redlock_options guarded(struct fixture *f) {
    redlock_options options = patient_options(f, durable_uris(f), FIVE);
    options.guards = REDLOCK_GUARDS_ON;
    return options;
}

static redlock_client *connect_guarded(struct fixture *f) {
    redlock_options options = guarded(f);
    return connect_with(f, &options);
}

static void a_second_client_sends_no_text(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_client *second;
    struct call *calls[2];
    redlock_lock *lock;

    lock = hold(f, connect_guarded(f), KEY, LONG_TTL_MS);
    calls[0] = begin_acquire(f, connect_guarded(f), &request);
    wait_listening(f, KEY, 0, 1);
    second = connect_guarded(f);
    calls[1] = begin_acquire(f, second, &request);
    wait_listening(f, KEY, 0, 2);
    assert_int_in_range(least_bytes_sent(second), 1, WITHOUT_TEXTS);
    take_turns(f, lock, calls, 2);
}

/* A request may be made before the client is connected: it waits until the scripts are found. */
static void requests_at_once_need_no_text(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_guarded(f), KEY, LONG_TTL_MS);
    struct call *calls[2];
    redlock_client *second;

    calls[0] = begin_acquire(f, connect_guarded(f), &request);
    wait_listening(f, KEY, 0, 1);
    second = create_client(f, &options);
    calls[1] = begin_acquire(f, second, &request);
    wait_listening(f, KEY, 0, 2);
    assert_int_in_range(bytes_sent(second), 1, WITH_POLLS);
    take_turns(f, lock, calls, 2);
}

/* Ends the connections to the first masters. Returns how often the client has lost the first. */
static uint64_t cut(struct fixture *f, const redlock_client *client, size_t masters) {
    uint64_t times = node_info(client, 0).disconnected + 1;

    for (size_t i = 0; i < masters; i++) {
        free(masters_query(f->masters, i, "CLIENT KILL TYPE normal SKIPME yes"));
    }
    return times;
}

/* Waits until the client has lost the first master so often, and all have answered since. */
static void wait_reconnected(struct fixture *f, redlock_client *client, uint64_t times) {
    wait_disconnected(f, client, 0, times);
    wait_connected(f, client, FIVE);
    wait_all_answered(f, client);
}

static void reconnect(struct fixture *f, redlock_client *client) {
    wait_reconnected(f, client, cut(f, client, FIVE));
}

/* A lock, and a request of the same client that waits for it. */
struct pair {
    redlock_lock *lock;
    struct call *call;
};

static struct pair hold_and_wait(struct fixture *f, redlock_client *client) {
    redlock_request request = waiting_request(KEY);
    struct pair pair = {.lock = hold(f, client, KEY, LONG_TTL_MS)};

    pair.call = begin_acquire(f, client, &request);
    wait_listening(f, KEY, 0, 1);
    return pair;
}

static void let_both_go(struct fixture *f, const struct pair *pair) {
    wait_listening(f, KEY, 0, 1);
    assert_int_equal(let_go(f, pair->lock), REDLOCK_OK);
    take_turn(f, pair->call);
}

/* The client that comes back alone loads the scripts; who comes later finds them there. */
static void what_a_restart_forgot_is_sent_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_guarded(f);
    struct pair pair = hold_and_wait(f, client);
    uint64_t before = bytes_sent(client);

    send_to(f, 0, FIVE, "SCRIPT FLUSH");
    reconnect(f, client);
    wait_listening(f, KEY, 0, 1);
    assert_true(bytes_sent(client) - before > QUEUE_TEXT);
    before = bytes_sent(client);
    reconnect(f, client);
    wait_listening(f, KEY, 0, 1);
    assert_int_in_range(bytes_sent(client) - before, 1, QUEUE_TEXT); /* one may leave the queue */
    let_both_go(f, &pair);
}

static void load_scripts(struct fixture *f, size_t master) {
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        free(masters_query(f->masters, master, "SCRIPT LOAD %s", script_text((enum script)i)));
    }
}

static bool has_missed_script(void *arg) {
    return info_contains(arg, 0, "errorstats", "errorstat_NOSCRIPT:");
}

/*
 * After a restart each of many clients finds the scripts missing. One whose pause is not over when
 * another one has loaded them sends no text. The client's loop does not run while scripts are
 * loaded here, and its pause cannot end in the turn in which it begins.
 */
static void what_another_client_loads_is_not_sent(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_guarded(f);
    struct pair pair = hold_and_wait(f, client);
    uint64_t before = bytes_sent(client);
    uint64_t times = cut(f, client, 1);

    send_to(f, 0, 1, "SCRIPT FLUSH");
    send_to(f, 0, 1, "CONFIG RESETSTAT");
    run_until(f, has_missed_script, f, "the client has looked for the scripts");
    load_scripts(f, 0);
    wait_reconnected(f, client, times);
    wait_listening(f, KEY, 0, 1);
    assert_int_in_range(bytes_sent(client) - before, 1, WITH_POLLS);
    let_both_go(f, &pair);
}

/* Longer than the delay before a new connection, and shorter than nearly all pauses. */
#define DELAY_MS 50

static bool has_lost_all(void *arg) {
    for (size_t i = 0; i < FIVE; i++) {
        if (node_info(arg, i).disconnected == 0) {
            return false;
        }
    }
    return true;
}

static bool has_quorum(void *arg) {
    size_t connected = 0;

    for (size_t i = 0; i < FIVE; i++) {
        connected += node_info(arg, i).connected;
    }
    return connected > FIVE / 2;
}

/* A client that could not renew its locks meanwhile does not pause: no time passes here for that.
 */
static void without_a_quorum_scripts_are_loaded_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f); /* without guards: they compare clocks */

    cut(f, client, FIVE);
    send_to(f, 0, FIVE, "SCRIPT FLUSH");
    stop_time();
    run_until(f, has_lost_all, client, "the client has lost all masters");
    pass_time(DELAY_MS);
    run_until(f, has_quorum, client, "a quorum is connected");
    resume_time();
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
}

/* Only scripts of kinds of locks that the client has not used go with their first call. */
static void a_kind_used_before_is_asked_for(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_guarded(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    uint64_t before;

    request.permits = 3;
    assert_int_equal(let_go(f, hold_for(f, client, &request)), REDLOCK_OK);
    before = bytes_sent(client);
    reconnect(f, client);
    assert_int_equal(let_go(f, hold_for(f, client, &request)), REDLOCK_OK);
    assert_int_in_range(bytes_sent(client) - before, 1, WITH_POLLS);
}

/*
 * Each node is durable, so that its votes count from the first heartbeat on, which it is sent again
 * with the text. Only a node that connects after the quorum is sent the request before that.
 */
static void a_first_request_counts_where_no_script_is_known(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = acquire(f, create_client(f, &options), &request);

    assert_ended(call, REDLOCK_OK);
    assert_int_in_range(votes(call, REDLOCK_VOTE_GRANTED), 3, FIVE);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_second_client_sends_no_text),
        ON_FIVE_MASTERS(requests_at_once_need_no_text),
        ON_FIVE_MASTERS(what_a_restart_forgot_is_sent_once),
        ON_FIVE_MASTERS(what_another_client_loads_is_not_sent),
        ON_FIVE_MASTERS(without_a_quorum_scripts_are_loaded_at_once),
        ON_FIVE_MASTERS(a_kind_used_before_is_asked_for),
        ON_FIVE_MASTERS(a_first_request_counts_where_no_script_is_known),
    };

    return cmocka_run_group_tests_name("scripts", tests, NULL, NULL);
}
