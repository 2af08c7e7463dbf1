/*
 * The statistics of a client: each accepted request ends in one counter, each event of a lock or a
 * node in its own, and the text for Prometheus agrees.
 */
#include "clocks.h"
#include "cycles.h"
#include "exposition.h"
#include "harness.h"
#include "master_data.h"
#include "rivals.h"
#include "wait_queue.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define TTL_MS 60000

static redlock_stats stats_of(const redlock_client *client) {
    redlock_stats stats = {.size = sizeof(stats)};

    assert_int_equal(redlock_client_stats(client, &stats), REDLOCK_OK);
    assert_int_equal(stats.size, sizeof(stats));
    return stats;
}

static redlock_node_stats node_stats(const redlock_client *client, size_t node) {
    redlock_node_stats stats = {.size = sizeof(stats)};

    assert_int_equal(redlock_client_node_stats(client, node, &stats), REDLOCK_OK);
    return stats;
}

static uint64_t ended(const redlock_stats *stats) {
    return stats->acquired + stats->failed_held + stats->failed_no_quorum + stats->failed_expired +
           stats->failed_no_memory + stats->canceled + stats->closed;
}

static uint64_t sum(const redlock_histogram *histogram) {
    uint64_t count = 0;

    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        count += histogram->buckets[i];
    }
    assert_int_equal(count, histogram->count);
    return count;
}

/* Asserts what holds of a client at any time. */
static void assert_sound(const redlock_client *client) {
    redlock_stats stats = stats_of(client);

    assert_int_equal(stats.accepted, ended(&stats) + stats.pending);
    assert_int_equal(sum(&stats.acquire) + sum(&stats.wait), stats.acquired);
    sum(&stats.renew);
    sum(&stats.release);
    for (size_t i = 0; i < FIVE; i++) {
        redlock_node_stats node = node_stats(client, i);
        assert_true(sum(&node.round_trip) <= node.replies);
        assert_true(node.releases_retried <= node.releases_deferred);
        assert_int_equal(node.pending_releases, node_info(client, i).pending_releases);
        assert_int_equal(node.disconnected, node_info(client, i).disconnected);
        assert_string_equal(node.node, node_info(client, i).node);
    }
}

/* ---------------------------------------------------------------------------------- outcomes */

static void cycles_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct cycles cycles = {0};
    redlock_stats stats;

    cycles_run(&cycles, f, client, 16, 500);
    wait_all_answered(f, client);
    stats = stats_of(client);
    assert_int_equal(stats.accepted, 500);
    assert_int_equal(stats.acquired, 500);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(stats.tries, 500);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.released, 500);
    assert_int_equal(sum(&stats.acquire), 500);
    assert_int_equal(sum(&stats.release), 500);
    assert_int_equal(sum(&stats.wait) + sum(&stats.renew), 0);
    assert_true(redlock_histogram_quantile_ns(&stats.acquire, 0.5) > 0);
    for (size_t i = 0; i < FIVE; i++) {
        redlock_node_stats node = node_stats(client, i);
        assert_int_equal(node.votes[REDLOCK_VOTE_GRANTED], 1000);
        assert_int_equal(node.connections, 1);
        assert_true(node.connected && node.trusted);
        assert_true(node.replies >= 500);
        assert_true(node.bytes_sent > 500 * strlen("cycle:0"));
        assert_true(node.bytes_received >= 500 * strlen("+OK\r\n"));
        assert_true(node.round_trip.count > 0);
    }
    assert_sound(client);
}

/* Checks the counters in the callback of the request's end: the request is no longer pending. */
static void look_inside(struct call *call, void *arg) {
    redlock_client *client = arg;
    redlock_stats stats = stats_of(client);

    assert_int_equal(stats.pending, 0);
    assert_int_equal(stats.acquired, call->status == REDLOCK_OK);
    assert_int_equal(stats.held, call->status == REDLOCK_OK);
    assert_sound(client);
}

static void a_callback_finds_its_request_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    assert_int_equal(stats_of(client).pending, 1);
    call->then = look_inside;
    call->then_arg = client;
    assert_int_equal(await(f, call), REDLOCK_OK);
    call = begin_release(f, call->lock);
    assert_int_equal(stats_of(client).held, 0);
    assert_int_equal(await(f, call), REDLOCK_OK);
}

/* Ends requests in each way that is possible with healthy masters. */
static void each_end_has_its_counter(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_stats stats;
    struct call *call;

    assert_int_equal(redlock_acquire(client, NULL, NULL, NULL, NULL), REDLOCK_EINVAL);
    request.ttl_ms = 0;
    assert_int_equal(redlock_acquire(client, &request, (redlock_cb *)abort, NULL, NULL),
                     REDLOCK_EINVAL);
    request.ttl_ms = LONG_TTL_MS;
    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    assert_ended(acquire(f, client, &request), REDLOCK_EHELD);
    call = begin_acquire(f, client, &request);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    request.retries = 1;
    assert_ended(acquire(f, client, &request), REDLOCK_EHELD);
    stats = stats_of(client);
    assert_int_equal(stats.refused, 2);
    assert_int_equal(stats.accepted, 3);
    assert_int_equal(stats.failed_held, 2);
    assert_int_equal(stats.canceled, 1);
    assert_int_equal(stats.tries, 4);
    assert_int_equal(node_stats(client, 0).votes[REDLOCK_VOTE_WRONG_TYPE], 0);
    assert_true(node_stats(client, 0).votes[REDLOCK_VOTE_DENIED] >= 3);
    assert_sound(client);
}

static void record_end(struct call *call, void *arg) {
    redlock_stats *stats = arg;

    *stats = stats_of(((struct member *)TAILQ_FIRST(&call->fixture->members))->client);
}

static void a_closing_client_counts_on(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_stats stats = {0};
    struct call *call;

    hold(f, client, "other", LONG_TTL_MS);
    call = begin_acquire(f, client, &request);
    call->then = record_end;
    call->then_arg = &stats;
    close_client(f, client);
    assert_int_equal(call->status, REDLOCK_ECLOSED);
    assert_int_equal(stats.closed, 1);
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.accepted, ended(&stats) + stats.pending);
}

/* Kills three masters, and waits until the client knows. */
static void kill_three(struct fixture *f, redlock_client *client) {
    kill_masters(f, 0, 3);
    for (size_t i = 0; i < 3; i++) {
        wait_disconnected(f, client, i, 1);
    }
}

static void a_request_without_a_quorum_is_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    uint64_t unreached = 0;

    kill_three(f, client);
    assert_ended(acquire(f, client, &request), REDLOCK_ENOQUORUM);
    assert_int_equal(stats_of(client).failed_no_quorum, 1);
    for (size_t i = 0; i < 3; i++) {
        redlock_node_stats node = node_stats(client, i);
        assert_true(node.disconnected >= 1 && !node.connected);
        unreached += node.votes[REDLOCK_VOTE_UNREACHABLE];
    }
    assert_true(unreached >= 3);
    assert_sound(client);
    masters_restart(f->masters, 0);
    wait_connected(f, client, 3);
    assert_int_equal(node_stats(client, 0).connections, 2);
}

/* ------------------------------------------------------------------------------- held locks */

static bool is_renewed(void *arg) {
    return stats_of(arg).renewed == 1;
}

static void renewals_and_losses_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);
    redlock_stats stats;

    pass_time(TTL_MS / 3);
    run_until(f, is_renewed, client, "the lock is renewed");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_all_answered(f, client);
    stats = stats_of(client);
    assert_int_equal(stats.renewed, 1);
    assert_int_equal(stats.extended, 1);
    assert_int_equal(sum(&stats.renew), 2);
    assert_int_equal(stats.held, 1);
    send_to(f, 0, 3, "FLUSHALL");
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    stats = stats_of(client);
    assert_int_equal(stats.extensions_failed, 1);
    assert_int_equal(stats.lost_gone, 1);
    assert_int_equal(stats.held, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    stats = stats_of(client);
    assert_int_equal(stats.released_gone, 1);
    assert_int_equal(stats.renewed, 1);
    assert_int_equal(stats.renewals_failed, 0);
    assert_int_equal(stats.held, 0);
    assert_true(node_stats(client, 0).votes[REDLOCK_VOTE_MISSING] >= 1);
    assert_sound(client);
}

/* An extension that comes during a renewal follows it: the renewal counts. */
static void a_renewal_counts_beside_an_extension(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);
    struct call *call;
    redlock_stats stats;

    freeze_masters(f, 0, FIVE);
    pass_time(TTL_MS / 3);
    run_turns(f, 3); /* the renewal is under way */
    call = begin_extend(f, lock, 2 * TTL_MS);
    assert_int_equal(call->ended, 0);
    thaw_masters(f, 0, FIVE);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_true(redlock_validity_ms(lock) > TTL_MS);
    stats = stats_of(client);
    assert_int_equal(stats.renewed, 1);
    assert_int_equal(stats.renewals_failed, 0);
    assert_int_equal(stats.extended, 1);
    assert_int_equal(sum(&stats.renew), 2);
    assert_sound(client);
}

static void a_failed_renewal_is_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    kill_three(f, client);
    pass_time(TTL_MS / 3);
    run_turns(f, 3);
    assert_int_equal(stats_of(client).renewals_failed, 1);
    pass_time(TTL_MS);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_int_equal(stats_of(client).lost_expired, 1);
    let_go(f, lock);
    assert_int_equal(stats_of(client).released_no_quorum, 1);
    assert_sound(client);
}

/* A silent node's vote is TIMEOUT; its later grant is LATE. */
static void late_votes_and_pending_releases_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    freeze_masters(f, 0, 3);
    call = begin_acquire(f, client, &request);
    wait_answered(f, client, 3);
    wait_answered(f, client, 4);
    pass_time(PATIENT_MS);
    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    assert_int_equal(node_stats(client, 0).votes[REDLOCK_VOTE_TIMEOUT], 1);
    assert_int_equal(node_stats(client, 3).votes[REDLOCK_VOTE_TIMEOUT], 0);
    thaw_masters(f, 0, 3);
    wait_connected(f, client, FIVE);
    wait_all_answered(f, client);
    assert_sound(client);
}

/* --------------------------------------------------------------------------------- in the queue */

/* A client waits for a lock that another one holds, and gets it. */
static void pass_on(struct fixture *f, redlock_client *from, redlock_client *to) {
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for(f, from, &request);
    /* A master that had the key later would give it to the waiter, in place of an entry. */
    wait_holders(f, KEY, FIVE);
    struct call *call = begin_acquire(f, to, &request);

    wait_listening(f, KEY, 0, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* If a waiter asks just then, the answers may come before the messages, which do not count. */
static void pushes_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *one = connect_client(f);
    redlock_client *two = connect_client(f);

    do {
        pass_on(f, one, two);
    } while (stats_of(two).pushes == 0);
    assert_int_equal(stats_of(one).pushes, 0);
}

static void waits_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *one = connect_client(f);
    redlock_client *two = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for(f, one, &request);
    wait_holders(f, KEY, FIVE);
    struct call *first = begin_acquire(f, one, &request);
    struct call *second = begin_acquire(f, two, &request);
    redlock_stats stats;

    wait_listening(f, KEY, 0, 1); /* the first one waits inside its client */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, first);
    take_turn(f, second);
    wait_queue_empty(f, KEY);
    stats = stats_of(one);
    assert_int_equal(stats.released, 2);
    assert_int_equal(sum(&stats.acquire), 1);
    assert_int_equal(sum(&stats.wait), 1);
    stats = stats_of(two);
    assert_int_equal(sum(&stats.wait), 1);
    assert_sound(one);
    assert_sound(two);
}

/* The end of a release, as seen by its callback. */
struct outcome {
    const redlock_client *client;
    uint64_t released; /* the counter */
    bool is_over;
};

static void on_reported(redlock_lock *lock, redlock_status status, void *arg) {
    struct outcome *outcome = arg;

    (void)lock;
    assert_int_equal(status, REDLOCK_OK);
    outcome->released = stats_of(outcome->client).released;
    outcome->is_over = true;
}

static bool is_reported(void *arg) {
    const struct outcome *outcome = arg;

    return outcome->is_over;
}

/* Releases, and returns the counter of releases in the callback. */
static uint64_t released_when_notified(struct fixture *f, const redlock_client *client,
                                       redlock_lock *lock) {
    struct outcome outcome = {.client = client};

    assert_int_equal(redlock_release(lock, on_reported, &outcome), REDLOCK_OK);
    run_until(f, is_reported, &outcome, "the release is reported");
    return outcome.released;
}

/* A release is counted before it is reported, and once, whether the lock is handed over or not. */
static void releases_are_counted_when_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    struct call *first = begin_acquire(f, client, &request);
    struct call *next = begin_acquire(f, client, &request);

    assert_int_equal(await(f, first), REDLOCK_OK);
    assert_int_equal(released_when_notified(f, client, first->lock), 1);
    assert_int_equal(await(f, next), REDLOCK_OK);
    assert_int_equal(stats_of(client).handovers, 1);
    assert_int_equal(stats_of(client).released, 1);
    assert_int_equal(released_when_notified(f, client, next->lock), 2);
    wait_all_answered(f, client);
    assert_int_equal(stats_of(client).released, 2);
    assert_sound(client);
}

#define CLIENTS 4
#define TURNS 20

/* Several clients contend, with queues and with retries: all counters add up at the end. */
static void a_load_adds_up(void **state) {
    struct fixture *f = *state;
    struct rivals_options options = {.request = waiting_request(KEY), .turns = TURNS};
    struct rivals *rivals = rivals_create(f, &options);
    redlock_client *clients[CLIENTS];
    uint64_t acquired = 0, waits = 0, handovers = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(f);
        rivals_begin(rivals, clients[i]);
        rivals_begin(rivals, clients[i]);
    }
    wait_rivals(f, rivals);
    for (size_t i = 0; i < CLIENTS; i++) {
        redlock_stats stats = stats_of(clients[i]);
        wait_all_answered(f, clients[i]);
        assert_sound(clients[i]);
        assert_int_equal(stats.pending, 0);
        assert_int_equal(stats.held, 0);
        assert_int_equal(stats.released, stats.acquired);
        acquired += stats.acquired;
        waits += stats.wait.count;
        handovers += stats.handovers;
    }
    assert_int_equal(acquired, 2 * CLIENTS * TURNS);
    assert_true(waits > 0 && handovers > 0);
}

/* ------------------------------------------------------------------------------------- structs */

static void structs_of_other_sizes_are_filled_in(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct {
        redlock_stats stats;
        uint64_t beyond;
    } newer = {.stats.size = sizeof(newer), .beyond = 7};
    struct {
        size_t size;
        uint64_t refused, accepted, pending;
    } older = {.size = offsetof(redlock_stats, pending), .pending = 7};
    size_t calls;

    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    calls = f->allocator.calls;
    assert_int_equal(redlock_client_stats(client, &newer.stats), REDLOCK_OK);
    assert_int_equal(newer.stats.acquired, 1);
    assert_int_equal(newer.beyond, 0);
    assert_int_equal(newer.stats.size, sizeof(newer));
    assert_int_equal(redlock_client_stats(client, (redlock_stats *)(void *)&older), REDLOCK_OK);
    assert_int_equal(older.accepted, 1);
    assert_int_equal(older.pending, 7);
    assert_int_equal(f->allocator.calls, calls);
}

static void wrong_arguments_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_stats stats = {.size = sizeof(stats)};
    redlock_node_stats node = {.size = sizeof(node)};

    assert_int_equal(redlock_client_stats(NULL, &stats), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_stats(client, NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_node_stats(NULL, 0, &node), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_node_stats(client, 0, NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_node_stats(client, FIVE, &node), REDLOCK_EINVAL);
    stats.size = sizeof(size_t) - 1;
    assert_int_equal(redlock_client_stats(client, &stats), REDLOCK_EINVAL);
    assert_int_equal(redlock_stats_write(NULL, exposition_add, NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_stats_write(client, NULL, NULL), REDLOCK_EINVAL);
}

/* ---------------------------------------------------------------------------------------- text */

static void the_text_is_sound(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    static struct exposition text;
    struct cycles cycles = {0};
    size_t calls;

    cycles_run(&cycles, f, client, 4, 50);
    wait_all_answered(f, client);
    at_finish(f, exposition_finish, &text);
    calls = f->allocator.calls;
    assert_int_equal(redlock_stats_write(client, exposition_add, &text), REDLOCK_OK);
    assert_int_equal(f->allocator.calls, calls);
    exposition_check(&text);
    assert_true(exposition_value(&text, "redlock_requests_accepted_total") == 50);
    assert_true(exposition_value(&text, "redlock_requests_total{outcome=\"acquired\"}") == 50);
    assert_true(exposition_value(&text, "redlock_acquire_seconds_count") == 50);
    assert_true(exposition_value(&text, "redlock_release_seconds_bucket{le=\"+Inf\"}") == 50);
    for (size_t i = 0; i < FIVE; i++) {
        char series[200];
        snprintf(series, sizeof(series), "redlock_node_votes_total{node=\"%s\",vote=\"granted\"}",
                 node_info(client, i).node);
        assert_true(exposition_value(&text, series) == 100);
    }
}

/*
 * Nodes that differ in only one part of their URI have separate series; odd bytes of a path break
 * nothing.
 */
static void names_of_nodes_are_sound(void **state) {
    static const char *const names[] = {
        "127.0.0.1:1",     "127.0.0.1:1/1",        "[::1]:1/1",
        "/no/a%0Ab%22%5C", "/no/a%0Ab%22%5C?db=1", "/no/a%0Ab%22%5C%3Fdb=1"};
    static const char *const uris[] = {"redis://127.0.0.1:1/0",
                                       "redis://:secret@127.0.0.1:1/1",
                                       "redis://[::1]:1/1",
                                       "unix:///no/a%0Ab%22%5C",
                                       "unix://u:secret@/no/a%0Ab%22%5C?db=1",
                                       "unix:///no/a%0Ab%22%5C%3Fdb=1"};
    struct fixture *f = *state;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_client *client;
    static struct exposition text;

    options.nodes = uris;
    options.node_count = sizeof(uris) / sizeof(uris[0]);
    client = create_client(f, &options);
    at_finish(f, exposition_finish, &text);
    assert_int_equal(redlock_stats_write(client, exposition_add, &text), REDLOCK_OK);
    exposition_check(&text);
    assert_null(strstr(text.bytes, "secret"));
    for (size_t i = 0; i < options.node_count; i++) {
        char series[200];

        assert_string_equal(node_info(client, i).node, names[i]);
        snprintf(series, sizeof(series), "redlock_node_connected{node=\"%s\"}", names[i]);
        assert_true(exposition_value(&text, series) == 0);
    }
}

/* Runs Prometheus' own checker, if the machine has it. */
static void promtool_agrees(void **state) {
    struct fixture *f = *state;
    redlock_client *client;
    static struct exposition text;

    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        print_message("# promtool is not installed\n");
        return;
    }
    client = connect_client(f);
    at_finish(f, exposition_finish, &text);
    assert_int_equal(redlock_stats_write(client, exposition_add, &text), REDLOCK_OK);
    FILE *tool = popen("promtool check metrics", "w");
    assert_non_null(tool);
    assert_int_equal(fwrite(text.bytes, 1, text.length, tool), text.length);
    assert_int_equal(pclose(tool), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(cycles_are_counted),
        ON_FIVE_MASTERS(a_callback_finds_its_request_counted),
        ON_FIVE_MASTERS(each_end_has_its_counter),
        ON_FIVE_MASTERS(a_closing_client_counts_on),
        ON_FIVE_MASTERS(a_request_without_a_quorum_is_counted),
        ON_FIVE_MASTERS(renewals_and_losses_are_counted),
        ON_FIVE_MASTERS(a_renewal_counts_beside_an_extension),
        ON_FIVE_MASTERS(a_failed_renewal_is_counted),
        ON_FIVE_MASTERS(late_votes_and_pending_releases_are_counted),
        ON_FIVE_MASTERS(waits_are_counted),
        ON_FIVE_MASTERS(pushes_are_counted),
        ON_FIVE_MASTERS(releases_are_counted_when_reported),
        ON_FIVE_MASTERS(a_load_adds_up),
        ON_FIVE_MASTERS(structs_of_other_sizes_are_filled_in),
        ON_FIVE_MASTERS(wrong_arguments_are_refused),
        ON_FIVE_MASTERS(the_text_is_sound),
        ON_FIVE_MASTERS(names_of_nodes_are_sound),
        ON_FIVE_MASTERS(promtool_agrees),
    };

    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
