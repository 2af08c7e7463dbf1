/*
 * Durations and numbers: requests that wait, locks that are renewed, TTLs from 1 ms on, and 10,000
 * locks at once.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "watchdog.h"

#include <stdio.h>

#define KEY "orders:42"
#define FIVE 5

/* -------------------------------------------------------------------------------------- waiting */

/* Tries to acquire a held key within these limits. Returns the number of tries. */
static size_t tries_with(struct fixture *f, uint64_t wait_ms, uint32_t retries) {
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    size_t before = executed(f, 4, "set");
    struct call *call;

    request.wait_ms = wait_ms;
    request.retries = retries;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    wait_answered(f, client, 4);
    close_client(f, client);
    return executed(f, 4, "set") - before;
}

static void a_denied_request_tries_as_often_as_requested(void **state) {
    struct fixture *f = *state;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(tries_with(f, 0, 0), 1);
    assert_int_equal(tries_with(f, 0, 1), 2);
    assert_int_equal(tries_with(f, 0, 7), 8);
    assert_int_equal(tries_with(f, REDLOCK_FOREVER, 5), 6);
    assert_int_equal(tries_with(f, UINT64_MAX - 1, 5), 6);
    assert_int_in_range(tries_with(f, 1, UINT32_MAX), 1, 20);
    assert_int_in_range(tries_with(f, 300, UINT32_MAX), 1, 600);
}

static void a_request_may_wait_for_ever(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = begin_acquire(f, client, &request);
    wait_executed(f, 0, "set", 20);
    assert_int_equal(call->ended, 0);
    rival_frees(f, 0, 5, KEY);
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_explained(call, "tries");
}

/* The keys of failed tries are released; those of the successful try have the request's TTL. */
static void retries_ask_for_the_same_ttl(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 60000);
    struct call *call;

    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = begin_acquire(f, client, &request);
    wait_executed(f, 4, "set", 10);
    rival_frees(f, 2, 3, KEY);
    assert_int_equal(await(f, call), REDLOCK_OK);
    for (size_t i = 2; i < FIVE; i++) {
        assert_int_in_range(pttl_at(f, i, KEY), 1, 60000);
    }
}

/* ----------------------------------------------------------------------------- the watchdog */

#define TTL_MS 60000

static void the_watchdog_holds_a_lock_past_its_ttl(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    size_t before = scripts_at(f, 0);
    for (size_t i = 0; i < 5; i++) { /* past the end of the TTL */
        pass_renewal(f, lock, TTL_MS);
        wait_all_answered(f, client);
        assert_true(scripts_at(f, 0) > before + i);
    }
    assert_int_equal(loss->count, 0);
    assert_true(redlock_validity_ms(lock) > 0);
    assert_int_in_range(least_pttl(f, KEY), 1, TTL_MS);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

static void the_watchdog_ends_with_max_hold(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock;

    request.watchdog = true;
    request.max_hold_ms = TTL_MS / 2;
    lock = hold_for(f, client, &request);
    size_t before = scripts_at(f, 0);
    pass_renewal(f, lock, TTL_MS);
    assert_int_equal(pass_until_lost(f, client, 0, TTL_MS / 10, loss), REDLOCK_EEXPIRED);
    assert_int_in_range(scripts_at(f, 0) - before, 1, 2);
    let_go(f, lock);
    wait_holders(f, KEY, 0);
}

static void a_released_lock_is_renewed_no_more(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);
    redlock_lock *lock;
    size_t before;

    request.watchdog = true;
    lock = hold_for(f, client, &request);
    pass_renewal(f, lock, TTL_MS);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_answered(f, client, 0);
    before = scripts_at(f, 0);
    pass_time(TTL_MS);
    run_turns(f, 10);
    wait_answered(f, client, 0);
    assert_int_equal(scripts_at(f, 0), before);
}

/* -------------------------------------------------------------------------------------- numbers */

static void record_nothing(redlock_lock *lock, redlock_status status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
    fail_msg("a refused request has called back");
}

static void short_ttls_are_refused_or_end_well(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (uint64_t ttl = 0; ttl <= 1000; ttl += ttl < 20 ? 1 : 245) {
        redlock_request request = request_for(KEY, ttl);
        struct call *call;

        request.watchdog = ttl % 2 == 0;
        if (ttl <= 2) { /* drift leaves no validity */
            assert_refused(client, redlock_acquire(client, &request, record_nothing, NULL, NULL),
                           REDLOCK_EINVAL, "ttl_ms");
            continue;
        }
        call = acquire(f, client, &request);
        if (call->status == REDLOCK_OK) {
            assert_true(redlock_validity_ms(call->lock) < ttl);
            let_go(f, call->lock);
        } else {
            assert_true(call->status == REDLOCK_EEXPIRED || call->status == REDLOCK_ENOQUORUM);
        }
        wait_holders(f, KEY, 0);
    }
}

#define MANY 10000

static void ten_thousand_locks_at_once(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    struct call *call;
    redlock_client *client;
    size_t count = cycles_here(MANY);

    options.log_level = REDLOCK_LOG_INFO;
    options.node_timeout_ms = 600000;
    options.stall_timeout_ms = 600000;
    client = connect_with(f, &options);
    for (size_t i = 0; i < count; i++) {
        char key[32];
        redlock_request request;

        snprintf(key, sizeof(key), "key:%zu", i);
        request = request_for(key, LONG_TTL_MS);
        begin_acquire(f, client, &request);
    }
    TAILQ_FOREACH(call, &f->calls, link) {
        assert_int_equal(await(f, call), REDLOCK_OK);
    }
    wait_answered(f, client, 0);
    assert_int_equal(masters_query_integer(f->masters, 0, "DBSIZE"), count);
    call = TAILQ_FIRST(&f->calls);
    for (size_t i = 0; i < count; i++, call = TAILQ_NEXT(call, link)) {
        begin_release(f, call->lock);
    }
    for (; call != NULL; call = TAILQ_NEXT(call, link)) {
        assert_int_equal(await(f, call), REDLOCK_OK);
    }
    wait_all_answered(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "DBSIZE"), 0);
        assert_int_equal(master_number(f, i, "expired_keys"), 0);
    }
}

/* Requests are written when the loop next runs, and the nodes' time counts from then on. */
static void nodes_have_their_time_after_a_busy_callback(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < 3; i++) {
        redlock_request request = request_for(i % 2 == 0 ? "even" : "odd", LONG_TTL_MS);
        struct call *call = begin_acquire(f, client, &request);
        pass_time(2 * PATIENT_MS); /* the application's own work, after the call */
        assert_int_equal(await(f, call), REDLOCK_OK);
        let_go(f, call->lock);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_denied_request_tries_as_often_as_requested),
        ON_FIVE_MASTERS(a_request_may_wait_for_ever),
        ON_FIVE_MASTERS(retries_ask_for_the_same_ttl),
        ON_FIVE_MASTERS(the_watchdog_holds_a_lock_past_its_ttl),
        ON_FIVE_MASTERS(the_watchdog_ends_with_max_hold),
        ON_FIVE_MASTERS(a_released_lock_is_renewed_no_more),
        ON_FIVE_MASTERS(short_ttls_are_refused_or_end_well),
        ON_FIVE_MASTERS(ten_thousand_locks_at_once),
        ON_FIVE_MASTERS(nodes_have_their_time_after_a_busy_callback),
    };

    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
