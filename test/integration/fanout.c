/*
 * Lean requests (redlock_fanout): a quorum of the masters has the work of a lock, and the others
 * step in when that fails. Time stands still where a late answer would have the others asked.
 */
#include "clocks.h"
#include "harness.h"
#include "look.h"
#include "rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "jobs:7"
#define FIVE 5
#define THREE 3

static redlock_options lean_options(struct fixture *f, const char *const *uris, size_t count) {
    redlock_options options = patient_options(f, uris, count);

    options.fanout = REDLOCK_FANOUT_QUORUM;
    return options;
}

static redlock_client *lean_client(struct fixture *f) {
    redlock_options options = lean_options(f, masters_uris(f->masters), FIVE);

    return connect_with(f, &options);
}

/* Returns a mask of the masters on which the key exists. */
static unsigned masters_with(struct fixture *f, const char *key) {
    unsigned mask = 0;

    for (size_t i = 0; i < FIVE; i++) {
        mask |= masters_query_integer(f->masters, i, "EXISTS %s", key) > 0 ? 1u << i : 0;
    }
    return mask;
}

static size_t first_of(unsigned mask) {
    return (size_t)__builtin_ctz(mask);
}

/* Holds a lock at the masters that are asked first, and only at these: none of them is late. */
static redlock_lock *hold_lean(struct fixture *f, redlock_client *client,
                               const redlock_request *request) {
    stop_time();
    redlock_lock *lock = hold_for(f, client, request);
    resume_time();
    assert_int_equal(holders(f, KEY), THREE);
    return lock;
}

/* Returns a mask of the masters that are asked first: a lock was held there, and is released. */
static unsigned preferred(struct fixture *f, redlock_client *client,
                          const redlock_request *request) {
    redlock_lock *lock = hold_lean(f, client, request);
    unsigned masters = masters_with(f, KEY);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    return masters;
}

static size_t executed_by_all(struct fixture *f, const char *command) {
    size_t count = 0;

    for (size_t i = 0; i < FIVE; i++) {
        count += executed(f, i, command);
    }
    return count;
}

/* ------------------------------------------------------------------------------ the usual case */

#define KEYS 20

/* Each key has three masters, all masters have some keys, and other masters hear nothing of it. */
static void a_quorum_has_the_work(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    unsigned seen = 0;

    stop_time();
    for (size_t i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%zu", i);
        redlock_request request = request_for(key, LONG_TTL_MS);
        struct call *call = acquire(f, client, &request);
        assert_ended(call, REDLOCK_OK);
        assert_int_equal(votes(call, REDLOCK_VOTE_GRANTED), THREE);
        assert_int_equal(votes(call, REDLOCK_VOTE_NONE), FIVE - THREE);
        unsigned masters = masters_with(f, key);
        assert_int_equal(__builtin_popcount(masters), THREE);
        seen |= masters;
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
        wait_released(f, key);
    }
    wait_all_answered(f, client);
    assert_int_equal(seen, 0x1f);
    assert_int_equal(executed_by_all(f, "set"), THREE * KEYS);
    assert_int_equal(script_calls(f), THREE * KEYS);
    resume_time();
}

/* A client with the URIs in another order asks the same masters, and is denied by all of them. */
static void all_clients_ask_the_same(void **state) {
    struct fixture *f = *state;
    const char *const *uris = masters_uris(f->masters);
    const char *const others[] = {uris[3], uris[0], uris[4], uris[2], uris[1]};
    redlock_options options = lean_options(f, others, FIVE);
    redlock_client *clients[2] = {lean_client(f), connect_with(f, &options)};
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    unsigned masters[2];

    stop_time();
    for (size_t i = 0; i < 2; i++) {
        redlock_lock *lock = hold_for(f, clients[i], &request);
        masters[i] = masters_with(f, KEY);
        size_t before = executed_by_all(f, "set");
        struct call *denied = acquire(f, clients[1 - i], &request);
        assert_ended(denied, REDLOCK_EHELD);
        assert_int_equal(votes(denied, REDLOCK_VOTE_DENIED), THREE);
        assert_int_equal(executed_by_all(f, "set"), before + THREE);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_released(f, KEY);
    }
    assert_int_equal(masters[0], masters[1]);
    resume_time();
}

/* The kinds of locks that scripts take. */
static void so_it_is_for_each_kind(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    const redlock_request *request = f->row;

    stop_time();
    for (size_t i = 0; i < 3; i++) {
        redlock_lock *lock = hold_for(f, client, request);
        assert_true(!request->fenced || redlock_fence(lock) > 0);
        assert_int_equal(holders(f, KEY), THREE);
        assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
        assert_int_equal(holders(f, KEY), THREE);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_released(f, KEY);
    }
    resume_time();
}

/* ------------------------------------------------------------------------- when a master fails */

/* The client has noticed: the others are asked at once. */
static void one_that_is_down_is_not_asked(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    size_t down = first_of(preferred(f, client, &request));

    masters_kill(f->masters, down);
    wait_connected(f, client, FIVE - 1);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    assert_true(votes(call, REDLOCK_VOTE_GRANTED) >= THREE);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* It does not answer: the others are asked when its usual time is over. */
static void one_that_hangs_is_replaced(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    size_t silent = first_of(preferred(f, client, &request));

    freeze(f, silent);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    wait_holders(f, KEY, FIVE - 1); /* the two that had answered, and the others */
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
    thaw(f, silent);
    wait_executed(f, silent, "set", 2);
    wait_released(f, KEY);
}

/* Returns the number of a master's answers that took longer than a second. */
static uint64_t slow_answers(const redlock_client *client, size_t master) {
    redlock_node_stats stats = {.size = sizeof(stats)};
    uint64_t count = 0;

    assert_int_equal(redlock_client_node_stats(client, master, &stats), REDLOCK_OK);
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        count += redlock_histogram_bound_ns(i) > 1000000000 ? stats.round_trip.buckets[i] : 0;
    }
    return count;
}

/* What the answer takes counts from then on: else each late question would make the next later. */
static void who_is_asked_late_is_not_slow(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    unsigned masters = preferred(f, client, &request);

    freeze(f, first_of(masters));
    stop_time();
    struct call *call = begin_acquire(f, client, &request);
    wait_holders(f, KEY, THREE - 1);
    pass_time(PATIENT_MS / 2 + 1);
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_holders(f, KEY, FIVE - 1);
    resume_time();
    for (size_t i = 0; i < FIVE; i++) {
        assert_true((masters >> i & 1) != 0 || slow_answers(client, i) == 0);
    }
    thaw(f, first_of(masters));
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* It has the key of somebody else: the others complete the quorum. */
static void one_that_denies_is_replaced(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    size_t master = first_of(preferred(f, client, &request));

    rival_takes(f, master, master + 1, KEY, LONG_TTL_MS);
    redlock_lock *lock = hold_for(f, client, &request);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 1);
    assert_string_equal(value_at(f, master, KEY), RIVAL);
}

/* A held lock that loses one of its masters is given to the others. */
static void a_held_lock_finds_others(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = hold_lean(f, client, &request);
    size_t lost = first_of(masters_with(f, KEY));

    masters_kill(f->masters, lost);
    wait_connected(f, client, FIVE - 1);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_holders(f, KEY, FIVE - 1);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* One whose key is deleted at one of its masters may have been another's meanwhile. */
static void a_deleted_key_is_a_loss(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = hold_lean(f, client, &request);
    size_t lost = first_of(masters_with(f, KEY));

    rival_frees(f, lost, lost + 1, KEY);
    redlock_lock *others = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    assert_int_equal(let_go(f, others), REDLOCK_OK);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_released(f, KEY);
}

/* The same, where the others stood in for a silent master that turns out to lack the key. */
static void a_key_that_was_deleted_before_is_a_loss(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS / 2);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_lean(f, client, &request);
    unsigned masters = masters_with(f, KEY);
    size_t silent = first_of(masters);

    rival_frees(f, silent, silent + 1, KEY);
    freeze(f, silent);
    stop_time();
    struct call *extension = begin_extend(f, lock, LONG_TTL_MS);
    wait_executed(f, first_of(masters & (masters - 1)), "pexpire", 1);
    pass_time(PATIENT_MS);
    wait_holders(f, KEY, FIVE - 1);
    resume_time();
    thaw(f, silent);
    await(f, extension);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_released(f, KEY);
}

/* A lock that just a quorum had has no master to spare. */
static void a_release_tells_what_was_lost(void **state) {
    struct fixture *f = *state;
    redlock_client *client = lean_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = hold_lean(f, client, &request);
    unsigned masters = masters_with(f, KEY);

    rival_frees(f, first_of(masters), first_of(masters) + 1, KEY);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_released(f, KEY);

    lock = hold_lean(f, client, &request);
    masters_kill(f->masters, first_of(masters));
    wait_connected(f, client, FIVE - 1);
    assert_int_equal(let_go(f, lock), REDLOCK_ENOQUORUM);
    wait_released(f, KEY);
}

/* ---------------------------------------------------------------------------------- many at once
 */

#define RIVALS 5
#define TURNS 30

static void rivals_exclude_each_other(void **state) {
    struct fixture *f = *state;
    struct rivals_options options = {.request = request_for(KEY, LONG_TTL_MS),
                                     .turns = (unsigned)cycles_here(TURNS)};

    options.request.retries = UINT32_MAX;
    struct rivals *rivals = rivals_create(f, &options);
    for (unsigned i = 0; i < RIVALS; i++) {
        rivals_begin(rivals, i % 2 == 0 ? lean_client(f) : connect_client(f));
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    wait_released(f, KEY);
}

/* ---------------------------------------------------------------------------- changes of the list
 */

/* While the list changes all are asked, and a lock of before is given to the nodes that join. */
static void a_change_of_the_list_is_survived(void **state) {
    struct fixture *f = *state;
    const char *const *uris = masters_uris(f->masters);
    redlock_options options = lean_options(f, uris, THREE);
    redlock_client *client = connect_with(f, &options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = hold_for(f, client, &request);

    assert_int_equal(holders(f, KEY), 2);
    assert_int_equal(redlock_client_change_nodes(client, uris, FIVE), REDLOCK_OK);
    wait_connected(f, client, FIVE);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    request = request_for("new", LONG_TTL_MS);
    lock = hold_for(f, client, &request);
    wait_holders(f, "new", FIVE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, "new");
}

int main(void) {
    static const char *const keys[] = {KEY, "jobs:8"};
    redlock_request fenced = request_for(KEY, LONG_TTL_MS);
    redlock_request several = request_for(NULL, LONG_TTL_MS);
    redlock_request reader = request_for(KEY, LONG_TTL_MS);
    redlock_request writer = request_for(KEY, LONG_TTL_MS);

    fenced.fenced = true;
    several.keys = keys;
    several.key_count = 2;
    reader.mode = REDLOCK_READER;
    writer.mode = REDLOCK_WRITER;
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_quorum_has_the_work),
        ON_FIVE_MASTERS(all_clients_ask_the_same),
        ON_ROW("so_it_is_for_fenced_locks", so_it_is_for_each_kind, five_masters, &fenced),
        ON_ROW("so_it_is_for_several_keys", so_it_is_for_each_kind, five_masters, &several),
        ON_ROW("so_it_is_for_readers", so_it_is_for_each_kind, five_masters, &reader),
        ON_ROW("so_it_is_for_writers", so_it_is_for_each_kind, five_masters, &writer),
        ON_FIVE_MASTERS(one_that_is_down_is_not_asked),
        ON_FIVE_MASTERS(one_that_hangs_is_replaced),
        ON_FIVE_MASTERS(who_is_asked_late_is_not_slow),
        ON_FIVE_MASTERS(one_that_denies_is_replaced),
        ON_FIVE_MASTERS(a_held_lock_finds_others),
        ON_FIVE_MASTERS(a_deleted_key_is_a_loss),
        ON_FIVE_MASTERS(a_key_that_was_deleted_before_is_a_loss),
        ON_FIVE_MASTERS(a_release_tells_what_was_lost),
        ON_FIVE_MASTERS(rivals_exclude_each_other),
        ON_FIVE_MASTERS(a_change_of_the_list_is_survived),
    };
    return cmocka_run_group_tests_name("fanout", tests, NULL, NULL);
}
