/*
 * Holders of a key: at most one client at a time, identified by the token alone; and the reports to
 * the other clients.
 */
#include "harness.h"
#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"

/* ----------------------------------------------------------------------------------- the holder */

static void a_held_key_is_refused_until_it_is_released(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);
    redlock_lock *lock = hold(f, first, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    assert_int_equal(try_lock(f, second, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    assert_int_equal(try_lock(f, first, KEY, LONG_TTL_MS), REDLOCK_EHELD);
    wait_holders(f, KEY, 5);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    lock = hold(f, second, KEY, LONG_TTL_MS);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* Makes two requests for one key in one turn, and counts the successful ones. */
static size_t winners(struct fixture *f, redlock_client *first, redlock_client *second) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *calls[] = {begin_acquire(f, first, &request), begin_acquire(f, second, &request)};
    size_t count = 0;

    for (size_t i = 0; i < 2; i++) {
        if (await(f, calls[i]) == REDLOCK_OK) {
            count++;
            assert_true(redlock_validity_ms(calls[i]->lock) > 0);
        } else {
            assert_ended(calls[i], REDLOCK_EHELD);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        if (calls[i]->status == REDLOCK_OK) {
            assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
        }
    }
    wait_released(f, KEY);
    return count;
}

static void two_requests_at_once_never_both_win(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);

    for (size_t i = cycles_here(50); i > 0; i--) {
        assert_int_in_range(winners(f, first, second), 0, 1);
        assert_int_in_range(winners(f, second, first), 0, 1);
        assert_int_in_range(winners(f, first, first), 0, 1);
    }
}

static void a_lock_that_is_not_renewed_expires(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);
    redlock_request request = request_for(KEY, 5000);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, first, &request);
    redlock_request patient = request_for(KEY, LONG_TTL_MS);

    patient.wait_ms = REDLOCK_FOREVER;
    redlock_lock *next = hold_for(f, second, &patient);
    assert_int_equal(loss->count, 1);
    assert_int_equal(loss->status, REDLOCK_EEXPIRED);
    assert_int_equal(redlock_validity_ms(lock), 0);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    /*
     * Keys expire at slightly different times: the next holder may have a bare quorum, and keeps
     * it.
     */
    assert_int_equal(let_go(f, next), REDLOCK_OK);
}

static void a_key_is_free_for_the_next_when_its_release_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);

    for (size_t i = cycles_here(50); i > 0; i--) {
        redlock_lock *lock = hold(f, first, KEY, LONG_TTL_MS);

        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        lock = hold(f, second, KEY, LONG_TTL_MS);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
}

static void one_client_may_ask_again_right_after_its_release(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    for (size_t i = cycles_here(50); i > 0; i--) {
        struct call *release = begin_release(f, lock);
        struct call *again = begin_acquire(f, client, &request);

        await(f, release);
        await(f, again);
        assert_ended(release, REDLOCK_OK);
        assert_ended(again, REDLOCK_OK);
        lock = again->lock;
    }
}

static void a_key_may_be_any_bytes(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = REDLOCK_REQUEST_INIT;
    const char key[] = "\r\nline\0b \r\n$1\r\n*%s\xff\xfe'\"{}";
    redlock_lock *lock;
    size_t length;

    request.key = key;
    request.key_length = sizeof(key) - 1;
    lock = hold_for(f, client, &request);
    assert_memory_equal(redlock_key(lock, &length), key, sizeof(key) - 1);
    assert_int_equal(length, sizeof(key) - 1);
    wait_all_answered(f, client);
    assert_int_equal(
        masters_query_integer(f->masters, 0, "EXISTS %b", key, (size_t)(sizeof(key) - 1)), 1);
    assert_int_equal(extend(f, lock, 20000), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void keys_do_not_disturb_each_other(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *one = hold(f, client, "key", LONG_TTL_MS);
    redlock_lock *two = hold(f, client, "keys", LONG_TTL_MS);

    assert_int_equal(let_go(f, one), REDLOCK_OK);
    wait_released(f, "key");
    assert_int_equal(extend(f, two, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, two), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------ a foreign token */

static void another_ones_key_is_not_released(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_holders(f, KEY, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(value_at(f, i, KEY), RIVAL);
    }
}

static void another_ones_key_is_not_extended(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, 20000);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_holders(f, KEY, 5);
    rival_takes(f, 0, 3, KEY, 20000);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(redlock_validity_ms(lock), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(value_at(f, i, KEY), RIVAL);
        assert_int_in_range(pttl_at(f, i, KEY), 1, 20000);
    }
    assert_int_equal(redlock_extend(lock, 1000, NULL, NULL), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
}

static void a_minority_lost_to_another_changes_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, 20000);

    wait_holders(f, KEY, 5);
    rival_takes(f, 3, 5, KEY, LONG_TTL_MS);
    assert_int_equal(extend(f, lock, 30000), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 2);
}

/* The release of a lost lock removes the lock's remaining keys, and no others. */
static void the_rest_of_a_lost_lock_is_released(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    rival_takes(f, 0, 2, KEY, LONG_TTL_MS);
    rival_frees(f, 2, 3, KEY);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_holders(f, KEY, 2);
    assert_string_equal(value_at(f, 0, KEY), RIVAL);
    assert_string_equal(value_at(f, 1, KEY), RIVAL);
}

/* ------------------------------------------------------------------------------- extensions */

static void an_extension_counts_from_its_call(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, 60000);

    wait_holders(f, KEY, 5);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_true(redlock_validity_ms(lock) > LONG_TTL_MS / 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void an_extension_never_shortens(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    wait_holders(f, KEY, 5);
    assert_int_equal(extend(f, lock, 1000), REDLOCK_OK);
    for (size_t i = 0; i < 5; i++) {
        assert_true(pttl_at(f, i, KEY) > LONG_TTL_MS / 2);
    }
    assert_true(redlock_validity_ms(lock) > LONG_TTL_MS / 2);
}

static void an_extension_by_0_is_by_the_requests_ttl(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    uint64_t before = redlock_validity_ms(lock);

    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    assert_int_in_range(redlock_validity_ms(lock), LONG_TTL_MS / 2,
                        LONG_TTL_MS - LONG_TTL_MS / 100);
    assert_int_in_range(before, LONG_TTL_MS / 2, LONG_TTL_MS - LONG_TTL_MS / 100);
}

/* The reported validity is never longer than the servers keep the key. */
static void validity_is_never_more_than_the_servers_keep(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, 30000);

    for (size_t i = cycles_here(20); i > 0; i--) {
        long long kept;

        assert_int_equal(extend(f, lock, 30000), REDLOCK_OK);
        assert_int_in_range(redlock_validity_ms(lock), 1, 30000 - 302);
        wait_all_answered(f, client);
        kept = least_pttl(f, KEY);
        assert_int_in_range(redlock_validity_ms(lock), 1, kept);
    }
}

/* -------------------------------------------------------------------------------------- reports */

static void a_denied_request_says_for_how_long(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *denied;
    size_t reported = 0;

    hold(f, first, KEY, 60000);
    wait_holders(f, KEY, 5);
    denied = acquire(f, second, &request);
    assert_ended(denied, REDLOCK_EHELD);
    for (size_t i = 0; i < 5; i++) {
        if (denied->opinions[i].ttl_ms > 0) {
            assert_int_equal(denied->opinions[i].vote, REDLOCK_VOTE_DENIED);
            assert_int_in_range(denied->opinions[i].ttl_ms, 1, 60000);
            reported++;
        }
    }
    assert_true(reported >= 3);
    assert_explained(denied, "held by another");
    assert_explained(denied, "3 of 5 nodes");
    assert_explained(denied, masters_address(f->masters, 0));
}

/* The handle that is passed to its callback identifies which of several requests was denied. */
static void the_denied_key_is_named(void **state) {
    struct fixture *f = *state;
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);
    const char *keys[] = {"free:1", KEY, "free:2"};
    struct call *calls[3];

    hold(f, first, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, 5);
    for (size_t i = 0; i < 3; i++) {
        redlock_request request = request_for(keys[i], LONG_TTL_MS);

        calls[i] = begin_acquire(f, second, &request);
    }
    for (size_t i = 0; i < 3; i++) {
        size_t length;

        assert_memory_equal(redlock_key(calls[i]->lock, &length), keys[i], strlen(keys[i]));
        assert_int_equal(length, strlen(keys[i]));
    }
    for (size_t i = 0; i < 3; i++) {
        await(f, calls[i]);
        assert_ended(calls[i], i == 1 ? REDLOCK_EHELD : REDLOCK_OK);
    }
}

static void a_key_of_another_type_is_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *denied;

    send_to(f, 0, 5, "RPUSH " KEY " one");
    denied = acquire(f, client, &request);
    assert_ended(denied, REDLOCK_EHELD);
    assert_true(votes(denied, REDLOCK_VOTE_WRONG_TYPE) >= 3);
    assert_explained(denied, "no lock");
    assert_explained(denied, "type");
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "LLEN " KEY), 1);
    }
}

static void a_key_without_expiry_is_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *denied;

    send_to(f, 0, 5, "SET " KEY " for-ever");
    denied = acquire(f, client, &request);
    assert_ended(denied, REDLOCK_EHELD);
    assert_true(votes(denied, REDLOCK_VOTE_NO_EXPIRY) >= 3);
    assert_explained(denied, "no lock");
    assert_explained(denied, "expir");
    assert_string_equal(value_at(f, 0, KEY), "for-ever");
}

static void a_key_that_became_a_list_is_lost(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    struct call *release;

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 3, KEY);
    send_to(f, 0, 3, "RPUSH " KEY " one");
    release = begin_release(f, lock);
    await(f, release);
    assert_ended(release, REDLOCK_ELOST);
    assert_true(votes(release, REDLOCK_VOTE_WRONG_TYPE) >= 3);
    wait_holders(f, KEY, 3);
}

/* ---- another database, another user ---- */

static void uris_for(struct fixture *f, const char *login, unsigned db, char text[5][128],
                     const char *uris[5]) {
    for (size_t i = 0; i < 5; i++) {
        snprintf(text[i], 128, "redis://%s127.0.0.1:%d/%u", login, masters_port(f->masters, i), db);
        uris[i] = text[i];
    }
}

/*
 * Requests queue until the first handshake is done. If a server refuses SELECT, it still runs the
 * SETs after it, in database 0.
 */
static void a_grant_after_a_refused_select_does_not_count(void **state) {
    struct fixture *f = *state;
    static char narrow[5][128], wide[5][128];
    const char *narrows[5], *wides[5];

    for (size_t i = 0; i < 5; i++) {
        free(masters_query(f->masters, i,
                           "ACL SETUSER narrow on >pw ~* +set +get +del +pttl +pexpire +eval "
                           "+evalsha"));
    }
    uris_for(f, "", 5, wide, wides);
    uris_for(f, "narrow:pw@", 5, narrow, narrows);
    redlock_options options = patient_options(f, wides, 5);
    redlock_client *one = connect_with(f, &options);
    redlock_lock *lock = hold(f, one, KEY, LONG_TTL_MS);
    options = patient_options(f, narrows, 5);
    redlock_client *other = create_client(f, &options);
    assert_int_not_equal(try_lock(f, other, KEY, LONG_TTL_MS), REDLOCK_OK);
    assert_true(redlock_validity_ms(lock) > 0);
}

static void a_database_that_does_not_exist_grants_nothing(void **state) {
    struct fixture *f = *state;
    static char text[5][128];
    const char *uris[5];

    uris_for(f, "", 99, text, uris);
    redlock_options options = patient_options(f, uris, 5);
    redlock_client *client = create_client(f, &options);
    assert_int_not_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_held_key_is_refused_until_it_is_released),
        ON_FIVE_MASTERS(two_requests_at_once_never_both_win),
        ON_FIVE_MASTERS(a_lock_that_is_not_renewed_expires),
        ON_FIVE_MASTERS(a_key_is_free_for_the_next_when_its_release_is_reported),
        ON_FIVE_MASTERS(one_client_may_ask_again_right_after_its_release),
        ON_FIVE_MASTERS(a_key_may_be_any_bytes),
        ON_FIVE_MASTERS(keys_do_not_disturb_each_other),
        ON_FIVE_MASTERS(another_ones_key_is_not_released),
        ON_FIVE_MASTERS(another_ones_key_is_not_extended),
        ON_FIVE_MASTERS(a_minority_lost_to_another_changes_nothing),
        ON_FIVE_MASTERS(the_rest_of_a_lost_lock_is_released),
        ON_FIVE_MASTERS(an_extension_counts_from_its_call),
        ON_FIVE_MASTERS(an_extension_never_shortens),
        ON_FIVE_MASTERS(an_extension_by_0_is_by_the_requests_ttl),
        ON_FIVE_MASTERS(validity_is_never_more_than_the_servers_keep),
        ON_FIVE_MASTERS(a_denied_request_says_for_how_long),
        ON_FIVE_MASTERS(the_denied_key_is_named),
        ON_FIVE_MASTERS(a_key_of_another_type_is_named),
        ON_FIVE_MASTERS(a_key_without_expiry_is_named),
        ON_FIVE_MASTERS(a_key_that_became_a_list_is_lost),
        ON_FIVE_MASTERS(a_grant_after_a_refused_select_does_not_count),
        ON_FIVE_MASTERS(a_database_that_does_not_exist_grants_nothing),
    };

    return cmocka_run_group_tests_name("exclusion", tests, NULL, NULL);
}
