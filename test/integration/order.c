/*
 * Commands and replies that arrive late, never, or in another order. Proxies hold and cut
 * connections, so that each test plays one exact order of events. Keys live so long that a missing
 * key was released, not expired, unless a test is about expiry.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "master_data.h"
#include "watchdog.h"

#include <stdio.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* ------------------------------------------------------------------------- late, and lost, SETs */

/* Lets a round time out after all nodes but the first, silent ones have voted. */
static redlock_status await_without(struct fixture *f, const struct detour *detour, size_t silent,
                                    struct call *call) {
    for (size_t i = silent; i < FIVE; i++) {
        wait_answered(f, detour->client, i);
    }
    pass_time(PATIENT_MS);
    return await(f, call);
}

static void a_set_that_lands_late_is_undone(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    proxies_hold_requests(detour.proxies, 0, 3, "SET");
    call = begin_acquire(f, detour.client, &request);
    await_without(f, &detour, 3, call);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_true(votes(call, REDLOCK_VOTE_TIMEOUT) >= 3);
    wait_released(f, KEY);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(executed(f, i, "set"), 0);
        proxy_pass_requests(detour.proxies[i]);
        wait_executed(f, i, "set", 1);
    }
    wait_released(f, KEY);
}

static void a_grant_that_arrives_after_its_round_is_undone(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    proxies_hold_replies(detour.proxies, 0, 3);
    struct call *call = begin_acquire(f, detour.client, &request);
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "set", 1);
    }
    assert_int_equal(await_without(f, &detour, 3, call), REDLOCK_ENOQUORUM);
    wait_released(f, KEY);
    proxies_pass_replies(detour.proxies, 0, 3);
    wait_all_answered(f, detour.client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(node_info(detour.client, i).disconnected, 0);
    }
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    assert_ended(acquire(f, detour.client, &request), REDLOCK_OK);
}

static void a_grant_whose_reply_is_lost_is_undone(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    proxies_hold_replies(detour.proxies, 0, 3);
    call = begin_acquire(f, detour.client, &request);
    wait_holders(f, KEY, 5);
    for (size_t i = 0; i < 3; i++) {
        proxy_cut(detour.proxies[i]);
        proxy_pass_replies(detour.proxies[i]); /* of later connections */
    }
    await(f, call);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_int_equal(votes(call, REDLOCK_VOTE_BROKEN), 3);
    wait_released(f, KEY);
}

/* The connections break with the SETs in flight: the retry must not be denied by its own keys. */
static void a_retry_after_broken_connections_succeeds(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    proxies_hold_replies(detour.proxies, 0, FIVE);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = begin_acquire(f, detour.client, &request);
    wait_holders(f, KEY, 5);
    for (size_t i = 0; i < FIVE; i++) {
        proxy_refuse(detour.proxies[i]);
        proxy_cut(detour.proxies[i]);
        proxy_pass_replies(detour.proxies[i]);
    }
    for (size_t i = 0; i < FIVE; i++) {
        wait_disconnected(f, detour.client, i, 2);
        proxy_accept(detour.proxies[i]);
    }
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* ------------------------------------------------------------------------------ retries */

struct tokens {
    size_t count;
    char texts[64][48];
};

static void collect_token(const struct command *command, void *arg) {
    struct tokens *tokens = arg;

    if (command_is(command, "SET", NULL) && tokens->count < 64) {
        command_text(command, 2, tokens->texts[tokens->count], sizeof(tokens->texts[0]));
        tokens->count++;
    }
}

static void a_retry_is_not_blocked_by_its_own_keys(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct tokens tokens = {0};
    struct call *call;

    proxy_watch(detour.proxies[4], collect_token, &tokens);
    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = begin_acquire(f, detour.client, &request);
    wait_arrived(f, detour.proxies[4], "SET", 10);
    assert_int_equal(call->ended, 0);
    rival_frees(f, 0, 3, KEY);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
    for (size_t i = 0; i < tokens.count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(tokens.texts[i], tokens.texts[j]);
        }
    }
    proxy_watch(detour.proxies[4], NULL, NULL);
}

static void a_retry_survives_the_loss_of_a_release(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    proxy_hold_requests(detour.proxies[4], ANY_SCRIPT);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = begin_acquire(f, detour.client, &request);
    wait_arrived(f, detour.proxies[4], ANY_SCRIPT, 1);
    wait_executed(f, 4, "set", 1);
    proxy_strand(detour.proxies[4]); /* held requests stay in flight */
    rival_frees(f, 0, 3, KEY);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    proxy_deliver(detour.proxies[4]);
    assert_int_equal(extend(f, call->lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_all_answered(f, detour.client);
    wait_releases_done(f, detour.client, 4);
}

/* ------------------------------------------------------------------------------ validity */

/* Stops the loop, as for a paused process, until a granted lock has expired. */
static void sleep_until_expired(struct fixture *f) {
    while (holders(f, KEY) > 0) {
    }
}

static void a_grant_that_comes_after_the_ttl_is_none(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, 1000);
    struct call *call;

    proxies_hold_replies(detour.proxies, 0, 3);
    call = begin_acquire(f, detour.client, &request);
    wait_executed(f, 0, "set", 1);
    wait_holders(f, KEY, 0);
    proxies_pass_replies(detour.proxies, 0, 3);
    await(f, call);
    assert_true(call->status == REDLOCK_EEXPIRED || call->status == REDLOCK_ENOQUORUM);
    assert_int_equal(try_lock(f, detour.client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

static void a_process_that_slept_through_the_ttl_has_no_lock(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 1000);
    struct loss *loss = watch_loss(f, &request);
    struct call *call = begin_acquire(f, client, &request);

    do {
        run_turns(f, 1);
    } while (executed(f, 0, "set") == 0);
    sleep_until_expired(f);
    if (call->ended > 0 && call->status == REDLOCK_OK) {
        assert_int_equal(redlock_validity_ms(call->lock), 0);
        assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
        return;
    }
    await(f, call);
    assert_true(call->status == REDLOCK_EEXPIRED || call->status == REDLOCK_ENOQUORUM);
    assert_int_equal(loss->count, 0);
}

static void a_holder_that_slept_through_the_ttl_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, 3000, &loss);

    wait_holders(f, KEY, 5);
    sleep_until_expired(f);
    assert_int_equal(redlock_validity_ms(lock), 0);
    assert_int_equal(redlock_extend(lock, 0, NULL, NULL), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    assert_int_equal(holders(f, KEY), 0);
}

static void an_extension_that_comes_after_the_ttl_is_none(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, 3000);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, detour.client, &request);
    struct call *call;

    wait_holders(f, KEY, 5);
    proxies_hold_replies(detour.proxies, 0, 3);
    call = begin_extend(f, lock, 3000);
    wait_holders(f, KEY, 0);
    proxies_pass_replies(detour.proxies, 0, 3);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_int_equal(await(f, call), REDLOCK_EEXPIRED);
    assert_int_equal(redlock_validity_ms(lock), 0);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    assert_int_equal(holders(f, KEY), 0);
}

static void too_little_validity_is_too_little(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, 10000);
    struct call *call;

    request.min_validity_ms = 9000;
    proxies_hold_replies(detour.proxies, 0, 3);
    call = begin_acquire(f, detour.client, &request);
    wait_holders(f, KEY, 5);
    while (least_pttl(f, KEY) > 8900) {
    }
    proxies_pass_replies(detour.proxies, 0, 3);
    await(f, call);
    assert_true(call->status == REDLOCK_EEXPIRED || call->status == REDLOCK_ENOQUORUM);
    wait_released(f, KEY);
}

static void validity_counts_from_the_try_that_won(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 20000);
    struct call *call;

    rival_takes(f, 0, 3, KEY, 5000);
    request.wait_ms = REDLOCK_FOREVER;
    request.retries = UINT32_MAX;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_OK);
    wait_all_answered(f, client);
    for (size_t i = 3; i < FIVE;
         i++) { /* at the other nodes the rival's key may be about to expire */
        assert_int_in_range(redlock_validity_ms(call->lock), 1, pttl_at(f, i, KEY));
    }
    assert_true(redlock_validity_ms(call->lock) >
                20000 - 5000); /* the time that the request waited */
}

struct ttl_bound {
    struct fixture *f;
    long long pttl;
};

static bool has_sunk(void *arg) {
    const struct ttl_bound *bound = arg;

    return least_pttl(bound->f, KEY) <= bound->pttl;
}

static void validity_counts_from_before_the_first_byte(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, 30000);
    struct ttl_bound bound = {f, 28000};
    struct call *call;

    proxies_hold_replies(detour.proxies, 0, FIVE);
    call = begin_acquire(f, detour.client, &request);
    wait_holders(f, KEY, 5);
    run_until(f, has_sunk, &bound, "two seconds of the TTL have passed");
    proxies_pass_replies(detour.proxies, 0, FIVE);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_in_range(redlock_validity_ms(call->lock), 1, 28000 - 302);
}

/* ------------------------------------------------------------------------------ extensions */

/* While the extension is in flight, the key expires, and a rival acquires and releases it. */
static void an_extension_does_not_revive_a_lock(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, detour.client, &request);
    struct call *call;

    wait_holders(f, KEY, 5);
    proxies_hold_requests(detour.proxies, 0, FIVE, ANY_SCRIPT);
    call = begin_extend(f, lock, LONG_TTL_MS);
    wait_arrived(f, detour.proxies[0], ANY_SCRIPT, 1);
    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    rival_frees(f, 0, 5, KEY);
    proxies_pass_requests(detour.proxies, 0, FIVE);
    assert_int_equal(await(f, call), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    wait_all_answered(f, detour.client);
    assert_int_equal(holders(f, KEY), 0);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    assert_int_equal(holders(f, KEY), 0);
}

/* The first answers of a renewal are lost; its retry must not count keys that it created. */
static void a_retried_extension_creates_nothing(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 3, KEY);
    proxies_hold_replies(detour.proxies, 0, FIVE);
    struct call *call = begin_extend(f, lock, 0);
    for (size_t i = 0; i < FIVE; i++) {
        wait_arrived(f, detour.proxies[i], ANY_SCRIPT, 1);
    }
    assert_int_equal(await_without(f, &detour, FIVE, call), REDLOCK_ENOQUORUM);
    proxies_pass_replies(detour.proxies, 0, FIVE);
    wait_all_answered(f, detour.client);
    assert_int_equal(holders(f, KEY), 2);
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(holders(f, KEY), 2);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_released(f, KEY);
}

/* ------------------------------------------------------------------------------ releases */

static void a_release_overtakes_an_extension(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);
    struct call *extension;
    struct call *release;

    wait_holders(f, KEY, 5);
    proxies_hold_requests(detour.proxies, 0, FIVE, ANY_SCRIPT);
    extension = begin_extend(f, lock, LONG_TTL_MS);
    wait_arrived(f, detour.proxies[4], ANY_SCRIPT, 1);
    release = begin_release(f, lock);
    assert_int_equal(await(f, extension), REDLOCK_ECANCELED);
    proxies_pass_requests(detour.proxies, 0, FIVE);
    assert_int_equal(await(f, release), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_release_overtakes_the_watchdog(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, detour.client, KEY, 60000, &loss);
    struct call *release;

    proxies_hold_requests(detour.proxies, 0, FIVE, ANY_SCRIPT);
    pass_time(20000); /* 1/3 of the TTL */
    wait_arrived(f, detour.proxies[4], ANY_SCRIPT, 1);
    release = begin_release(f, lock);
    proxies_pass_requests(detour.proxies, 0, FIVE);
    assert_int_equal(await(f, release), REDLOCK_OK);
    assert_int_equal(loss->count, 0);
    wait_released(f, KEY);
}

/* The renewal is still in flight on the old connections when the release is done on new ones. */
static void a_renewal_that_lands_after_the_release_does_nothing(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);
    struct call *extension;

    wait_holders(f, KEY, 5);
    proxies_hold_requests(detour.proxies, 0, FIVE, NULL);
    extension = begin_extend(f, lock, LONG_TTL_MS);
    for (size_t i = 0; i < FIVE; i++) {
        wait_arrived(f, detour.proxies[i], ANY_SCRIPT, 1);
    }
    for (size_t i = 0; i < FIVE; i++) {
        proxy_strand(detour.proxies[i]);
    }
    assert_int_equal(await(f, extension), REDLOCK_ENOQUORUM);
    wait_connected(f, detour.client, FIVE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    for (size_t i = 0; i < FIVE; i++) {
        proxy_deliver(detour.proxies[i]);
    }
    assert_int_equal(holders(f, KEY), 0);
}

static void a_top_up_under_way_is_released_too(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    rival_frees(f, 4, 5, KEY);
    proxy_hold_requests(detour.proxies[4], "SET");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_arrived(f, detour.proxies[4], "SET", 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    proxy_pass_requests(detour.proxies[4]);
    wait_executed(f, 4, "set", 2);
    wait_released(f, KEY);
}

/* The extension is decided without the node that turns out to lack the key. */
static void a_node_that_reports_late_is_topped_up_too(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    rival_frees(f, 4, 5, KEY);
    proxy_hold_requests(detour.proxies[4], ANY_SCRIPT);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_arrived(f, detour.proxies[4], ANY_SCRIPT, 1);
    proxy_pass_requests(detour.proxies[4]);
    wait_holders(f, KEY, 5);
    assert_string_equal(value_at(f, 4, KEY), value_at(f, 0, KEY));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void scripts_forgotten_while_a_release_is_under_way(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);
    struct call *release;

    wait_holders(f, KEY, 5);
    proxies_hold_requests(detour.proxies, 0, FIVE, ANY_SCRIPT);
    release = begin_release(f, lock);
    for (size_t i = 0; i < FIVE; i++) {
        wait_arrived(f, detour.proxies[i], ANY_SCRIPT, 1);
    }
    send_to(f, 0, 5, "SCRIPT FLUSH");
    proxies_pass_requests(detour.proxies, 0, FIVE);
    await(f, release);
    assert_ended(release, REDLOCK_OK);
    assert_int_equal(votes(release, REDLOCK_VOTE_ERROR), 0);
    wait_released(f, KEY);
}

/* --------------------------------------------------------------------------- pending releases */

static void nodes_that_were_away_are_released_when_they_come_back(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    go_away(f, &detour, 1);
    go_away(f, &detour, 3);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 2);
    assert_int_equal(node_info(detour.client, 1).pending_releases, 1);
    assert_int_equal(node_info(detour.client, 3).pending_releases, 1);
    proxy_accept(detour.proxies[1]);
    proxy_accept(detour.proxies[3]);
    wait_released(f, KEY);
    wait_releases_done(f, detour.client, 1);
    wait_releases_done(f, detour.client, 3);
}

static void a_release_lost_with_its_connection_is_sent_again(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    proxy_hold_requests(detour.proxies[0], ANY_SCRIPT);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_arrived(f, detour.proxies[0], ANY_SCRIPT, 1);
    wait_holders(f, KEY, 1);
    proxy_cut(detour.proxies[0]);
    proxy_pass_requests(detour.proxies[0]);
    wait_released(f, KEY);
    wait_releases_done(f, detour.client, 0);
}

static void pending_releases_end_with_the_ttl(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, 5000);

    wait_holders(f, KEY, 5);
    go_away(f, &detour, 2);
    let_go(f, lock);
    assert_int_equal(node_info(detour.client, 2).pending_releases, 1);
    wait_holders(f, KEY, 0);
    wait_releases_done(f, detour.client, 2);
    assert_false(node_info(detour.client, 2).connected);
}

static void a_late_release_spares_the_next_holder(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    go_away(f, &detour, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 1);
    rival_takes(f, 0, 1, KEY, LONG_TTL_MS);
    proxy_accept(detour.proxies[0]);
    wait_releases_done(f, detour.client, 0);
    wait_answered(f, detour.client, 0);
    assert_string_equal(value_at(f, 0, KEY), RIVAL);
}

/* The client reacquires the key while the last lock's release is pending. */
static void a_release_of_the_last_time_spares_this_time(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    go_away(f, &detour, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 1);
    lock = hold(f, detour.client, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, 5);
    proxy_accept(detour.proxies[0]);
    wait_holders(f, KEY, 4);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_holders(f, KEY, 5);
    wait_releases_done(f, detour.client, 0);
    assert_string_equal(value_at(f, 0, KEY), value_at(f, 1, KEY));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_lock_is_held_once_across_lost_connections(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_client *rival = connect_client(f);
    redlock_lock *lock = hold(f, detour.client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    for (size_t i = 0; i < FIVE; i++) {
        go_away(f, &detour, i);
    }
    assert_int_equal(try_lock(f, rival, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(try_lock(f, detour.client, KEY, LONG_TTL_MS), REDLOCK_ENOQUORUM);
    for (size_t i = 0; i < FIVE; i++) {
        proxy_accept(detour.proxies[i]);
    }
    wait_connected(f, detour.client, FIVE);
    assert_int_equal(try_lock(f, rival, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(try_lock(f, detour.client, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(try_lock(f, rival, KEY, LONG_TTL_MS), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------ cancellations */

/* Cancels after `replies` of five have been read; after three the cancellation is refused. */
static void cancel_after(struct fixture *f, struct detour *detour, size_t replies) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    proxies_hold_replies(detour->proxies, 0, FIVE);
    call = begin_acquire(f, detour->client, &request);
    wait_holders(f, KEY, 5);
    for (size_t i = 0; i < replies; i++) {
        proxy_pass_replies(detour->proxies[i]);
        wait_answered(f, detour->client, i);
    }
    if (replies < 3) {
        assert_int_equal(call->ended, 0);
        assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
        assert_int_equal(call->ended, 0);
        await(f, call);
        assert_ended(call, REDLOCK_ECANCELED);
    } else {
        await(f, call);
        assert_ended(call, REDLOCK_OK);
        assert_refused(detour->client, redlock_cancel(call->lock), REDLOCK_EINVAL, "acquire");
        begin_release(f, call->lock);
    }
    proxies_pass_replies(detour->proxies, 0, FIVE);
    wait_all_answered(f, detour->client);
    wait_released(f, KEY);
}

static void a_canceled_request_leaves_no_key_at_any_reply_position(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);

    for (size_t replies = 0; replies <= FIVE; replies++) {
        cancel_after(f, &detour, replies);
    }
}

static void a_request_canceled_in_the_same_turn_leaves_no_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    call = begin_acquire(f, client, &request);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_EINVAL);
    await(f, call);
    assert_ended(call, REDLOCK_ECANCELED);
    wait_all_answered(f, client);
    wait_released(f, KEY);
    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_request_canceled_with_its_sets_under_way_leaves_no_key(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    proxies_hold_requests(detour.proxies, 0, FIVE, "SET");
    call = begin_acquire(f, detour.client, &request);
    wait_arrived(f, detour.proxies[4], "SET", 1);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    await(f, call);
    assert_ended(call, REDLOCK_ECANCELED);
    for (size_t i = 0; i < FIVE; i++) {
        proxy_pass_requests(detour.proxies[i]);
        wait_executed(f, i, "set", 1);
    }
    wait_released(f, KEY);
}

#define LOCKS_OF_A_TURN 60

/*
 * Returns the number of calls of the release script in a turn that releases and acquires many keys.
 */
static size_t calls_for(struct fixture *f, redlock_client *client, const char *prefix) {
    redlock_lock *locks[LOCKS_OF_A_TURN];
    struct call *last = NULL, *released = NULL;
    char name[128];

    for (size_t i = 0; i < LOCKS_OF_A_TURN; i++) {
        snprintf(name, sizeof(name), "%sa%04zu", prefix, i);
        locks[i] = hold(f, client, name, LONG_TTL_MS);
    }
    wait_all_answered(f, client);
    size_t before = executed(f, 0, "evalsha");
    for (size_t i = 0; i < LOCKS_OF_A_TURN; i++) {
        snprintf(name, sizeof(name), "%sb%04zu", prefix, i);
        redlock_request request = request_for(name, LONG_TTL_MS);
        released = begin_release(f, locks[i]);
        last = begin_acquire(f, client, &request);
    }
    await(f, last);
    await(f, released);
    wait_all_answered(f, client);
    return executed(f, 0, "evalsha") - before;
}

/* Calls that may name a SET's key are sent before it: the filter must tell keys apart. */
static void releases_of_a_turn_travel_together_whatever_the_keys_length(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    size_t brief = calls_for(f, client, "orders:");
    assert_true(calls_for(f, client, "production:tenant-000042:invoices:") <= 2 * brief + 2);
}

/* ------------------------------------------------------------------- votes that come too late */

/*
 * Ends a try's round before the votes of these nodes arrive; they arrive while the first node,
 * which denied the key, is asked for its holder.
 */
static struct call *end_before_votes(struct fixture *f, size_t from, size_t to) {
    struct detour detour = take_detour(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    size_t scripts = proxy_arrived(detour.proxies[0], ANY_SCRIPT);
    struct call *call;

    proxies_hold_replies(detour.proxies, from, to);
    proxy_hold_requests(detour.proxies[0], ANY_SCRIPT);
    call = begin_acquire(f, detour.client, &request);
    for (size_t i = 0; i < FIVE; i++) {
        if (i < from || i >= to) {
            wait_answered(f, detour.client, i);
        }
    }
    pass_time(PATIENT_MS);
    wait_arrived(f, detour.proxies[0], ANY_SCRIPT, scripts + 1);
    for (size_t i = from; i < to; i++) {
        proxy_pass_replies(detour.proxies[i]);
        wait_answered(f, detour.client, i);
    }
    proxy_pass_requests(detour.proxies[0]);
    await(f, call);
    return call;
}

struct ending {
    const char *name; /* of the test */
    size_t rival_to;  /* a rival holds the key at the nodes up to this one */
    size_t late_to;   /* the votes of nodes 1 up to this one arrive too late */
    redlock_status status;
    redlock_vote vote; /* the vote of the other nodes */
    const char *words[2];
};

static const struct ending endings[] = {
    /* Four nodes granted the key: the single denial did not prevent the quorum. */
    {"grants_that_come_too_late_are_reported_as_such",
     1,
     FIVE,
     REDLOCK_ENOQUORUM,
     REDLOCK_VOTE_LATE,
     {"1 held by another", "4 granted too late"}},
    /* The status follows from the votes that the report shows. */
    {"denials_that_come_late_are_denials", 3, 3, REDLOCK_EHELD, REDLOCK_VOTE_GRANTED, {"", ""}},
};

static void votes_that_come_late_are_reported(void **state) {
    struct fixture *f = *state;
    const struct ending *ending = f->row;

    rival_takes(f, 0, ending->rival_to, KEY, LONG_TTL_MS);
    struct call *call = end_before_votes(f, 1, ending->late_to);
    assert_ended(call, ending->status);
    assert_int_equal(votes(call, REDLOCK_VOTE_DENIED), ending->rival_to);
    assert_int_equal(votes(call, ending->vote), FIVE - ending->rival_to);
    for (size_t i = 0; i < 2; i++) {
        assert_explained(call, ending->words[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_set_that_lands_late_is_undone),
        ON_FIVE_MASTERS(a_grant_that_arrives_after_its_round_is_undone),
        ON_FIVE_MASTERS(a_grant_whose_reply_is_lost_is_undone),
        ON_FIVE_MASTERS(a_retry_after_broken_connections_succeeds),
        ON_FIVE_MASTERS(a_retry_is_not_blocked_by_its_own_keys),
        ON_FIVE_MASTERS(a_retry_survives_the_loss_of_a_release),
        ON_FIVE_MASTERS(a_grant_that_comes_after_the_ttl_is_none),
        ON_FIVE_MASTERS(a_process_that_slept_through_the_ttl_has_no_lock),
        ON_FIVE_MASTERS(a_holder_that_slept_through_the_ttl_is_reported),
        ON_FIVE_MASTERS(an_extension_that_comes_after_the_ttl_is_none),
        ON_FIVE_MASTERS(too_little_validity_is_too_little),
        ON_FIVE_MASTERS(validity_counts_from_the_try_that_won),
        ON_FIVE_MASTERS(validity_counts_from_before_the_first_byte),
        ON_FIVE_MASTERS(an_extension_does_not_revive_a_lock),
        ON_FIVE_MASTERS(a_retried_extension_creates_nothing),
        ON_FIVE_MASTERS(a_release_overtakes_an_extension),
        ON_FIVE_MASTERS(a_release_overtakes_the_watchdog),
        ON_FIVE_MASTERS(a_renewal_that_lands_after_the_release_does_nothing),
        ON_FIVE_MASTERS(a_top_up_under_way_is_released_too),
        ON_FIVE_MASTERS(a_node_that_reports_late_is_topped_up_too),
        ON_FIVE_MASTERS(scripts_forgotten_while_a_release_is_under_way),
        ON_FIVE_MASTERS(nodes_that_were_away_are_released_when_they_come_back),
        ON_FIVE_MASTERS(a_release_lost_with_its_connection_is_sent_again),
        ON_FIVE_MASTERS(pending_releases_end_with_the_ttl),
        ON_FIVE_MASTERS(a_late_release_spares_the_next_holder),
        ON_FIVE_MASTERS(a_release_of_the_last_time_spares_this_time),
        ON_FIVE_MASTERS(a_lock_is_held_once_across_lost_connections),
        ON_FIVE_MASTERS(a_canceled_request_leaves_no_key_at_any_reply_position),
        ON_FIVE_MASTERS(a_request_canceled_in_the_same_turn_leaves_no_key),
        ON_FIVE_MASTERS(a_request_canceled_with_its_sets_under_way_leaves_no_key),
        ON_FIVE_MASTERS(releases_of_a_turn_travel_together_whatever_the_keys_length),
        ON_ROW(endings[0].name, votes_that_come_late_are_reported, five_masters, &endings[0]),
        ON_ROW(endings[1].name, votes_that_come_late_are_reported, five_masters, &endings[1]),
    };

    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
