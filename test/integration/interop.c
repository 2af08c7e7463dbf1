/*
 * Foreign Redlock clients on the same keys: the library writes keys that any of them writes and
 * understands, and both exclude each other. The test plays the foreign client: SET NX PX.
 */
#include "harness.h"
#include "master_data.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define TTL_MS 60000

/* Tries once as a plain Redlock client. Returns the number of masters that granted the key. */
static size_t plain_client_tries(struct fixture *f, size_t from, size_t to) {
    size_t granted = 0;

    for (size_t i = from; i < to; i++) {
        char *answer = masters_query(f->masters, i, "SET %s %s NX PX %d", KEY, "plain", TTL_MS);

        granted += answer != NULL && strcmp(answer, "OK") == 0;
        free(answer);
    }
    return granted;
}

static bool is_token(const char *value) {
    for (const char *digit = value; *digit != '\0'; digit++) {
        if (!isdigit((unsigned char)*digit) && (*digit < 'a' || *digit > 'f')) {
            return false;
        }
    }
    return strlen(value) == 40;
}

static void a_lock_is_a_string_of_40_hex_digits_that_expires(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    const char *first;

    hold(f, client, KEY, TTL_MS);
    wait_holders(f, KEY, 5);
    first = value_at(f, 0, KEY);
    assert_true(is_token(first));
    for (size_t i = 0; i < 5; i++) {
        char *type = masters_query(f->masters, i, "TYPE %s", KEY);

        at_finish(f, free, type);
        assert_string_equal(type, "string");
        assert_string_equal(value_at(f, i, KEY), first);
        assert_int_in_range(pttl_at(f, i, KEY), 1, TTL_MS);
        assert_int_equal(masters_query_integer(f->masters, i, "DBSIZE"), 1);
    }
}

/* The value is the same for plain and fenced locks, after renewal, top-up and release. */
static void an_owner_stands_after_the_token(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    options.owner = "billing@host-7";
    redlock_client *client = connect_with(f, &options);

    for (unsigned i = 0; i < 2; i++) {
        redlock_request request = request_for(KEY, TTL_MS);
        request.fenced = i == 1;
        redlock_lock *lock = hold_for(f, client, &request);
        wait_holders(f, KEY, 5);
        assert_int_equal(strlen(value_at(f, 0, KEY)), 40 + strlen("/billing@host-7"));
        assert_string_equal(value_at(f, 0, KEY) + 40, "/billing@host-7");
        free(masters_query(f->masters, 4, "DEL " KEY));
        assert_int_equal(extend(f, lock, TTL_MS), REDLOCK_OK);
        wait_holders(f, KEY, 5);
        assert_string_equal(value_at(f, 4, KEY), value_at(f, 0, KEY));
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
    }
}

static void each_acquisition_has_a_token_of_its_own(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    const char *last = "";

    for (size_t i = cycles_here(20); i > 0; i--) {
        redlock_lock *lock = hold(f, client, KEY, TTL_MS);
        const char *token;

        wait_holders(f, KEY, 5);
        token = value_at(f, 0, KEY);
        assert_string_not_equal(token, last);
        last = token;
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_released(f, KEY);
    }
}

static void a_plain_client_is_refused_what_we_hold(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, TTL_MS);

    wait_holders(f, KEY, 5);
    assert_int_equal(plain_client_tries(f, 0, 5), 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    assert_int_equal(plain_client_tries(f, 0, 5), 5);
}

static void we_are_refused_what_a_plain_client_holds(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);
    struct call *call;

    assert_int_equal(plain_client_tries(f, 1, 4), 3);
    assert_ended(acquire(f, client, &request), REDLOCK_EHELD);
    wait_holders(f, KEY, 3);
    request.wait_ms = REDLOCK_FOREVER;
    call = begin_acquire(f, client, &request);
    wait_executed(f, 0, "set", 3); /* the client retries */
    assert_int_equal(call->ended, 0);
    rival_frees(f, 1, 4, KEY);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* Compare and delete, as in the paper: the script of a plain client deletes only its own key. */
static void a_plain_clients_release_leaves_our_lock(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    const char *script = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                         "return redis.call('del', KEYS[1]) else return 0 end";
    const char *token;

    hold(f, client, KEY, TTL_MS);
    wait_holders(f, KEY, 5);
    token = value_at(f, 0, KEY);
    assert_int_equal(masters_query_integer(f->masters, 0, "EVAL %s 1 %s %s", script, KEY, "plain"),
                     0);
    assert_int_equal(masters_query_integer(f->masters, 0, "EVAL %s 1 %s %s", script, KEY, token),
                     1);
    assert_int_equal(holders(f, KEY), 4);
}

/* Returns whether the masters know DELEX, as Redis 8.4 and Valkey 9.2 do. Prints a note if not. */
static bool knows_delex(struct fixture *f) {
    char *answer = masters_query(f->masters, 0, "DELEX %s IFEQ %s", "none", "none");
    bool is_known = answer != NULL && strncmp(answer, "-ERR unknown command", 20) != 0;

    if (!is_known) {
        print_message("# skipped: the server has no DELEX (Redis >= 8.4, Valkey >= 9.2)\n");
    }
    free(answer);
    return is_known;
}

static long long delex(struct fixture *f, size_t index, const char *token) {
    return masters_query_integer(f->masters, index, "DELEX %s IFEQ %s", KEY, token);
}

/* Releases as the page about distributed locks of redis.io has done since 2026. */
static void a_release_by_delex_leaves_our_lock(void **state) {
    struct fixture *f = *state;

    if (!knows_delex(f)) {
        return; /* cmocka's skip() counts as a failure in TAP */
    }
    redlock_client *client = connect_client(f);
    hold(f, client, KEY, TTL_MS);
    wait_holders(f, KEY, 5);
    assert_int_equal(delex(f, 0, "plain"), 0);
    assert_int_equal(holders(f, KEY), 5);
    assert_int_equal(delex(f, 0, value_at(f, 0, KEY)), 1);
    assert_int_equal(holders(f, KEY), 4);
}

static void a_release_by_delex_lets_us_have_the_key(void **state) {
    struct fixture *f = *state;

    if (!knows_delex(f)) {
        return;
    }
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);
    assert_int_equal(plain_client_tries(f, 0, 5), 5);
    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = begin_acquire(f, client, &request);
    wait_executed(f, 0, "set", 3); /* the client retries */
    assert_int_equal(call->ended, 0);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(delex(f, i, "plain"), 1);
    }
    await(f, call);
    assert_ended(call, REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_lock_is_a_string_of_40_hex_digits_that_expires),
        ON_FIVE_MASTERS(an_owner_stands_after_the_token),
        ON_FIVE_MASTERS(each_acquisition_has_a_token_of_its_own),
        ON_FIVE_MASTERS(a_plain_client_is_refused_what_we_hold),
        ON_FIVE_MASTERS(we_are_refused_what_a_plain_client_holds),
        ON_FIVE_MASTERS(a_plain_clients_release_leaves_our_lock),
        ON_FIVE_MASTERS(a_release_by_delex_leaves_our_lock),
        ON_FIVE_MASTERS(a_release_by_delex_lets_us_have_the_key),
    };

    return cmocka_run_group_tests_name("interop", tests, NULL, NULL);
}
