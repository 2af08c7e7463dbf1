/*
 * Nodes that forget, have wrong clocks, or are a different server than they seem: which votes
 * count, and the reports about the others.
 */
#define _GNU_SOURCE 1 /* setenv */

#include "fake_clock.h"
#include "folder.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "proxy.h"
#include "wait_queue.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEY "orders:42"
#define THREE 3

/* A TTL long enough for the work within it, even on a slow machine. */
#define TTL_MS 6000

/* A TTL short enough to wait for its end more than once. */
#define SHORT_TTL_MS 1500

/* A TTL short enough to wait for three of them. */
#define FULL_TTL_MS 3000

static int three_masters(void **state) {
    return start_fixture(state, THREE, NULL);
}

static redlock_options guarded(struct fixture *f, const char *const *uris, size_t count,
                               uint64_t max_ttl_ms) {
    redlock_options options = patient_options(f, uris, count);

    options.guards = REDLOCK_GUARDS_ON;
    options.max_ttl_ms = max_ttl_ms;
    return options;
}

/* Makes a client, and waits until it trusts all its nodes. */
static redlock_client *create_trusting(struct fixture *f, const redlock_options *options) {
    redlock_client *client = create_client(f, options);

    wait_trusted(f, client, options->node_count);
    return client;
}

/* Makes a trusting client of all masters, which were started for the test. */
static redlock_client *trusting_client(struct fixture *f, uint64_t max_ttl_ms) {
    size_t count = masters_count(f->masters);
    redlock_options options = guarded(f, masters_uris(f->masters), count, max_ttl_ms);

    return create_trusting(f, &options);
}

/*
 * Repeats the acquisition: a TTL may end before the votes are in, and a newly trusted node may be
 * distrusted for some milliseconds when its next answer took longer.
 */
static redlock_lock *hold_soon(struct fixture *f, redlock_client *client, uint64_t ttl_ms) {
    redlock_request request = request_for(KEY, ttl_ms);

    request.wait_ms = REDLOCK_FOREVER;
    return hold_for(f, client, &request);
}

/* Restarts a master without its memory; waits until these clients (NULL: none) have noticed. */
static void restart_empty(struct fixture *f, size_t master, redlock_client *client,
                          redlock_client *second) {
    uint64_t ended = node_info(client, master).disconnected;
    uint64_t ended_too = second != NULL ? node_info(second, master).disconnected : 0;

    masters_kill(f->masters, master);
    masters_restart(f->masters, master);
    wait_disconnected(f, client, master, ended + 1);
    wait_connected(f, client, masters_count(f->masters));
    if (second != NULL) {
        wait_disconnected(f, second, master, ended_too + 1);
        wait_connected(f, second, masters_count(f->masters));
    }
}

static const char *distrust(const redlock_client *client, size_t node) {
    return node_info(client, node).distrust;
}

#define assert_distrusted(client, node, why) assert_non_null(strstr(distrust(client, node), why))

struct suspicion {
    redlock_client *client;
    size_t node;
    const char *why;
    time_t looked_at; /* see keep_at_work */
};

static void on_look(redlock_status status, const redlock_view *view, void *arg) {
    (void)status;
    (void)view;
    (void)arg;
}

/*
 * Makes the client inspect a key once a second: an idle one sends heartbeats so seldom that tests
 * would take long. `looked_at` is the second of its last inspection.
 */
static void keep_at_work(redlock_client *client, time_t *looked_at) {
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    if (now.tv_sec != *looked_at) {
        *looked_at = now.tv_sec;
        redlock_inspect(client, KEY, 0, on_look, NULL);
    }
}

struct pulse {
    struct fixture *f;
    redlock_client *client;
    size_t beats; /* the number to wait for */
    time_t looked_at;
};

static bool has_beaten(void *arg) {
    struct pulse *pulse = arg;

    keep_at_work(pulse->client, &pulse->looked_at);
    return executed(pulse->f, 0, "info") >= pulse->beats;
}

/* Waits until the first master has answered so many further heartbeats of the client. */
static void wait_beats(struct fixture *f, redlock_client *client, size_t count) {
    struct pulse pulse = {f, client, executed(f, 0, "info") + count, 0};

    run_until(f, has_beaten, &pulse, "the master has answered the heartbeats");
    wait_answered(f, client, 0);
}

static bool is_suspected(void *arg) {
    struct suspicion *suspicion = arg;

    keep_at_work(suspicion->client, &suspicion->looked_at);
    return strstr(distrust(suspicion->client, suspicion->node), suspicion->why) != NULL;
}

static void wait_distrusted(struct fixture *f, redlock_client *client, size_t node,
                            const char *why) {
    struct suspicion suspicion = {client, node, why, 0};

    run_until(f, is_suspected, &suspicion, "the node is distrusted for that reason");
}

static bool is_untrusted(void *arg) {
    struct suspicion *suspicion = arg;

    keep_at_work(suspicion->client, &suspicion->looked_at);
    return !node_info(suspicion->client, suspicion->node).trusted;
}

/* A node that has just connected is not trusted either, until it reports its identity. */
static void wait_untrusted(struct fixture *f, redlock_client *client, size_t node) {
    struct suspicion suspicion = {client, node, NULL, 0};

    run_until(f, is_untrusted, &suspicion, "the node is not trusted");
}

static bool is_quarantined(void *arg) {
    const struct suspicion *suspicion = arg;

    return node_info(suspicion->client, suspicion->node).distrust_ms > 0;
}

static void wait_quarantined(struct fixture *f, redlock_client *client, size_t node) {
    struct suspicion suspicion = {client, node, NULL, 0};

    run_until(f, is_quarantined, &suspicion, "the node has reported that it was restarted");
}

/* Returns options of a client that considers its nodes durable. */
static redlock_options durable(struct fixture *f, uint64_t max_ttl_ms) {
    return guarded(f, durable_uris(f), THREE, max_ttl_ms);
}

/* ------------------------------------------------------------------------------------ restarts */

/* Acquires a lock, then restarts two of three masters without their memory. */
static redlock_lock *hold_and_forget(struct fixture *f, redlock_client *holder,
                                     redlock_client *rival) {
    redlock_lock *lock = hold_soon(f, holder, TTL_MS);

    wait_holders(f, KEY, THREE);
    restart_empty(f, 1, holder, rival);
    restart_empty(f, 2, holder, rival);
    return lock;
}

static void without_guards_a_restart_breaks_exclusion(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), THREE);
    options.max_ttl_ms = TTL_MS;
    redlock_client *holder = connect_with(f, &options);
    redlock_client *rival = connect_with(f, &options);
    redlock_lock *lock = hold_and_forget(f, holder, rival);
    redlock_lock *stolen = hold(f, rival, KEY, TTL_MS);

    assert_true(redlock_validity_ms(lock) > 0);
    assert_true(redlock_validity_ms(stolen) > 0);
}

static void a_restarted_master_is_not_counted_until_max_ttl_has_passed(void **state) {
    struct fixture *f = *state;
    redlock_client *holder = trusting_client(f, TTL_MS);
    redlock_client *rival = trusting_client(f, TTL_MS);
    redlock_lock *lock = hold_and_forget(f, holder, rival);
    redlock_request request = request_for(KEY, TTL_MS);
    struct call *call = acquire(f, rival, &request);
    assert_true(call->status == REDLOCK_EHELD || call->status == REDLOCK_ENOQUORUM);
    size_t reporter = call->opinions[1].vote == REDLOCK_VOTE_UNTRUSTED ? 1 : 2;
    assert_int_equal(call->opinions[reporter].vote, REDLOCK_VOTE_UNTRUSTED); /* or both */
    assert_explained(call, "not trusted for ");
    assert_explained(call, " ms more: ");
    assert_int_in_range(call->opinions[reporter].ttl_ms, 1, TTL_MS + 2000);
    for (size_t i = 1; i < THREE; i++) {
        wait_quarantined(f, rival, i);
        assert_false(node_info(rival, i).trusted);
        assert_int_in_range(node_info(rival, i).distrust_ms, 1, TTL_MS + 2000);
    }
    wait_logged(f, "it was restarted");

    request.wait_ms = REDLOCK_FOREVER;
    call = acquire(f, rival, &request);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(redlock_validity_ms(lock), 0);
}

/* The server is old enough by its uptime, but no client has seen its memory before. */
static void the_first_client_of_all_waits_for_max_ttl(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f, masters_uris(f->masters), THREE, SHORT_TTL_MS);
    redlock_client *client = create_client(f, &options);
    redlock_request request = request_for(KEY, SHORT_TTL_MS);

    assert_ended(acquire(f, client, &request), REDLOCK_ENOQUORUM);
    wait_trusted(f, client, THREE);
    for (size_t i = 0; i < THREE; i++) {
        assert_non_null(value_at(f, i, REDLOCK_MARKER_KEY));
        assert_int_equal(pttl_at(f, i, REDLOCK_MARKER_KEY), -1);
    }
    size_t new_memories = log_capture_count(&f->capture, "its memory is new");
    create_trusting(f, &options); /* knows the masters */
    assert_int_equal(log_capture_count(&f->capture, "its memory is new"), new_memories);
}

static void a_minority_in_quarantine_goes_unnoticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, TTL_MS);

    restart_empty(f, 1, client, NULL);
    redlock_lock *lock = hold_soon(f, client, TTL_MS);
    wait_holders(f, KEY, THREE); /* the SETs are sent nevertheless */
    assert_false(node_info(client, 1).trusted);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* Makes a trusting client that reaches its masters through proxies, with long timeouts. */
static redlock_client *behind_proxies(struct fixture *f, struct proxy **proxies,
                                      uint64_t max_ttl_ms) {
    const char *uris[THREE];

    proxies_create(f, proxies, uris);
    redlock_options options = guarded(f, uris, THREE, max_ttl_ms);
    options.node_timeout_ms = max_ttl_ms - 1000;
    options.stall_timeout_ms = 10 * max_ttl_ms;
    return create_trusting(f, &options);
}

/* It leaves the key free for a holder (round/call.c), and here answers after the verdict. */
static void a_young_node_that_answers_last_gets_the_key(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    redlock_client *client = behind_proxies(f, proxies, TTL_MS);

    restart_empty(f, 1, client, NULL);
    wait_all_answered(f, client);
    proxies_hold_replies(proxies, 1, 2);
    redlock_lock *lock = hold_soon(f, client, TTL_MS);
    proxies_pass_replies(proxies, 1, 2);
    wait_holders(f, KEY, THREE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* A lock survives while all its nodes are replaced, one max_ttl apart. */
static void a_held_lock_survives_restarts_one_max_ttl_apart(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, TTL_MS);
    redlock_request request = request_for(KEY, TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    request.wait_ms = REDLOCK_FOREVER;
    request.watchdog = true;
    redlock_lock *lock = hold_for(f, client, &request);

    for (size_t i = 0; i < THREE; i++) {
        restart_empty(f, i, client, NULL);
        assert_int_equal(extend(f, lock, 0), REDLOCK_OK); /* and tops nodes up */
        wait_holders(f, KEY, THREE);
        wait_trusted(f, client, THREE);
    }
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_int_equal(loss->count, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static bool has_key(void *arg) {
    return value_at(arg, 2, KEY) != NULL;
}

/* A lock renewed by a young node could coexist with an acquisition that the node has forgotten. */
static void a_young_node_renews_nothing(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    redlock_client *client = behind_proxies(f, proxies, TTL_MS);

    redlock_lock *lock = hold_soon(f, client, TTL_MS);
    wait_holders(f, KEY, THREE);
    restart_empty(f, 2, client, NULL);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK); /* and tops the young master up */
    wait_holders(f, KEY, THREE);
    masters_kill(f->masters, 1);
    wait_connected(f, client, 2);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ENOQUORUM);
}

/* An acquisition counts no grant that its node has forgotten before the decision. */
static void a_grant_that_its_node_has_forgotten_is_void(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    redlock_client *client = behind_proxies(f, proxies, TTL_MS);
    redlock_request request = request_for(KEY, TTL_MS);

    proxies_hold_requests(proxies, 0, 2, "SET");
    struct call *call = begin_acquire(f, client, &request);
    run_until(f, has_key, f, "the last master has the key");
    wait_answered(f, client, 2);
    restart_empty(f, 2, client, NULL);
    wait_quarantined(f, client, 2);
    proxy_pass_requests(proxies[1]);
    wait_answered(f, client, 1);
    proxy_cut(proxies[0]);
    assert_int_not_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(call->opinions[2].vote, REDLOCK_VOTE_UNTRUSTED);
}

static void a_durable_node_counts_at_once(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, LONG_TTL_MS);
    redlock_client *client = create_client(f, &options);

    hold(f, client, KEY, LONG_TTL_MS);
    wait_trusted(f, client, THREE);
}

/* -------------------------------------------------------------------------------------- memory */

static void a_flushed_node_sits_out(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);
    redlock_request request = request_for(KEY, SHORT_TTL_MS);

    send_to(f, 0, 2, "FLUSHALL");
    wait_distrusted(f, client, 0, "its memory is new");
    wait_distrusted(f, client, 1, "its memory is new");
    struct call *call = acquire(f, client, &request);
    if (call->status != REDLOCK_OK) { /* it may succeed if the machine took longer than max_ttl */
        assert_ended(call, REDLOCK_ENOQUORUM);
        assert_explained(call, "its memory is new");
    }
    wait_trusted(f, client, THREE);
    request.wait_ms = REDLOCK_FOREVER;
    assert_ended(acquire(f, client, &request), REDLOCK_OK);
}

static bool is_confirmed(struct fixture *f) {
    const char *value = value_at(f, 0, REDLOCK_MARKER_KEY);

    return strncmp(value, strchr(value, ':') + 1, strcspn(value, ":")) != 0;
}

/* Waits until a heartbeat has confirmed the first master's marker. */
static void wait_confirmed(struct fixture *f, redlock_client *client) {
    while (!is_confirmed(f)) {
        wait_beats(f, client, 1);
    }
}

/* The marker exists, but is old: the node has forgotten all later keys. */
static void a_restored_snapshot_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);
    char first[128];
    const char *run;
    char *answer;

    wait_confirmed(f, client);
    snprintf(first, sizeof(first), "%s", value_at(f, 0, REDLOCK_MARKER_KEY));
    run = strrchr(first, ':') + 1;
    *strchr(first, ':') = '\0';
    answer = masters_query(f->masters, 0, "SET %s %s:%s:%s", REDLOCK_MARKER_KEY, first, first, run);
    free(answer);
    wait_distrusted(f, client, 0, "its memory is new");
    wait_trusted(f, client, THREE);
}

/*
 * The marker was confirmed in the future: another client connected while the clock of the node was
 * ahead and keys expired.
 */
static void a_clock_that_went_ahead_and_came_back_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);
    static const char confirm[] =
        "local first, last, run = string.match(redis.call('get', KEYS[1]), '^(%d+):(%d+):(%x+)$') "
        "redis.call('set', KEYS[1], string.format('%s:%.0f:%s', first, last + 60000000, run))";

    wait_answered(f, client, 0);
    free(masters_query(f->masters, 0, "EVAL %s 1 %s", confirm, REDLOCK_MARKER_KEY));
    wait_distrusted(f, client, 0, "its memory is new");
    wait_trusted(f, client, THREE);
}

static void a_marker_that_is_none_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);

    free(masters_query(f->masters, 0, "DEL %s", REDLOCK_MARKER_KEY));
    free(masters_query(f->masters, 0, "LPUSH %s x", REDLOCK_MARKER_KEY));
    wait_distrusted(f, client, 0, "WRONGTYPE");
    free(masters_query(f->masters, 0, "SET %s nonsense", REDLOCK_MARKER_KEY));
    wait_distrusted(f, client, 0, "its memory is new");
    wait_trusted(f, client, THREE);
}

/* ------------------------------------------------------------------------- questions in a queue */

#define LEAST_QUEUE 16

/* Makes a client behind proxies that trusts its masters, with the minimum of max_commands. */
static redlock_client *short_of_room(struct fixture *f, struct proxy **proxies,
                                     uint64_t max_ttl_ms) {
    const char *uris[THREE];

    proxies_create(f, proxies, uris);
    redlock_options options = guarded(f, uris, THREE, max_ttl_ms);
    options.max_commands = LEAST_QUEUE;
    options.node_timeout_ms = 2000; /* answers are too old after 2 s plus this time */
    return create_trusting(f, &options);
}

/*
 * Makes more requests than there is room for, at nodes that do not answer: releases, since these
 * may fill all of the room.
 */
static void fill_queues(struct fixture *f, redlock_client *client, struct proxy **proxies) {
    redlock_lock *locks[2 * LEAST_QUEUE];
    char keys[2 * LEAST_QUEUE][32];

    for (unsigned i = 0; i < 2 * LEAST_QUEUE; i++) {
        snprintf(keys[i], sizeof(keys[i]), "filler:%u", i);
        locks[i] = hold(f, client, keys[i], TTL_MS);
    }
    wait_all_answered(f, client);
    proxies_hold_replies(proxies, 0, THREE);
    for (unsigned i = 0; i < 2 * LEAST_QUEUE; i++) {
        assert_int_equal(redlock_release(locks[i], NULL, NULL), REDLOCK_OK);
        run_turns(f, 2); /* releases of one turn share a command */
    }
    assert_int_in_range(node_info(client, 0).commands, LEAST_QUEUE / 4 * 3, 2 * LEAST_QUEUE);
}

static bool have_markers(void *arg) {
    return value_at(arg, 0, REDLOCK_MARKER_KEY) != NULL &&
           value_at(arg, 1, REDLOCK_MARKER_KEY) != NULL;
}

/* A full queue does not delay the heartbeat, which is the client's own command. */
static void a_full_queue_hides_no_empty_memory(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    redlock_client *client = short_of_room(f, proxies, TTL_MS);

    fill_queues(f, client, proxies);
    send_to(f, 0, 2, "FLUSHALL");
    run_until(f, have_markers, f, "a beat that found no marker has set one");
    proxies_pass_replies(proxies, 0, THREE);
    wait_distrusted(f, client, 0, "its memory is new");
    wait_distrusted(f, client, 1, "its memory is new");
    assert_int_not_equal(try_lock(f, client, KEY, TTL_MS), REDLOCK_OK);
}

/* A node's state is unknown after its last answer to a heartbeat. */
static void trust_ages(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[THREE];
    redlock_client *client = short_of_room(f, proxies, SHORT_TTL_MS);

    proxies_hold_replies(proxies, 0, THREE);
    for (unsigned i = 0; i < THREE; i++) {
        wait_distrusted(f, client, i, "it has answered no heartbeat for too long");
    }
    proxies_pass_replies(proxies, 0, THREE);
    wait_trusted(f, client, THREE);
    assert_int_equal(let_go(f, hold_soon(f, client, SHORT_TTL_MS)), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------------ eviction */

static int a_master_that_evicts(void **state) {
    static const char *const arguments[] = {"--maxmemory-policy", "allkeys-lru", NULL};

    return start_fixture(state, 1, arguments);
}

static void an_eviction_policy_is_warned_of_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    wait_logged(f, "maxmemory-policy is allkeys-lru");
    restart_empty(f, 0, client, NULL);
    wait_answered(f, client, 0);
    assert_int_equal(log_capture_count(&f->capture, "allkeys-lru"), 1);
}

/* ---------------------------------------------------------------------------------------- clock */

static char clock_folder[FOLDER_SIZE];
static char clock_file[FOLDER_SIZE + 16];
static struct fake_clock *clock_settings;

/* Sets the lead and the rate of the first master's wall clock from now on. */
static void set_clock(int64_t ahead_s, int64_t ppm) {
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    clock_settings->ppm = 0;
    clock_settings->since_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    clock_settings->ahead_ns = ahead_s * 1000000000;
    clock_settings->ppm = ppm;
}

static int fake_clock(size_t index, void *arg) {
    (void)arg;
    return index != 0 || (setenv("LD_PRELOAD", FAKE_CLOCK_MODULE, 1) == 0 &&
                          setenv(FAKE_CLOCK_FILE, clock_file, 1) == 0)
               ? 0
               : -1;
}

static int a_master_with_a_clock_of_its_own(void **state) {
    if (folder_make(clock_folder, "clock") != 0) {
        return -1;
    }
    snprintf(clock_file, sizeof(clock_file), "%s/clock", clock_folder);
    int fd = open(clock_file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof(*clock_settings)) != 0) {
        perror(clock_file);
        return -1;
    }
    clock_settings = mmap(NULL, sizeof(*clock_settings), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return clock_settings == MAP_FAILED
               ? -1
               : start_fixture_with(state, THREE, &(struct masters_options){.prepare = fake_clock});
}

static int finish_with_the_clock(void **state) {
    int result = finish(state);

    munmap(clock_settings, sizeof(*clock_settings));
    return folder_remove(clock_folder) == 0 ? result : -1;
}

static void a_clock_that_jumps_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);

    set_clock(20, 0);
    wait_distrusted(f, client, 0, "its clock moved by ");
    wait_logged(f, "ms against ours within ");
    assert_true(node_info(client, 1).trusted);
    wait_trusted(f, client, THREE);
    set_clock(-20, 0);
    wait_distrusted(f, client, 0, "its clock moved by -");
    wait_trusted(f, client, THREE);
}

/* The clock runs 10 % faster than ours, which no single reading shows. */
static void a_clock_that_runs_fast_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);

    set_clock(0, 100000);
    wait_distrusted(f, client, 0, "its clock moved by ");
}

static void start_again_ahead(struct fixture *f, redlock_client *client, int64_t ahead_s) {
    uint64_t ended = node_info(client, 0).disconnected;

    masters_kill(f->masters, 0);
    wait_disconnected(f, client, 0, ended + 1);
    set_clock(ahead_s, 0);
    masters_restart(f->masters, 0);
    wait_connected(f, client, THREE);
}

/* The operator vouches for the node's memory, but not for its clock. */
static void a_durable_node_that_restarts_is_asked_for_its_clock(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, TTL_MS);
    redlock_client *client = create_trusting(f, &options);

    start_again_ahead(f, client, 3600);
    wait_distrusted(f, client, 0, "its clock moved by ");
    wait_trusted(f, client, THREE);
    start_again_ahead(f, client, 0);
    wait_distrusted(f, client, 0, "its clock moved by -");
    wait_trusted(f, client, THREE);
}

/* Writes an old marker of the master's run. */
static void seem_old(struct fixture *f, size_t master) {
    char *info = masters_query(f->masters, master, "INFO server");
    const char *run = strstr(info, "run_id:") + strlen("run_id:");
    char marker[64];

    snprintf(marker, sizeof(marker), "1:1:%.40s", run);
    free(info);
    free(masters_query(f->masters, master, "SET %s %s", REDLOCK_MARKER_KEY, marker));
}

static bool has_negative_uptime(void *arg) {
    return master_number(arg, 0, "uptime_in_seconds") < 0;
}

/* Redis then reports a negative uptime. The server's memory is from before the restart. */
static void a_server_whose_clock_was_set_back_after_its_start_is_young(void **state) {
    struct fixture *f = *state;

    set_clock(-1000, 0);
    for (size_t i = 0; i < THREE; i++) {
        seem_old(f, i);
    }
    run_until(f, has_negative_uptime, f, "the server has noticed its clock");
    redlock_options options = guarded(f, masters_uris(f->masters), THREE, TTL_MS);
    redlock_client *client = connect_with(f, &options);
    wait_distrusted(f, client, 0, "it was restarted");
    wait_trusted(f, client, THREE);
}

#define HOUR_S 3600
#define US_PER_S UINT64_C(1000000)
#define BOUND_S (UINT64_C(3) * 24 * HOUR_S) /* of counters: wire/fence.h */

/* Sets the counter of KEY at a master to the time plus `ahead_s`. */
static void set_counter_ahead(struct fixture *f, size_t master, uint64_t ahead_s) {
    uint64_t count = ((uint64_t)time(NULL) + ahead_s) * US_PER_S;
    char *answer = masters_query(f->masters, master, "SET " KEY "::fence %" PRIu64, count);

    assert_string_equal(answer, "OK");
    free(answer);
}

/*
 * A limit (examples/fences.md): a lie just below the bound counts while another master hangs, and a
 * sound one is raised to it. A client that then knows only slower clocks refuses that counter.
 */
static void a_lie_beside_a_hung_master_is_refused_until_slower_clocks_reach_it(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), THREE);
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    request.fenced = true;
    set_clock(-HOUR_S, 0);
    redlock_client *client = connect_with(f, &options);
    set_counter_ahead(f, 2, BOUND_S - HOUR_S / 2);
    freeze(f, 0);
    redlock_lock *lock = hold_for(f, client, &request);
    uint64_t fence = redlock_fence(lock);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    thaw(f, 0);
    masters_kill(f->masters, 2);

    struct call *call = acquire(f, create_client(f, &options), &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "days ahead of the clocks");
    set_clock(0, 0);
    call = acquire(f, create_client(f, &options), &request);
    assert_ended(call, REDLOCK_OK);
    assert_true(redlock_fence(call->lock) > fence);
}

/* -------------------------------------------------------------------------- identity and rights */

static void one_server_that_is_two_nodes_counts_once(void **state) {
    struct fixture *f = *state;
    const char *uris[] = {masters_uri(f->masters, 0), masters_unix_uri(f->masters, 0),
                          masters_uri(f->masters, 1)};
    redlock_options options = patient_options(f, uris, THREE);
    redlock_client *client = connect_with(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    wait_logged(f, "it is the same server as ");
    wait_trusted(f, client, 2);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    masters_kill(f->masters, 1);
    wait_connected(f, client, 2);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ENOQUORUM);
    let_go(f, lock);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "it is the same server as ");
}

static void point_link(const char *link, const char *uri) {
    unlink(link);
    assert_int_equal(symlink(strchr(uri + strlen("unix://"), '/'), link), 0);
}

/* A duplicate is trusted again after another server has replaced it. */
static void a_duplicate_that_is_replaced_counts(void **state) {
    struct fixture *f = *state;
    char link[FOLDER_SIZE + 16];
    char uri[160];
    const char *first = masters_unix_uri(f->masters, 0);
    const char *uris[] = {masters_uri(f->masters, 0), uri, masters_uri(f->masters, 1)};
    redlock_options options = patient_options(f, uris, THREE);

    snprintf(link, sizeof(link), "%s/link", folder_for(f, "link"));
    snprintf(uri, sizeof(uri), "%.*s%s", (int)(strchr(first + strlen("unix://"), '/') - first),
             first, link);
    point_link(link, first);
    redlock_client *client = connect_with(f, &options);
    wait_trusted(f, client, 2);
    point_link(link, masters_unix_uri(f->masters, 2));
    free(masters_query(f->masters, 0, "CLIENT KILL TYPE normal"));
    wait_trusted(f, client, THREE);
    wait_connected(f, client, THREE);
}

static void a_replica_never_counts(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, SHORT_TTL_MS);

    free(masters_query(f->masters, 2, "CONFIG SET replica-read-only no"));
    free(masters_query(f->masters, 2, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    redlock_client *client = connect_with(f, &options);
    wait_distrusted(f, client, 2, "it is a replica");
    /* The master's key may be at the replica before the SET, or later. */
    redlock_request request = request_for(KEY, SHORT_TTL_MS);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    assert_int_not_equal(call->opinions[2].vote, REDLOCK_VOTE_GRANTED);
    assert_int_not_equal(call->opinions[2].vote, REDLOCK_VOTE_DENIED);

    free(masters_query(f->masters, 2, "REPLICAOF NO ONE"));
    wait_distrusted(f, client, 2, "it was a replica");
    wait_trusted(f, client, THREE);
}

/* A replica's keys are its master's: one holder at a master is not a quorum of holders. */
static void a_copy_at_a_replica_denies_nothing(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, SHORT_TTL_MS);
    redlock_request request = request_for(KEY, SHORT_TTL_MS);

    for (size_t i = 1; i < THREE; i++) {
        free(masters_query(f->masters, i, "CONFIG SET replica-read-only no"));
        free(masters_query(f->masters, i, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    }
    redlock_client *client = connect_with(f, &options);
    wait_distrusted(f, client, 1, "it is a replica");
    wait_distrusted(f, client, 2, "it is a replica");
    free(masters_query(f->masters, 0, "SET %s %s PX %d", KEY, "other", 60000));
    wait_holders(f, KEY, THREE);
    struct call *call;
    do { /* two votes decide: without the third a request does not know of both replicas */
        call = acquire(f, client, &request);
    } while (votes(call, REDLOCK_VOTE_NONE) > 0);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_int_equal(call->opinions[0].vote, REDLOCK_VOTE_DENIED);
    assert_int_equal(call->opinions[1].vote, REDLOCK_VOTE_UNTRUSTED);
    assert_int_equal(call->opinions[2].vote, REDLOCK_VOTE_UNTRUSTED);
    assert_explained(call, "it is a replica");
}

static bool has_synced(void *arg) {
    return info_contains(arg, 2, "replication", "master_link_status:up");
}

/*
 * A master becomes a replica for a moment, on open connections. From then on it has the memory of
 * its master, with a marker as old as its own, and none of the keys that it had granted.
 */
static void a_master_that_was_a_replica_for_a_moment_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *holder = trusting_client(f, TTL_MS);
    redlock_client *rival = trusting_client(f, TTL_MS);

    free(masters_query(f->masters, 2, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    run_until(f, has_synced, f, "the replica has its master's memory");
    free(masters_query(f->masters, 2, "REPLICAOF NO ONE"));
    wait_untrusted(f, holder, 2);
    wait_untrusted(f, rival, 2);
    assert_true(node_info(rival, 0).trusted);
    assert_true(node_info(rival, 1).trusted);
    wait_trusted(f, rival, THREE);
}

/* On an open connection only the heartbeat shows the change. */
static void becomes_a_replica(struct fixture *f, const char *is_read_only, redlock_guards guards) {
    redlock_options options = durable(f, SHORT_TTL_MS);

    options.guards = guards;
    redlock_client *client = create_trusting(f, &options);
    wait_connected(f, client, THREE);
    wait_answered(f, client, 2);
    free(masters_query(f->masters, 2, "CONFIG SET replica-read-only %s", is_read_only));
    free(masters_query(f->masters, 2, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    wait_distrusted(f, client, 2, "it is a replica");
}

static void a_master_that_becomes_a_replica_is_noticed(void **state) {
    becomes_a_replica(*state, "yes", REDLOCK_GUARDS_ON);
}

static void a_master_that_becomes_a_writable_replica_is_noticed(void **state) {
    becomes_a_replica(*state, "no", REDLOCK_GUARDS_ON);
}

/* A replica's votes never count, whatever the guards. */
static void a_writable_replica_is_noticed_without_guards(void **state) {
    becomes_a_replica(*state, "no", REDLOCK_GUARDS_OFF);
}

static bool is_replicated(void *arg) {
    struct fixture *f = arg;
    const char *mine = value_at(f, 0, REDLOCK_MARKER_KEY);
    char copy[128];

    snprintf(copy, sizeof(copy), "%s", mine);
    const char *others = value_at(f, 2, REDLOCK_MARKER_KEY);
    return others != NULL && strcmp(copy, others) == 0;
}

/* Makes a trusting client of the first two masters; the third is the first one's replica. */
static redlock_client *with_a_replica(struct fixture *f, const redlock_options *options) {
    send_to(f, 0, THREE, "CONFIG SET repl-diskless-sync no");
    redlock_client *client = create_trusting(f, options);
    free(masters_query(f->masters, 2, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    run_until(f, has_synced, f, "the replica has its master's memory");
    return client;
}

static bool is_synced_back(void *arg) {
    return info_contains(arg, 0, "replication", "master_link_status:up");
}

/*
 * A master becomes for a moment the replica of its own replica, which lacks the last key. Its
 * memory comes back with its own marker and the same run. All that happens without a turn of the
 * loop: no heartbeat sees the replica.
 */
static void fail_back(struct fixture *f, redlock_client *client) {
    char *marker;

    wait_confirmed(f, client);
    run_until(f, is_replicated, f, "the replica has the marker");
    free(masters_query(f->masters, 2, "REPLICAOF NO ONE"));
    free(masters_query(f->masters, 0, "SET %s %s", KEY, "granted"));
    marker = masters_query(f->masters, 0, "GET %s", REDLOCK_MARKER_KEY);
    free(masters_query(f->masters, 2, "SET %s %s", REDLOCK_MARKER_KEY, marker));
    free(marker);
    free(masters_query(f->masters, 0, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 2)));
    while (!is_synced_back(f)) {
    }
    free(masters_query(f->masters, 0, "REPLICAOF NO ONE"));
    assert_null(value_at(f, 0, KEY));
}

static void a_failback_to_a_replica_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f, masters_uris(f->masters), 2, TTL_MS);
    redlock_client *client = with_a_replica(f, &options);

    fail_back(f, client);
    wait_distrusted(f, client, 0, "its memory is new");
    redlock_client *second = create_client(f, &options);
    wait_distrusted(f, second, 0, "its memory is new");
    wait_trusted(f, second, 2);
    wait_trusted(f, client, 2);
}

/*
 * Returns whether the master has no second replication id, which would show that it was a replica.
 */
static bool has_lost_its_second_id(struct fixture *f) {
    return info_contains(f, 0, "replication",
                         "master_replid2:0000000000000000000000000000000000000000");
}

/* The client checks so late that the server has forgotten that it was a replica. */
static void a_failback_that_nobody_watched_is_noticed(void **state) {
    const long long away_ms = 12100;
    struct fixture *f = *state;
    redlock_options options = guarded(f, masters_uris(f->masters), 2, TTL_MS);
    redlock_client *client = with_a_replica(f, &options);

    send_to(f, 0, 1, "CONFIG SET repl-backlog-ttl 1");
    fail_back(f, client);
    long long back_at = clock_at(f, 0) + away_ms;
    while (!has_lost_its_second_id(f) || clock_at(f, 0) < back_at) {
    }
    wait_distrusted(f, client, 0, "its replication id changed while we did not look");
    wait_trusted(f, client, 2);
}

/* The first replica gives its master another replication id, and takes no memory. */
static void a_first_replica_costs_no_trust(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f, masters_uris(f->masters), 2, SHORT_TTL_MS);
    redlock_client *client = create_trusting(f, &options);
    size_t new_memories = log_capture_count(&f->capture, "its memory is new");

    wait_answered(f, client, 0);
    free(masters_query(f->masters, 2, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, 0)));
    run_until(f, has_synced, f, "the replica has its master's memory");
    wait_beats(f, client, 3);
    assert_string_equal(distrust(client, 0), "");
    assert_int_equal(log_capture_count(&f->capture, "its memory is new"), new_memories);
}

static int masters_with_debug(void **state) {
    static const char *const arguments[] = {"--enable-debug-command", "yes", NULL};

    return start_fixture(state, THREE, arguments);
}

/*
 * A limit: the memory is reset to its state right after the marker was confirmed, which no
 * heartbeat can see. The key is lost, and the node counts.
 */
static void a_reload_that_takes_back_less_than_a_second_is_not_noticed(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);
    size_t new_memories = log_capture_count(&f->capture, "its memory is new");

    wait_answered(f, client, 0);
    /* from here on without a turn of the loop: no heartbeat comes between */
    send_to(f, 0, 1, "SAVE");
    free(masters_query(f->masters, 0, "SET %s %s", KEY, "granted"));
    send_to(f, 0, 1, "DEBUG RELOAD NOSAVE");
    assert_null(value_at(f, 0, KEY));
    wait_beats(f, client, 3);
    assert_string_equal(distrust(client, 0), "");
    assert_int_equal(log_capture_count(&f->capture, "its memory is new"), new_memories);
}

/* Another database replaces the client's, with a marker as old. */
static void a_swapped_database_is_noticed(void **state) {
    struct fixture *f = *state;
    redlock_options options = guarded(f, masters_uris(f->masters), THREE, TTL_MS);
    redlock_client *client = create_trusting(f, &options);
    static const char swap[] =
        "local marker = redis.call('get', KEYS[1]) "
        "local time = redis.call('time') "
        "redis.call('select', 1) "
        "redis.call('set', KEYS[1], string.format('1:%d%06d:%s', time[1], time[2], "
        "string.match(marker, '%x+$'))) "
        "redis.call('swapdb', 0, 1)";

    free(masters_query(f->masters, 0, "EVAL %s 1 %s", swap, REDLOCK_MARKER_KEY));
    wait_distrusted(f, client, 0, "its memory is new");
    redlock_client *second = create_client(f, &options);
    wait_distrusted(f, second, 0, "its memory is new");
    wait_trusted(f, second, THREE);
}

static void say_read_only(struct peer_link *link, const struct command *command, void *arg) {
    (void)command;
    (void)arg;
    peer_say(link, "-READONLY You can't write against a read only replica.\r\n");
}

/* Each READONLY, even in answer to the role question, triggers the role question again. */
static void a_server_that_says_nothing_but_read_only_is_asked_now_and_then(void **state) {
    struct fixture *f = *state;
    struct peer *peer = peer_create(f, say_read_only, NULL);
    const char *uris[] = {masters_uri(f->masters, 0), masters_uri(f->masters, 1), peer_uri(peer)};
    redlock_options options = guarded(f, uris, THREE, SHORT_TTL_MS);
    redlock_client *client = create_client(f, &options);

    wait_trusted(f, client, 2);
    size_t before = peer_commands(peer);
    wait_peer_commands(f, peer, before + 2); /* the server is still asked */
    before = peer_commands(peer);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(let_go(f, hold_soon(f, client, SHORT_TTL_MS)), REDLOCK_OK);
    }
    /* For each cycle a SET and a release; some questions; and scripts that are sent again. */
    assert_int_in_range(peer_commands(peer) - before, 100, 300);
}

/* The URIs of three nodes. */
struct uris {
    char text[THREE][160];
    const char *list[THREE];
};

static const char *const *login(struct fixture *f, struct uris *uris, const char *rules) {
    for (size_t i = 0; i < THREE; i++) {
        free(masters_query(f->masters, i, "ACL SETUSER locker on >secret ~* %s", rules));
        snprintf(uris->text[i], sizeof(uris->text[i]), "redis://locker:secret@127.0.0.1:%d",
                 masters_port(f->masters, i));
        uris->list[i] = uris->text[i];
    }
    return uris->list;
}

/* cmocka's setup has no arguments, and redisCommand splits at spaces: one rule each. */
static void allow(struct fixture *f, const char *rule) {
    for (size_t i = 0; i < THREE; i++) {
        free(masters_query(f->masters, i, "ACL SETUSER locker %s", rule));
    }
}

static void whoever_may_not_be_asked_is_not_trusted(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    redlock_options options = guarded(f, login(f, &uris, "+@all"), THREE, SHORT_TTL_MS);
    redlock_request request = request_for(KEY, SHORT_TTL_MS);

    allow(f, "-info");
    redlock_client *client = connect_with(f, &options);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EACCESS);
    assert_explained(call, "its user needs +info");
    allow(f, "+info"); /* the refused questions are asked again */
    wait_trusted(f, client, THREE);
    allow(f, "-time");
    wait_distrusted(f, client, 0, "its user needs +time");
    allow(f, "+time");
    wait_trusted(f, client, THREE);
}

static void whoever_may_not_be_asked_is_trusted_if_so_wished(void **state) {
    struct fixture *f = *state;
    struct uris uris;
    redlock_options options = guarded(f, login(f, &uris, "+@all"), THREE, SHORT_TTL_MS);

    allow(f, "-info");
    allow(f, "-time");
    options.guards = REDLOCK_GUARDS_LENIENT;
    redlock_client *client = connect_with(f, &options);
    hold_soon(f, client, SHORT_TTL_MS);
}

/* -------------------------------------------------------------------------------- the heartbeat */

/* The client sends no commands for locks, yet notices the hung node. */
static void an_idle_client_notices_who_hangs(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, SHORT_TTL_MS);

    options.stall_timeout_ms = under_valgrind() ? 5000 : 500;
    redlock_client *client = create_trusting(f, &options);
    freeze(f, 1);
    wait_disconnected(f, client, 1, 1);
    thaw(f, 1);
    wait_connected(f, client, THREE);
}

static void scripts_may_be_flushed(void **state) {
    struct fixture *f = *state;
    redlock_options options = durable(f, SHORT_TTL_MS);
    redlock_client *client = create_trusting(f, &options);

    size_t evals = executed(f, 0, "eval");
    send_to(f, 0, THREE, "SCRIPT FLUSH");
    wait_executed(f, 0, "eval", evals + 1); /* the heartbeat's, with the text */
    wait_answered(f, client, 0);
    assert_true(node_info(client, 0).trusted);
}

/* ------------------------------------------------------ masters that cannot write at the moment */

/* Makes two of three masters refuse commands that take memory. */
static void fill_a_quorum(struct fixture *f) {
    send_to(f, 0, 2, "CONFIG SET maxmemory-policy noeviction");
    send_to(f, 0, 2, "CONFIG SET maxmemory 1");
}

enum kind { PLAIN, FENCED, KIND_COUNT };

static redlock_lock *hold_watched(struct fixture *f, redlock_client *client, const char *key,
                                  enum kind kind, struct loss **loss) {
    redlock_request request = request_for(key, FULL_TTL_MS);

    request.watchdog = true;
    request.wait_ms = REDLOCK_FOREVER;
    request.fenced = kind == FENCED;
    *loss = watch_loss(f, &request);
    return hold_for(f, client, &request);
}

struct stamina {
    struct fixture *f;
    struct loss *losses[KIND_COUNT];
};

static size_t lost_of(const struct stamina *stamina) {
    size_t count = 0;

    for (size_t i = 0; i < KIND_COUNT; i++) {
        count += stamina->losses[i]->count;
    }
    return count;
}

/* Returns whether a key that is not renewed has expired, or the lock was lost. */
static bool has_passed_or_lost(void *arg) {
    const struct stamina *stamina = arg;

    return lost_of(stamina) > 0 || value_at(stamina->f, 2, "hourglass") == NULL;
}

/* A full master can renew its keys, and nothing else. */
static void full_masters_keep_what_they_have(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, FULL_TTL_MS);
    redlock_request request = request_for("another", FULL_TTL_MS);
    static const char *const keys[KIND_COUNT] = {KEY, "fenced"};
    struct stamina stamina = {.f = f};
    redlock_lock *locks[KIND_COUNT];

    for (size_t i = 0; i < KIND_COUNT; i++) {
        locks[i] = hold_watched(f, client, keys[i], (enum kind)i, &stamina.losses[i]);
        wait_holders(f, keys[i], THREE);
    }
    fill_a_quorum(f);
    rival_takes(f, 2, THREE, "hourglass", 3 * FULL_TTL_MS);
    run_until(f, has_passed_or_lost, &stamina, "three TTLs have passed");
    assert_int_equal(lost_of(&stamina), 0);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "OOM");
    for (size_t i = 0; i < THREE; i++) {
        assert_string_equal(distrust(client, i), "");
        assert_true(node_info(client, i).trusted);
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
}

/* The master cannot write its marker, and stays young as long as it is full. */
static void a_full_master_without_a_marker_is_young(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, FULL_TTL_MS);
    struct loss *loss;
    redlock_lock *lock = hold_watched(f, client, KEY, PLAIN, &loss);

    wait_holders(f, KEY, THREE);
    fill_a_quorum(f);
    send_to(f, 0, 1, "DEL " REDLOCK_MARKER_KEY);
    wait_distrusted(f, client, 0, "its memory is new");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_string_equal(distrust(client, 1), "");
    assert_int_equal(loss->count, 0);
    send_to(f, 0, 2, "CONFIG SET maxmemory 0");
    wait_trusted(f, client, THREE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* The master cannot restart its marker, and shows an old one at every heartbeat. */
static void a_snapshot_restored_to_a_full_master_is_not_forgotten(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);

    wait_confirmed(f, client);
    send_to(f, 0, 1, "SET backup 1:1");
    fill_a_quorum(f);
    send_to(f, 0, 1, "RENAME backup " REDLOCK_MARKER_KEY);
    wait_distrusted(f, client, 0, "its memory is new");
    wait_beats(f, client, 4);
    assert_distrusted(client, 0, "its memory is new");
    assert_string_equal(distrust(client, 1), "");
    send_to(f, 0, 2, "CONFIG SET maxmemory 0");
    wait_beats(f, client, 1);
    wait_trusted(f, client, THREE);
}

static void remove_folder(void *path) {
    rmdir(path);
    free(path);
}

static bool has_failed_to_save(void *arg) {
    return info_contains(arg, 0, "persistence", "rdb_last_bgsave_status:err");
}

/* Puts a folder in the place of the snapshot: Redis refuses writes until it can save. */
static void fail_to_save(struct fixture *f) {
    char *folder = masters_query(f->masters, 0, "CONFIG GET dir");
    char *name = masters_query(f->masters, 0, "CONFIG GET dbfilename");
    char *path = malloc(512);

    assert_non_null(path);
    assert_int_in_range(
        snprintf(path, 512, "%s/%s", strchr(folder, '\n') + 1, strchr(name, '\n') + 1), 1, 511);
    free(folder);
    free(name);
    assert_int_equal(mkdir(path, 0700), 0);
    at_finish(f, remove_folder, path);
    free(masters_query(f->masters, 0, "CONFIG SET save %s", "3600 1"));
    send_to(f, 0, 1, "BGSAVE");
    run_until(f, has_failed_to_save, f, "the master could not save");
}

static void a_master_that_cannot_save_is_still_trusted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = trusting_client(f, SHORT_TTL_MS);
    redlock_request request = request_for(KEY, SHORT_TTL_MS);

    fail_to_save(f);
    wait_beats(f, client, 3);
    assert_string_equal(distrust(client, 0), "");
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    wait_all_answered(f, client);
    wait_logged(f, "MISCONF");
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

#define ON_THREE_MASTERS(test) cmocka_unit_test_setup_teardown(test, three_masters, finish)
#define ON_A_CLOCK(test)                                                                           \
    cmocka_unit_test_setup_teardown(test, a_master_with_a_clock_of_its_own, finish_with_the_clock)

/* Runs all tests, or a part of them: they wait long for TTLs, and the parts wait at once. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        ON_THREE_MASTERS(without_guards_a_restart_breaks_exclusion),
        ON_THREE_MASTERS(a_restarted_master_is_not_counted_until_max_ttl_has_passed),
        ON_THREE_MASTERS(the_first_client_of_all_waits_for_max_ttl),
        ON_THREE_MASTERS(a_minority_in_quarantine_goes_unnoticed),
        ON_THREE_MASTERS(a_young_node_that_answers_last_gets_the_key),
        ON_THREE_MASTERS(a_held_lock_survives_restarts_one_max_ttl_apart),
        ON_THREE_MASTERS(a_young_node_renews_nothing),
        ON_THREE_MASTERS(a_grant_that_its_node_has_forgotten_is_void),
        ON_THREE_MASTERS(a_durable_node_counts_at_once),
        ON_THREE_MASTERS(a_flushed_node_sits_out),
        ON_THREE_MASTERS(a_restored_snapshot_is_noticed),
        ON_THREE_MASTERS(a_clock_that_went_ahead_and_came_back_is_noticed),
        ON_THREE_MASTERS(a_marker_that_is_none_is_reported),
        ON_THREE_MASTERS(a_full_queue_hides_no_empty_memory),
        ON_THREE_MASTERS(trust_ages),
        cmocka_unit_test_setup_teardown(an_eviction_policy_is_warned_of_once, a_master_that_evicts,
                                        finish),
        ON_A_CLOCK(a_clock_that_jumps_is_noticed),
        ON_A_CLOCK(a_clock_that_runs_fast_is_noticed),
        ON_A_CLOCK(a_durable_node_that_restarts_is_asked_for_its_clock),
        ON_A_CLOCK(a_server_whose_clock_was_set_back_after_its_start_is_young),
        ON_A_CLOCK(a_lie_beside_a_hung_master_is_refused_until_slower_clocks_reach_it),
        ON_THREE_MASTERS(one_server_that_is_two_nodes_counts_once),
        ON_THREE_MASTERS(a_duplicate_that_is_replaced_counts),
        ON_THREE_MASTERS(a_replica_never_counts),
        ON_THREE_MASTERS(a_copy_at_a_replica_denies_nothing),
        ON_THREE_MASTERS(a_master_that_becomes_a_replica_is_noticed),
        ON_THREE_MASTERS(a_master_that_becomes_a_writable_replica_is_noticed),
        ON_THREE_MASTERS(a_writable_replica_is_noticed_without_guards),
        ON_THREE_MASTERS(a_master_that_was_a_replica_for_a_moment_is_noticed),
        ON_THREE_MASTERS(a_failback_to_a_replica_is_noticed),
        ON_THREE_MASTERS(a_failback_that_nobody_watched_is_noticed),
        ON_THREE_MASTERS(a_first_replica_costs_no_trust),
        ON_THREE_MASTERS(a_swapped_database_is_noticed),
        cmocka_unit_test_setup_teardown(a_reload_that_takes_back_less_than_a_second_is_not_noticed,
                                        masters_with_debug, finish),
        ON_THREE_MASTERS(a_server_that_says_nothing_but_read_only_is_asked_now_and_then),
        ON_THREE_MASTERS(whoever_may_not_be_asked_is_not_trusted),
        ON_THREE_MASTERS(whoever_may_not_be_asked_is_trusted_if_so_wished),
        ON_THREE_MASTERS(an_idle_client_notices_who_hangs),
        ON_THREE_MASTERS(scripts_may_be_flushed),
        ON_THREE_MASTERS(full_masters_keep_what_they_have),
        ON_THREE_MASTERS(a_full_master_without_a_marker_is_young),
        ON_THREE_MASTERS(a_snapshot_restored_to_a_full_master_is_not_forgotten),
        ON_THREE_MASTERS(a_master_that_cannot_save_is_still_trusted),
    };
    const size_t count = sizeof(tests) / sizeof(tests[0]);
    const size_t part = argc == 3 ? strtoul(argv[1], NULL, 10) : 1;
    const size_t parts = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
    if (part < 1 || part > parts || parts > count) {
        fprintf(stderr, "usage: guards [PART PARTS]\n");
        return 2;
    }
    const size_t first = count * (part - 1) / parts;
    const size_t end = count * part / parts;
    return _cmocka_run_group_tests("guards", tests + first, end - first, NULL, NULL);
}
