/*
 * Nodes that die or hang: the work that a quorum of the others still does, and the explanation when
 * there is no quorum.
 */
#include "clocks.h"
#include "cycles.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* Returns options under which waiting for any node's timeout would fail the test. */
static redlock_options endless_options(struct fixture *f, const char *const *nodes, size_t count) {
    redlock_options options = patient_options(f, nodes, count);

    options.node_timeout_ms = 3600000;
    options.stall_timeout_ms = 3600000;
    return options;
}

/* -------------------------------------------------------------------------------- killed nodes */

static void two_killed_of_five_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    wait_connected(f, client, FIVE);
    kill_masters(f, 0, 2);
    for (size_t i = cycles_here(50); i > 0; i--) {
        call = acquire(f, client, &request);
        assert_ended(call, REDLOCK_OK);
        assert_int_equal(votes(call, REDLOCK_VOTE_GRANTED), 3);
        assert_int_equal(extend(f, call->lock, LONG_TTL_MS), REDLOCK_OK);
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    }
    wait_released(f, KEY);
}

static void nodes_that_were_never_there_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client;
    redlock_lock *lock;

    kill_masters(f, 3, 5);
    client = create_client(f, &options);
    lock = hold(f, client, KEY, LONG_TTL_MS); /* at once, while the client still connects */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_connected(f, client, 3);
    wait_released(f, KEY);
}

static void three_killed_of_five_is_no_quorum_at_once(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    wait_connected(f, client, FIVE);
    kill_masters(f, 0, 3);
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "3 of 5 nodes");
    assert_explained(call, masters_address(f->masters, 1));
    wait_released(f, KEY);

    for (size_t i = 0; i < 3; i++) {
        wait_disconnected(f, client, i, 2);
    }
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_int_equal(votes(call, REDLOCK_VOTE_UNREACHABLE) + votes(call, REDLOCK_VOTE_BROKEN), 3);
    assert_explained(call, "refused");
    wait_released(f, KEY);
}

/* Asserts that a quorum is one of all configured nodes, not of the reachable ones. */
static void assert_quorum_of(struct fixture *f, size_t nodes, size_t killed) {
    redlock_options options = endless_options(f, masters_uris(f->masters), nodes);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    bool possible = nodes - killed >= nodes / 2 + 1;
    struct call *call = acquire(f, client, &request);

    assert_ended(call, possible ? REDLOCK_OK : REDLOCK_ENOQUORUM);
    if (possible) {
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    }
    wait_released(f, KEY);
    close_client(f, client);
}

static int nine_masters(void **state) {
    return start_fixture(state, 9, NULL);
}

static void a_quorum_is_more_than_half_of_the_configured_nodes(void **state) {
    struct fixture *f = *state;

    for (size_t killed = 0; killed <= 9; killed++) {
        if (killed > 0) {
            masters_kill(f->masters, killed - 1);
        }
        for (size_t nodes = killed > 0 ? killed : 1; nodes <= 9; nodes++) {
            assert_quorum_of(f, nodes, killed);
        }
    }
}

static void a_release_with_all_nodes_down_ends(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    redlock_lock *lock;
    struct call *release;

    wait_connected(f, client, FIVE);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    kill_masters(f, 0, 5);
    release = begin_release(f, lock);
    await(f, release);
    assert_ended(release, REDLOCK_ENOQUORUM);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_ENOQUORUM);
}

static void nodes_that_come_back_serve_again(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    kill_masters(f, 0, 3);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_ENOQUORUM);
    request.wait_ms = REDLOCK_FOREVER;
    call = begin_acquire(f, client, &request);
    wait_disconnected(f, client, 0, 3);
    assert_int_equal(call->ended, 0);
    masters_restart(f->masters, 1);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* -------------------------------------------------------------------------------- stopped nodes */

struct stall {
    struct cycles cycles;
    redlock_options options;
    size_t most_pending;
    size_t most_bytes;
};

static void look_at_stalled_node(struct cycles *cycles) {
    struct stall *stall = (struct stall *)cycles;
    redlock_node_info info = node_info(cycles->client, 2);

    assert_true(info.commands <= stall->options.max_commands + OWN_COMMANDS);
    assert_true(info.bytes <= stall->options.max_bytes);
    stall->most_bytes = info.bytes > stall->most_bytes ? info.bytes : stall->most_bytes;
    if (info.pending_releases > stall->most_pending) {
        stall->most_pending = info.pending_releases;
    }
}

/* The stall timeout, not below the node timeout. */
#define STALL_MS PATIENT_MS

static struct stall *new_stall(struct fixture *f) {
    struct stall *stall = calloc(1, sizeof(*stall));

    assert_non_null(stall);
    at_finish(f, free, stall);
    stall->cycles.step = look_at_stalled_node;
    stall->options = patient_options(f, masters_uris(f->masters), FIVE);
    stall->options.log_level = REDLOCK_LOG_INFO;
    stall->options.stall_timeout_ms = STALL_MS;
    stall->options.max_commands = 256;
    stall->options.max_bytes = 1 << 20;
    return stall;
}

/* A number of cycles, 1/2 of which fill the queue, with calls of 32 releases each. */
#define STALL_CYCLES_LEAST ((size_t)20000)

/* Number of locks in flight at a time, which may share a call; the maximum memory of one. */
#define LOCKS_OF_CALL 32
#define MEMORY_OF_LOCK 1024

/*
 * Far more cycles than the bounds allow to wait: the pending releases of a hung node must not pile
 * up.
 */
static void a_stopped_node_costs_bounded_memory(void **state) {
    struct fixture *f = *state;
    struct stall *stall = new_stall(f);
    redlock_client *client = create_client(f, &stall->options);
    size_t count = cycles_here(100000);
    size_t before, most; /* by the capacity of the queue: how many locks share a call varies */

    count = count > STALL_CYCLES_LEAST ? count : STALL_CYCLES_LEAST;
    wait_connected(f, client, FIVE);
    cycles_run(&stall->cycles, f, client, 32, 1000);
    wait_all_answered(f, client); /* with two full queues besides there would be no quorum */
    before = counting_allocator_mark(&f->allocator);
    most = before + stall->options.max_commands * LOCKS_OF_CALL * MEMORY_OF_LOCK;
    freeze(f, 2);
    cycles_run(&stall->cycles, f, client, LOCKS_OF_CALL, count / 2);
    for (unsigned i = 1; i <= 4; i++) {
        pass_until_disconnected(f, client, 2, STALL_MS, i);
        cycles_run(&stall->cycles, f, client, LOCKS_OF_CALL, count / 8);
    }
    wait_logged(f, "stall");
    assert_true(stall->most_pending <= 2 * stall->options.max_commands);
    assert_int_in_range(counting_allocator_mark(&f->allocator), before, most);

    thaw(f, 2);
    wait_connected(f, client, FIVE);
    wait_releases_done(f, client, 2);
    cycles_run(&stall->cycles, f, client, 32, 1000);
}

static void a_stopped_node_delays_no_decision(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);

    wait_connected(f, client, FIVE);
    freeze_masters(f, 0, 2);
    for (size_t i = cycles_here(50); i > 0; i--) {
        redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

        assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    assert_true(node_info(client, 0).connected);
    for (size_t i = 0; i < 2; i++) {
        thaw(f, i);
        wait_answered(f, client, i);
    }
    wait_released(f, KEY);
}

/* The votes of the hung nodes could not change the denial. */
static void a_stopped_node_delays_no_refusal(void **state) {
    struct fixture *f = *state;
    redlock_options options = endless_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client = create_client(f, &options);
    redlock_lock *lock;

    wait_connected(f, client, FIVE);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, 5);
    freeze(f, 0);
    rival_takes(f, 1, 4, KEY, LONG_TTL_MS);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    kill_masters(f, 1, 4);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_ENOQUORUM);
    assert_true(node_info(client, 0).connected);
    thaw(f, 0);
    wait_answered(f, client, 0);
    wait_released(f, KEY);
}

/* A command beyond a bound is not sent, and the bound is named. */
static void a_full_queue_is_named(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_client *client;
    struct call *call;

    options.max_commands = 16;
    client = connect_with(f, &options);
    freeze(f, 0);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
        assert_int_in_range(node_info(client, 0).commands, 1, 16 + OWN_COMMANDS);
    }
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(call->opinions[0].vote, REDLOCK_VOTE_UNREACHABLE);
    assert_explained(call, "max_commands");
    assert_true(node_info(client, 0).connected);
    thaw(f, 0);
    wait_answered(f, client, 0);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_releases_done(f, client, 0);
    wait_released(f, KEY);
}

/* A key left at a node whose queue was full would deny the next holder there. */
static void what_a_full_queue_put_off_is_retried_when_there_is_room(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_lock *locks[32];
    char names[32][16];

    options.max_commands = 16;
    options.reconnect_delay_max_ms = 600000; /* failed releases are retried after 10 min */
    redlock_client *client = connect_with(f, &options);
    freeze(f, 0);
    for (size_t i = 0; i < 32; i++) {
        snprintf(names[i], sizeof(names[i]), "orders:%zu", i);
        locks[i] = hold(f, client, names[i], LONG_TTL_MS);
    }
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
    assert_int_in_range(node_info(client, 0).pending_releases, 1, 16);
    thaw(f, 0);
    wait_releases_done(f, client, 0);
    for (size_t i = 0; i < 32; i++) {
        wait_released(f, names[i]);
    }
}

static void three_stopped_nodes_time_out(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_client *client;
    struct call *call;

    options.node_timeout_ms = 12345;
    client = connect_with(f, &options);
    freeze_masters(f, 0, 3);
    stop_time();
    call = begin_acquire(f, client, &request);
    for (size_t i = 3; i < FIVE; i++) {
        wait_answered(f, client, i);
    }
    assert_int_equal(call->ended, 0);
    pass_time(12345);
    await(f, call);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_true(votes(call, REDLOCK_VOTE_TIMEOUT) >= 3);
    assert_explained(call, "12345 ms");
    resume_time();
    for (size_t i = 0; i < 3; i++) {
        thaw(f, i);
        wait_executed(f, i, "set", 1);
    }
    wait_released(f, KEY);
}

/* A server that accepts connections and sends nothing, not even in its handshake. */
static void a_node_that_accepts_and_stalls_costs_no_decision(void **state) {
    struct fixture *f = *state;
    const char *uris[FIVE];
    redlock_options options;
    redlock_client *client;
    struct peer *peers[2];

    memcpy(uris, masters_uris(f->masters), sizeof(uris));
    for (size_t i = 0; i < 2; i++) {
        peers[i] = peer_create(f, peer_answer_nothing, NULL);
        uris[i] = peer_uri(peers[i]);
    }
    options = patient_options(f, uris, FIVE);
    options.stall_timeout_ms = STALL_MS;
    client = create_client(f, &options);
    for (size_t i = cycles_here(20); i > 0; i--) {
        assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    }
    wait_answered(f, client, 2);
    wait_answered(f, client, 3);
    wait_answered(f, client, 4);
    struct peer_wait third_try = {peer_links, peers[0], 3};
    pass_until(f, client, 3, STALL_MS, peer_has_reached, &third_try,
               "the node was dropped as stalled, and tried again");
    assert_true(node_info(client, 0).disconnected >= 2);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    wait_released(f, KEY);
}

/* ---- stalls, and delays that are not stalls ---- */

static void a_program_that_starts_slowly_finds_its_nodes(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);

    options.stall_timeout_ms = STALL_MS;
    redlock_client *client = create_client(f, &options);
    pass_time(STALL_MS + 1000); /* reads its configuration, opens its database, ... */
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(node_info(client, 0).disconnected, 0);
}

static enum { WELL, ERRORS, SILENT } mood;

static void answer_by_mood(struct peer_link *link, const struct command *command, void *arg) {
    if (mood == ERRORS && command_is_script(command)) {
        peer_say(link, "-OOM command not allowed\r\n");
    } else if (mood != SILENT) {
        peer_answer_well(link, command, arg);
    }
}

/* A planned retry of releases must not put off the check for a stall. */
static void a_silent_node_with_pending_releases_is_dropped(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, answer_by_mood, NULL);
    const char *uri = peer_uri(peer);
    redlock_options options = patient_options(f, &uri, 1);

    mood = WELL;
    options.stall_timeout_ms = STALL_MS;
    options.reconnect_delay_ms = options.reconnect_delay_max_ms = 100 * STALL_MS;
    redlock_client *client = connect_with(f, &options);
    redlock_lock *lock = hold(f, client, "a", LONG_TTL_MS);
    mood = ERRORS;
    let_go(f, lock);
    wait_answered(f, client, 0);
    assert_int_equal(node_info(client, 0).pending_releases, 1);
    for (unsigned i = 0; i < 2; i++) { /* long enough to schedule a retry */
        pass_time(STALL_MS);
        run_turns(f, 3);
        wait_answered(f, client, 0);
    }
    mood = SILENT;
    redlock_request request = request_for("b", LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    run_turns(f, 3);
    assert_int_equal(node_info(client, 0).commands, 1);
    pass_time(STALL_MS);
    await(f, call);
    pass_time(STALL_MS); /* one silence that ends with a jump is tolerated */
    wait_disconnected(f, client, 0, 1);
}

/* Releases beyond a small max_bytes become pending, and are retried. */
static void a_small_max_bytes_puts_releases_off_but_loses_none(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_lock *locks[64];
    struct call *releases[64];
    char names[64][64];

    options.max_bytes = 4096;
    redlock_client *client = connect_with(f, &options);
    for (size_t i = 0; i < 64; i++) {
        snprintf(names[i], sizeof(names[i]), "production:tenant-000042:orders:%zu", i);
        locks[i] = hold(f, client, names[i], LONG_TTL_MS);
        wait_all_answered(f, client);
    }
    for (size_t i = 0; i < 64; i++) {
        releases[i] = begin_release(f, locks[i]);
    }
    for (size_t i = 0; i < 64; i++) {
        await(f, releases[i]);
    }
    for (size_t i = 0; i < 64; i++) {
        wait_released(f, names[i]);
    }
}

/* The keys in the order in which the peer is to release them. */
struct retries {
    size_t next;  /* number of the next expected key */
    size_t stray; /* number of other keys received */
};

static void record_retries(struct peer_link *link, const struct command *command, void *arg) {
    struct retries *retries = arg;
    char key[32];

    for (size_t i = 0; i < command_keys(command); i++) {
        command_text(command, 3 + i, key, sizeof(key));
        size_t number = strtoul(key + strlen("orders:"), NULL, 10);
        retries->stray += number != retries->next;
        retries->next = number + 1;
    }
    peer_answer_well(link, command, NULL);
}

#define TOGETHER 8 /* as many as max_commands = 16 allows to acquire at once */

/* Acquires "orders:0" and the keys that follow. */
static void hold_many(struct fixture *f, redlock_client *client, redlock_lock **locks,
                      size_t count) {
    struct call *calls[TOGETHER];
    redlock_request request = request_for(NULL, LONG_TTL_MS);
    char name[32];

    request.key = name;
    for (size_t i = 0; i < count; i += TOGETHER) {
        for (size_t k = 0; k < TOGETHER; k++) {
            snprintf(name, sizeof(name), "orders:%zu", i + k);
            calls[k] = begin_acquire(f, client, &request);
        }
        for (size_t k = 0; k < TOGETHER; k++) {
            assert_int_equal(await(f, calls[k]), REDLOCK_OK);
            locks[i + k] = calls[k]->lock;
        }
    }
}

/* More than twice the pending releases that a full queue takes: 16 calls for 64 locks each. */
#define RELEASES_LEAST ((size_t)4000)

/*
 * Far more releases than max_commands allows to retry at once: each is sent once, the oldest first.
 */
static void many_releases_are_retried_in_order_and_without_detours(void **state) {
    struct fixture *f = *state;
    struct retries retries = {0};
    struct peer *peer = peer_create(f, record_retries, &retries);
    const char *uri = peer_uri(peer);
    redlock_options options = patient_options(f, &uri, 1);
    size_t count = cycles_here(16000) / TOGETHER * TOGETHER;
    count = count > RELEASES_LEAST ? count : RELEASES_LEAST;
    redlock_lock **locks = calloc(count, sizeof(redlock_lock *));
    struct call *last = NULL;

    assert_non_null(locks);
    at_finish(f, free, locks);
    options.max_commands = 16;
    options.reconnect_delay_max_ms = 600000; /* no timer retries the releases */
    options.log_level = REDLOCK_LOG_INFO;
    redlock_client *client = connect_with(f, &options);
    hold_many(f, client, locks, count);
    size_t allocations = f->allocator.calls;
    for (size_t i = 0; i < count; i++) {
        last = begin_release(f, locks[i]);
    }
    await(f, last);
    assert_true(node_info(client, 0).pending_releases > count / 2);
    wait_releases_done(f, client, 0);
    wait_answered(f, client, 0);
    assert_int_equal(retries.next, count);
    assert_int_equal(retries.stray, 0);
    assert_int_in_range(f->allocator.calls - allocations, 1, 5 * count);
}

static void turn_away(struct peer_link *link, void *arg) {
    (void)arg;
    peer_hang_up(link);
}

/* A server that is shutting down may still accept connections, and close them. */
static void a_server_that_has_answered_is_not_suspected_of_tls(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, peer_answer_well, NULL);
    const char *uris[] = {peer_uri(peer)};
    redlock_options options = patient_options(f, uris, 1);
    redlock_client *client = connect_with(f, &options);

    peer_greet(peer, turn_away);
    peer_drop_links(peer);
    wait_disconnected(f, client, 0, 2);
    assert_non_null(strstr(node_info(client, 0).reason, "before any answer"));
    assert_null(strstr(node_info(client, 0).reason, "TLS"));
    client = create_client(f, &options); /* a client that knows nothing of the server */
    wait_disconnected(f, client, 0, 1);
    assert_non_null(strstr(node_info(client, 0).reason, "going down"));
    assert_non_null(strstr(node_info(client, 0).reason, "TLS"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(two_killed_of_five_cost_nothing),
        ON_FIVE_MASTERS(nodes_that_were_never_there_cost_nothing),
        ON_FIVE_MASTERS(three_killed_of_five_is_no_quorum_at_once),
        cmocka_unit_test_setup_teardown(a_quorum_is_more_than_half_of_the_configured_nodes,
                                        nine_masters, finish),
        ON_FIVE_MASTERS(a_release_with_all_nodes_down_ends),
        ON_FIVE_MASTERS(nodes_that_come_back_serve_again),
        ON_FIVE_MASTERS(a_stopped_node_costs_bounded_memory),
        ON_FIVE_MASTERS(a_stopped_node_delays_no_decision),
        ON_FIVE_MASTERS(a_stopped_node_delays_no_refusal),
        ON_FIVE_MASTERS(a_full_queue_is_named),
        ON_FIVE_MASTERS(what_a_full_queue_put_off_is_retried_when_there_is_room),
        ON_FIVE_MASTERS(three_stopped_nodes_time_out),
        ON_FIVE_MASTERS(a_node_that_accepts_and_stalls_costs_no_decision),
        ON_FIVE_MASTERS(a_program_that_starts_slowly_finds_its_nodes),
        ON_NO_MASTERS(a_silent_node_with_pending_releases_is_dropped),
        ON_FIVE_MASTERS(a_small_max_bytes_puts_releases_off_but_loses_none),
        ON_NO_MASTERS(many_releases_are_retried_in_order_and_without_detours),
        ON_NO_MASTERS(a_server_that_has_answered_is_not_suspected_of_tls),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
