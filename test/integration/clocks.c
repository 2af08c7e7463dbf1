/*
 * Clocks that jump: the wall clock, which must not matter, and a suspended machine, where the
 * servers' time went on but the loop's timers did not.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "proxy.h"
#include "wait_queue.h"
#include "watchdog.h"

#include <stdlib.h>

#define KEY "orders:42"
#define FIVE 5
#define TTL_MS 60000
#define HOUR 3600

/* A TTL, and lifetime of a counter, that is short enough to wait for. */
#define SHORT_TTL_MS 3000
#define CENTURIES ((time_t)300 * 365 * 24 * HOUR)

static int set_clocks(void **state) {
    set_wall_clock(0);
    set_suspended(0);
    return five_masters(state);
}

static void the_wall_clock_may_jump(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    set_wall_clock(HOUR);
    assert_int_in_range(redlock_validity_ms(lock), 1, TTL_MS);
    pass_renewal(f, lock, TTL_MS);
    pass_renewal(f, lock, TTL_MS);
    assert_int_in_range(redlock_validity_ms(lock), 1, TTL_MS);
    set_wall_clock(-HOUR);
    pass_renewal(f, lock, TTL_MS);
    pass_renewal(f, lock, TTL_MS);
    assert_int_in_range(redlock_validity_ms(lock), 1, TTL_MS);
    assert_int_equal(try_lock(f, client, "other", TTL_MS), REDLOCK_OK);
    assert_int_equal(loss->count, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* The hint for lost counters comes from the wall clock, and must leave room for later fences. */
static void a_wall_clock_centuries_ahead_ruins_no_fence(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    uint64_t fence = 0;

    request.fenced = true;
    set_wall_clock(CENTURIES);
    for (size_t i = 0; i < 6; i++) {
        redlock_lock *lock = hold_for(f, client, &request);
        assert_int_in_range(redlock_fence(lock), fence + 1, (UINT64_C(1) << 53) - 1);
        fence = redlock_fence(lock);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
        set_wall_clock(i < 2 ? CENTURIES : 0);
    }
}

/* Before any master has reported its clock, a waiter draws its ticket by the wall clock. */
static void a_wall_clock_days_ahead_leaves_the_counters_to_others(void **state) {
    static const char *const keys[] = {KEY, KEY "b"};
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    for (int i = 0; i < 5; i++) {
        redlock_request request = waiting_request(KEY);
        request.fenced = true;
        request.permits = i == 1 ? 2 : 0;
        request.mode = i == 2 ? REDLOCK_WRITER : REDLOCK_EXCLUSIVE;
        request.key = i == 3 ? NULL : KEY;
        request.keys = i == 3 ? keys : NULL;
        request.key_count = i == 3 ? 2 : 0;
        request.wait_ms = i == 4 ? 0 : request.wait_ms;
        set_wall_clock(10 * 24 * HOUR);
        struct call *call = begin_acquire(f, create_client(f, &options), &request);
        assert_int_equal(await(f, call), REDLOCK_OK);
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
        set_wall_clock(0);
        redlock_lock *lock = hold_for(f, connect_client(f), &request);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
}

static bool have_no_counter(void *arg) {
    struct fixture *f = arg;
    size_t count = 0;

    for (size_t i = 0; i < FIVE; i++) {
        count += value_at(f, i, KEY "::fence") != NULL;
    }
    return count == 0;
}

/* Returns the fence of a new client whose wall clock is ahead by `seconds`. */
static uint64_t fence_ahead(struct fixture *f, const redlock_options *options, uint64_t wait_ms,
                            time_t seconds) {
    redlock_request request = request_for(KEY, options->max_ttl_ms);

    request.fenced = true;
    request.wait_ms = wait_ms;
    set_wall_clock(seconds);
    redlock_client *client = connect_with(f, options);
    if (options->guards == REDLOCK_GUARDS_ON) {
        wait_trusted(f, client, FIVE);
    }
    redlock_lock *lock = hold_for(f, client, &request);
    uint64_t fence = redlock_fence(lock);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    return fence;
}

/*
 * The counter expires, and with it everything that nodes know of a client that was ahead by an
 * hour, longer than they keep a counter. The next counter still starts at the current time.
 */
static void a_fence_grows_where_its_counter_has_expired(void **state) {
    static const struct {
        redlock_guards guards;
        uint64_t wait_ms;
    } rows[] = {{REDLOCK_GUARDS_OFF, 0}, {REDLOCK_GUARDS_ON, REDLOCK_FOREVER}};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2; i++) {
        redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
        options.guards = rows[i].guards;
        options.max_ttl_ms = options.fence_idle_ms = SHORT_TTL_MS;
        uint64_t fence = fence_ahead(f, &options, rows[i].wait_ms, HOUR);
        run_until(f, have_no_counter, f, "the counters have expired");
        assert_true(fence_ahead(f, &options, rows[i].wait_ms, 0) > fence);
    }
}

static void a_lock_does_not_outlive_a_suspension(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    set_suspended(HOUR);
    assert_int_equal(redlock_validity_ms(lock), 0);
    assert_int_equal(redlock_extend(lock, 0, NULL, NULL), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    let_go(f, lock);
    wait_holders(f, KEY, 0);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

/* The lock's own timer is an hour away, and stood still meanwhile. */
static void a_suspension_is_noticed_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);

    set_suspended(HOUR);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    let_go(f, lock);
    wait_holders(f, KEY, 0);
}

/* The machine is suspended after the SETs were granted, before the replies are read. */
static void an_acquisition_does_not_outlive_a_suspension(void **state) {
    struct fixture *f = *state;
    struct proxy *proxies[FIVE];
    const char *uris[FIVE];
    redlock_request request = request_for(KEY, 60000);
    redlock_options options;
    redlock_client *client;
    struct call *call;

    proxies_create(f, proxies, uris);
    options = patient_options(f, uris, FIVE);
    client = connect_with(f, &options);
    proxies_hold_replies(proxies, 0, FIVE);
    call = begin_acquire(f, client, &request);
    wait_holders(f, KEY, 5);
    set_suspended(HOUR);
    proxies_pass_replies(proxies, 0, FIVE);
    await(f, call);
    assert_true(call->status == REDLOCK_EEXPIRED || call->status == REDLOCK_ENOQUORUM);
    wait_connected(f, client, FIVE);
    wait_holders(f, KEY, 0);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

/* A client with a wrong clock has the same entry in the queue as with a right one. */
static void entries_are_by_the_clocks_of_the_masters(void **state) {
    static const time_t errors[] = {HOUR, -HOUR};
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[2];

    for (size_t k = 0; k < 2; k++) {
        set_wall_clock(errors[k]);
        redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
        options.guards = REDLOCK_GUARDS_ON;
        long long from = clock_at(f, 0);
        /* 1/2 of the requests are made before any master has reported its clock. */
        redlock_client *client = k == 0 ? create_client(f, &options) : connect_with(f, &options);
        calls[k] = begin_acquire(f, client, &request);
        wait_in_queue(f, KEY, (long long)k + 1);
        for (size_t i = 0; i < FIVE; i++) {
            char *score = masters_query(f->masters, i, "EVAL %s 1 " KEY "::queue",
                                        "return redis.call('zrange', KEYS[1], -1, -1, "
                                        "'withscores')[2]");
            long long drawn_ms = strtoll(score, NULL, 10) / 1000;
            assert_int_in_range(drawn_ms, from - 10000, clock_at(f, i) + 10000);
            free(score);
        }
    }
    for (size_t k = 0; k < 2; k++) { /* the masters are too young to be trusted with grants */
        assert_int_equal(redlock_cancel(calls[k]->lock), REDLOCK_OK);
        assert_int_equal(await(f, calls[k]), REDLOCK_ECANCELED);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static bool is_later(void *instant) {
    return real_ms() > *(const uint64_t *)instant;
}

/*
 * Without guards, too, queue entries are in the order of the requests by the masters' clocks. A
 * client reads these while it connects, and errs by half of that time at most, so the requests come
 * further apart.
 */
static void the_wall_clock_does_not_rule_the_queue_without_guards(void **state) {
    struct fixture *f = *state;
    redlock_options options =
        patient_options(f, masters_uris(f->masters), masters_count(f->masters));
    redlock_request request = waiting_request(KEY);
    time_t ahead[] = {HOUR, 0, -HOUR};
    struct call *calls[3];

    options.guards = REDLOCK_GUARDS_OFF;
    redlock_lock *lock = hold(f, connect_with(f, &options), KEY, LONG_TTL_MS);
    for (size_t i = 0; i < 3; i++) {
        uint64_t began = real_ms();

        set_wall_clock(ahead[i]);
        redlock_client *client = connect_with(f, &options);
        wait_all_answered(f, client);
        uint64_t connected = real_ms(), next = connected + (connected - began);
        calls[i] = begin_acquire(f, client, &request);
        wait_in_queue(f, KEY, (long long)i + 1);
        run_until(f, is_later, &next, "the clients' clocks may tell the requests apart");
    }
    set_wall_clock(0);
    take_turns(f, lock, calls, 3);
    wait_queue_empty(f, KEY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_wall_clock_may_jump, set_clocks, finish),
        cmocka_unit_test_setup_teardown(the_wall_clock_does_not_rule_the_queue_without_guards,
                                        set_clocks, finish),
        cmocka_unit_test_setup_teardown(a_wall_clock_centuries_ahead_ruins_no_fence, set_clocks,
                                        finish),
        cmocka_unit_test_setup_teardown(a_wall_clock_days_ahead_leaves_the_counters_to_others,
                                        set_clocks, finish),
        cmocka_unit_test_setup_teardown(entries_are_by_the_clocks_of_the_masters, set_clocks,
                                        finish),
        cmocka_unit_test_setup_teardown(a_fence_grows_where_its_counter_has_expired, set_clocks,
                                        finish),
        cmocka_unit_test_setup_teardown(a_lock_does_not_outlive_a_suspension, set_clocks, finish),
        cmocka_unit_test_setup_teardown(a_suspension_is_noticed_at_once, set_clocks, finish),
        cmocka_unit_test_setup_teardown(an_acquisition_does_not_outlive_a_suspension, set_clocks,
                                        finish),
    };

    return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
