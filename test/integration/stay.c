/*
 * Keys with a minimum hold: they stay for a while after an early release, and after their holder
 * has vanished.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "master_data.h"

#include <string.h>

#define KEY "orders:42"
#define FIVE 5

static redlock_lock *hold_at_least(struct fixture *f, redlock_client *client, uint64_t min_hold_ms,
                                   uint64_t ttl_ms) {
    redlock_request request = request_for(KEY, ttl_ms);
    request.min_hold_ms = min_hold_ms;
    return hold_for(f, client, &request);
}

static bool is_nobodys(struct fixture *f, size_t master) {
    const char *value = value_at(f, master, KEY);
    return value != NULL && strspn(value, "0") == 40;
}

/* ----------------------------------------------------------------------------------- min_hold */

static void an_early_release_leaves_the_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_at_least(f, client, 1000000, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_answered(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(is_nobodys(f, i));
        assert_int_in_range(pttl_at(f, i, KEY), 900000,
                            1020000); /* plus 1/100, to allow for drift */
    }
    assert_int_equal(try_lock(f, client, KEY, 1000), REDLOCK_EHELD);
    assert_int_equal(try_lock(f, connect_client(f), KEY, 1000), REDLOCK_EHELD);
}

/* After min_hold, by the client's clock, a release is like any other. */
static void a_late_release_frees_it(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_at_least(f, client, 1, LONG_TTL_MS);
    uint64_t validity_ms = redlock_validity_ms(lock);

    while (redlock_validity_ms(lock) + 2 > validity_ms) {
        run_turns(f, 1);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* The hold ends by itself, and then any client may acquire the key. */
static void it_ends(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_at_least(f, client, 300, LONG_TTL_MS);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    assert_int_equal(let_go(f, hold_for(f, client, &request)), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

/* A pending release makes the key stay at its master, too, for the rest of the time. */
static void a_pending_release_leaves_it_too(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold_at_least(f, detour.client, 1000000, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    go_away(f, &detour, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(node_info(detour.client, 0).pending_releases, 1);
    proxy_accept(detour.proxies[0]);
    wait_connected(f, detour.client, FIVE);
    wait_releases_done(f, detour.client, 0);
    wait_answered(f, detour.client, 0);
    assert_true(is_nobodys(f, 0));
    assert_int_in_range(pttl_at(f, 0, KEY), 900000, 1020000);
}

/* Another client's key is left unchanged. */
static void what_is_not_ours_is_left_alone(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_at_least(f, client, 1000000, LONG_TTL_MS);

    wait_holders(f, KEY, FIVE);
    rival_takes(f, 0, 3, KEY, 40000);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(value_at(f, i, KEY), RIVAL);
        assert_int_in_range(pttl_at(f, i, KEY), 1, 40000);
    }
    wait_holders(f, KEY, FIVE);
}

/* --------------------------------------------------------------------------------- lock_delay */

static redlock_request delayed_request(uint64_t ttl_ms, uint64_t lock_delay_ms) {
    redlock_request request = request_for(KEY, ttl_ms);
    request.lock_delay_ms = lock_delay_ms;
    return request;
}

static void the_nodes_keep_it_for_longer_than_it_is_valid(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = delayed_request(1000000, 500000);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_holders(f, KEY, FIVE);
    assert_int_in_range(redlock_validity_ms(lock), 900000, 1000000);
    assert_int_in_range(least_pttl(f, KEY), 1400000, 1500000);
    assert_int_equal(extend(f, lock, 1200000), REDLOCK_OK);
    wait_all_answered(f, client);
    assert_int_in_range(redlock_validity_ms(lock), 1100000, 1200000);
    assert_int_in_range(least_pttl(f, KEY), 1600000, 1700000);
    struct call *call = begin_release(f, lock);
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_released(f, KEY); /* a release delays no other client */
}

static void an_extension_counts_the_delay_too(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.max_ttl_ms = 1500000;
    redlock_client *client = connect_with(f, &options);
    redlock_request request = delayed_request(1000000, 500000);
    redlock_lock *lock = hold_for(f, client, &request);

    assert_refused(client, redlock_extend(lock, 1000001, NULL, NULL), REDLOCK_EINVAL,
                   "lock_delay_ms");
    assert_int_equal(extend(f, lock, 1000000), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/*
 * After the loss of a holder that vanished, the next one acquires the key when the delay is over.
 */
static void a_holder_that_vanished_delays_the_next(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = delayed_request(60000, 1000000);
    struct loss *loss = watch_loss(f, &request);

    hold_for(f, client, &request);
    pass_time(60000);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    wait_holders(f, KEY, FIVE);
    struct call *call = acquire(f, connect_client(f), &request);
    assert_ended(call, REDLOCK_EHELD);
    size_t deniers = 0; /* other nodes may not have reported the rest of the TTL yet */
    for (size_t i = 0; i < call->opinion_count; i++) {
        if (call->opinions[i].ttl_ms > 0) {
            assert_int_in_range(call->opinions[i].ttl_ms, 900000, 1060000);
            deniers++;
        }
    }
    assert_true(deniers >= 3);
}

/* Nodes that lack the key get it with the delay. */
static void a_top_up_has_the_delay(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = delayed_request(1000000, 500000);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_holders(f, KEY, FIVE);
    rival_frees(f, 0, 1, KEY);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_holders(f, KEY, FIVE);
    assert_int_in_range(pttl_at(f, 0, KEY), 1400000, 1500000);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(an_early_release_leaves_the_key),
        ON_FIVE_MASTERS(a_late_release_frees_it),
        ON_FIVE_MASTERS(it_ends),
        ON_FIVE_MASTERS(a_pending_release_leaves_it_too),
        ON_FIVE_MASTERS(what_is_not_ours_is_left_alone),
        ON_FIVE_MASTERS(the_nodes_keep_it_for_longer_than_it_is_valid),
        ON_FIVE_MASTERS(an_extension_counts_the_delay_too),
        ON_FIVE_MASTERS(a_holder_that_vanished_delays_the_next),
        ON_FIVE_MASTERS(a_top_up_has_the_delay),
    };
    return cmocka_run_group_tests_name("stay", tests, NULL, NULL);
}
