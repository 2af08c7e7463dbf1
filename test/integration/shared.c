/*
 * Readers and writers of a key on real servers: which clients are admitted, the end of shares whose
 * reader died, and that foreign clients see the key as taken.
 */
#include "harness.h"
#include "master_data.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define READERS "orders:42::readers"
#define INTENT "orders:42::writer"
#define FIVE 5
#define TTL_MS 60000

static redlock_request request_as(redlock_mode mode, uint64_t ttl_ms) {
    redlock_request request = request_for(KEY, ttl_ms);
    request.mode = mode;
    return request;
}

static redlock_lock *hold_as(struct fixture *f, redlock_client *client, redlock_mode mode,
                             uint64_t ttl_ms) {
    redlock_request request = request_as(mode, ttl_ms);
    return hold_for(f, client, &request);
}

/* Takes a share that expires while the test waits; on a busy machine after several tries. */
static redlock_lock *hold_briefly(struct fixture *f, redlock_client *client) {
    redlock_request request = request_as(REDLOCK_READER, 300);
    request.wait_ms = REDLOCK_FOREVER;
    return hold_for(f, client, &request);
}

static struct call *acquire_as(struct fixture *f, redlock_client *client, redlock_mode mode) {
    redlock_request request = request_as(mode, TTL_MS);
    return acquire(f, client, &request);
}

/* Makes a client that retries soon. */
static redlock_client *eager_client(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.retry_delay_ms = 5;
    options.retry_delay_max_ms = 20;
    return connect_with(f, &options);
}

/* Returns the number of listed readers; -1: the server is still loading. */
static long long listed_at(struct fixture *f, size_t master) {
    char *answer = masters_query(f->masters, master, "ZCARD " READERS);
    long long count = answer[0] == '-' ? -1 : strtoll(answer, NULL, 10);
    free(answer);
    return count;
}

struct listing {
    struct fixture *f;
    long long readers;
};

static bool lists_so_many(void *arg) {
    const struct listing *listing = arg;
    bool all = true;
    for (size_t i = 0; i < FIVE; i++) {
        all &= listed_at(listing->f, i) == listing->readers;
    }
    return all;
}

static void wait_listed(struct fixture *f, long long readers) {
    struct listing listing = {f, readers};
    run_until(f, lists_so_many, &listing, "all masters list so many readers");
}

/* ---------------------------------------------------------------------------------- exclusion */

static void readers_share_a_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *locks[3];

    for (size_t i = 0; i < 3; i++) {
        locks[i] = hold_as(f, i == 0 ? client : connect_client(f), REDLOCK_READER, TTL_MS);
    }
    wait_listed(f, 3);
    for (size_t i = 0; i < FIVE; i++) {
        assert_string_equal(value_at(f, i, KEY), REDLOCK_SHARED_VALUE);
        assert_int_in_range(pttl_at(f, i, KEY), 1, TTL_MS);
        assert_int_in_range(pttl_at(f, i, READERS), 1, TTL_MS);
        assert_int_equal(masters_query_integer(f->masters, i, "DBSIZE"), 2);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(redlock_validity_ms(locks[i]) > 0);
        assert_int_equal(redlock_fence(locks[i]), 0);
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
    wait_holders(f, KEY, 0);
    wait_holders(f, READERS, 0);
}

static void readers_keep_out_who_wants_it_alone(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *reader = hold_as(f, connect_client(f), REDLOCK_READER, TTL_MS);

    wait_listed(f, 1);
    struct call *call = acquire_as(f, client, REDLOCK_EXCLUSIVE);
    assert_ended(call, REDLOCK_EHELD);
    assert_int_in_range(votes(call, REDLOCK_VOTE_DENIED), 3, FIVE);
    call = acquire_as(f, client, REDLOCK_WRITER);
    assert_ended(call, REDLOCK_EHELD);
    assert_int_in_range(votes(call, REDLOCK_VOTE_DENIED), 3, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        bool has_denied = call->opinions[i].vote == REDLOCK_VOTE_DENIED;
        assert_int_in_range(call->opinions[i].ttl_ms, has_denied, TTL_MS);
        assert_int_equal(pttl_at(f, i, INTENT), -2); /* its last try leaves no intent */
    }
    assert_int_equal(let_go(f, reader), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    assert_int_equal(let_go(f, hold_as(f, client, REDLOCK_WRITER, TTL_MS)), REDLOCK_OK);
}

static void who_holds_it_alone_keeps_out_readers(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *other = connect_client(f);

    for (unsigned i = 0; i < 2; i++) {
        redlock_mode mode = i == 0 ? REDLOCK_EXCLUSIVE : REDLOCK_WRITER;
        redlock_lock *lock = hold_as(f, client, mode, TTL_MS);
        wait_holders(f, KEY, FIVE);
        struct call *call = acquire_as(f, other, REDLOCK_READER);
        assert_ended(call, REDLOCK_EHELD);
        assert_int_in_range(votes(call, REDLOCK_VOTE_DENIED), 3, FIVE);
        assert_ended(acquire_as(f, other, REDLOCK_WRITER), REDLOCK_EHELD);
        assert_int_equal(extend(f, lock, TTL_MS), REDLOCK_OK);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
    }
}

/* SET key token NX PX ttl, as any Redlock client sends it. */
static void other_makes_are_excluded_and_exclude(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *reader = hold_as(f, client, REDLOCK_READER, TTL_MS);

    wait_listed(f, 1);
    for (size_t i = 0; i < FIVE; i++) {
        assert_null(masters_query(f->masters, i, "SET " KEY " plain NX PX 60000"));
    }
    assert_int_equal(let_go(f, reader), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    for (size_t i = 0; i < 3; i++) {
        free(masters_query(f->masters, i, "SET " KEY " plain NX PX 60000"));
    }
    assert_ended(acquire_as(f, client, REDLOCK_READER), REDLOCK_EHELD);
    assert_ended(acquire_as(f, client, REDLOCK_WRITER), REDLOCK_EHELD);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(value_at(f, i, KEY), "plain");
        assert_int_equal(pttl_at(f, i, INTENT), -2);
    }
}

/* A key with the value `shared` but without a list is no share. */
static void a_key_of_that_value_that_is_no_lock_stays(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "SET " KEY " " REDLOCK_SHARED_VALUE));
    }
    struct call *call = acquire_as(f, client, REDLOCK_READER);
    assert_ended(call, REDLOCK_EHELD);
    assert_int_in_range(votes(call, REDLOCK_VOTE_NO_EXPIRY), 3, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(pttl_at(f, i, KEY), -1);
        free(masters_query(f->masters, i, "PEXPIRE " KEY " 60000"));
    }
    assert_ended(acquire_as(f, client, REDLOCK_READER), REDLOCK_EHELD);
    assert_ended(acquire_as(f, client, REDLOCK_WRITER), REDLOCK_EHELD);
    wait_holders(f, KEY, FIVE);
}

/* ---------------------------------------------------------------------------- ends of a share */

static void one_of_several_is_released(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *longer = hold_as(f, client, REDLOCK_READER, LONG_TTL_MS);
    redlock_lock *shorter = hold_as(f, client, REDLOCK_READER, TTL_MS);

    wait_listed(f, 2);
    assert_true(least_pttl(f, KEY) > TTL_MS);
    assert_int_equal(let_go(f, longer), REDLOCK_OK);
    wait_listed(f, 1);
    for (size_t i = 0; i < FIVE; i++) { /* the intent keeps out no more readers */
        assert_int_in_range(pttl_at(f, i, KEY), 1, TTL_MS);
    }
    assert_ended(acquire_as(f, client, REDLOCK_EXCLUSIVE), REDLOCK_EHELD);
    assert_int_equal(let_go(f, shorter), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_dead_reader_lapses(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *living = hold_as(f, client, REDLOCK_READER, LONG_TTL_MS);
    redlock_lock *dead = hold_briefly(f, connect_client(f)); /* never renewed */

    while (redlock_validity_ms(dead) > 0) {
        run_turns(f, 10);
    }
    wait_listed(f, 2); /* no reader has asked since */
    struct listing listing = {f, 1};
    while (!lists_so_many(&listing)) { /* the next reader drops the entry once it has expired */
        assert_int_equal(extend(f, living, 0), REDLOCK_OK);
    }
    assert_int_equal(let_go(f, living), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    assert_int_equal(let_go(f, dead), REDLOCK_ELOST);
}

static void the_last_one_dies(void **state) {
    struct fixture *f = *state;
    redlock_client *client = eager_client(f);
    redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);

    hold_briefly(f, connect_client(f));
    request.wait_ms = REDLOCK_FOREVER;
    assert_ended(acquire(f, client, &request), REDLOCK_OK);
    wait_holders(f, READERS, 0);
}

/*
 * Releases one of two shares while a master is away, then brings the master back. Returns the other
 * share.
 */
static redlock_lock *leave_a_release_pending(struct fixture *f, redlock_client *client) {
    redlock_lock *first = hold_as(f, client, REDLOCK_READER, TTL_MS);
    redlock_lock *second = hold_as(f, client, REDLOCK_READER, TTL_MS);

    wait_listed(f, 2);
    masters_kill(f->masters, 0);
    wait_connected(f, client, 4);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    assert_int_equal(node_info(client, 0).pending_releases, 1);
    masters_restart(f->masters, 0);
    wait_connected(f, client, FIVE);
    wait_releases_done(f, client, 0);
    return second;
}

static void a_release_is_pending(void **state) {
    struct fixture *f = *state;
    redlock_lock *second = leave_a_release_pending(f, connect_client(f));

    /* The master is empty: the pending release finds nothing, which is harmless. */
    assert_int_equal(extend(f, second, 0), REDLOCK_OK); /* tops the share up there */
    wait_listed(f, 1);
    assert_int_equal(let_go(f, second), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

static int five_lasting_masters(void **state) {
    const struct masters_options options = {.persistent = true};
    return start_fixture_with(state, FIVE, &options);
}

static void a_release_is_paid(void **state) {
    struct fixture *f = *state;
    redlock_lock *second = leave_a_release_pending(f, connect_client(f));

    wait_listed(f, 1); /* the release of the other one has arrived */
    assert_int_equal(let_go(f, second), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

/* ------------------------------------------------------------------------------ while it holds */

static void the_watchdog_renews_a_share(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_as(REDLOCK_READER, TTL_MS);

    request.watchdog = true;
    redlock_lock *lock = hold_for(f, client, &request);
    for (size_t i = 0; i < 4; i++) {
        pass_renewal(f, lock, TTL_MS);
    }
    assert_true(redlock_validity_ms(lock) > 0);
    wait_listed(f, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static bool first_lists_two(void *arg) {
    return listed_at(arg, 0) == 2;
}

static void a_share_is_topped_up(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_as(f, client, REDLOCK_READER, TTL_MS);
    redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);

    wait_listed(f, 1);
    free(masters_query(f->masters, 0, "DEL " KEY " " READERS));
    free(masters_query(f->masters, 4, "DEL " KEY));
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_listed(f, 1);
    wait_holders(f, KEY, FIVE);
    assert_true(least_pttl(f, KEY) > TTL_MS);

    /* A writer's intent does not keep out a reader that was already admitted. */
    request.wait_ms = REDLOCK_FOREVER;
    struct call *writer = begin_acquire(f, eager_client(f), &request);
    wait_holders(f, INTENT, FIVE);
    free(masters_query(f->masters, 0, "ZADD " READERS " 9007199254740991 other"));
    free(masters_query(f->masters, 0, "ZREMRANGEBYSCORE " READERS " -inf 9007199254740990"));
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    run_until(f, first_lists_two, f, "the share is listed again");
    free(masters_query(f->masters, 0, "ZREM " READERS " other"));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, writer), REDLOCK_OK);
}

static void a_share_is_lost_with_a_quorum(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_as(REDLOCK_READER, TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_listed(f, 1);
    for (size_t i = 0; i < 3; i++) {
        free(masters_query(f->masters, i, "DEL " KEY));
    }
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
}

static void scripts_that_were_forgotten_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = NULL;

    for (unsigned i = 0; i < 2; i++) {
        send_to(f, 0, FIVE, "SCRIPT FLUSH");
        lock = hold_as(f, client, REDLOCK_READER, TTL_MS);
        send_to(f, 0, FIVE, "SCRIPT FLUSH");
        assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
        send_to(f, 0, FIVE, "SCRIPT FLUSH");
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
        send_to(f, 0, FIVE, "SCRIPT FLUSH");
        assert_int_equal(let_go(f, hold_as(f, client, REDLOCK_WRITER, TTL_MS)), REDLOCK_OK);
        wait_holders(f, KEY, 0);
    }
}

/* ------------------------------------------------------------------------------------ writers */

/*
 * Keeps at least one reader: each leaves when the next one is admitted or refused. A client that
 * only tries now and then finds the key free only after a reader was refused.
 */
static bool readers_make_way(struct fixture *f, redlock_client *client, redlock_lock *older,
                             const struct call *waiting) {
    for (unsigned i = 0; i < 500 && waiting->ended == 0; i++) {
        struct call *newer = acquire_as(f, client, REDLOCK_READER);
        let_go(f, older);
        if (newer->status != REDLOCK_OK) {
            assert_ended(newer, REDLOCK_EHELD);
            return true;
        }
        older = newer->lock;
    }
    let_go(f, older);
    return false;
}

/* Asserts that the writer's intent is gone where the writer was admitted. */
static void assert_no_intents(struct fixture *f, redlock_client *client) {
    wait_all_answered(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        if (value_at(f, i, KEY) != NULL) {
            assert_int_equal(pttl_at(f, i, INTENT), -2);
        }
    }
}

/*
 * Removes intents, which would only expire at nodes where a reader was admitted at the writer's
 * last try.
 */
static void remove_intents(struct fixture *f, redlock_client *client) {
    wait_all_answered(f, client);
    rival_frees(f, 0, FIVE, INTENT);
}

static void a_writer_is_not_starved(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *other = eager_client(f);
    redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);
    redlock_lock *first = hold_as(f, client, REDLOCK_READER, TTL_MS);

    wait_listed(f, 1);
    request.retries = UINT32_MAX;
    struct call *writer = begin_acquire(f, other, &request);
    wait_holders(f, INTENT, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_in_range(pttl_at(f, i, INTENT), 1, TTL_MS);
    }
    struct call *turned_away = acquire_as(f, client, REDLOCK_READER);
    assert_ended(turned_away, REDLOCK_EHELD);
    assert_int_equal(extend(f, first, 0), REDLOCK_OK); /* an admitted reader keeps its share */
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    assert_int_equal(await(f, writer), REDLOCK_OK);
    wait_all_answered(f, client);
    assert_no_intents(f, other);
    assert_int_equal(let_go(f, writer->lock), REDLOCK_OK);
}

static void nor_by_readers_that_keep_coming(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *other = eager_client(f);
    redlock_lock *first = hold_as(f, client, REDLOCK_READER, TTL_MS);

    for (unsigned i = 0; i < 5; i++) {
        redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);
        request.retries = UINT32_MAX;
        wait_listed(f, 1);
        struct call *writer = begin_acquire(f, other, &request);
        wait_holders(f, INTENT, FIVE);
        assert_true(readers_make_way(f, client, first, writer));
        assert_int_equal(await(f, writer), REDLOCK_OK);
        assert_int_equal(let_go(f, writer->lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
        remove_intents(f, other);
        first = hold_as(f, client, REDLOCK_READER, TTL_MS);
    }
    assert_int_equal(let_go(f, first), REDLOCK_OK);
}

/* The writer's intent expires, and readers are admitted again. */
static void a_writer_that_gives_up_is_forgotten(void **state) {
    struct fixture *f = *state;
    redlock_client *client = eager_client(f);
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.node_timeout_ms = 2500;
    options.retry_delay_ms = options.retry_delay_max_ms = 1;
    redlock_client *hasty = connect_with(f, &options);
    redlock_lock *first = hold_as(f, client, REDLOCK_READER, TTL_MS);
    redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);

    wait_listed(f, 1);
    request.retries = 1;
    assert_ended(acquire(f, hasty, &request), REDLOCK_EHELD);
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(pttl_at(f, i, INTENT) <= 2500 + 1 + 2500);
    }
    request = request_as(REDLOCK_READER, TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    struct call *second = acquire(f, client, &request);
    assert_ended(second, REDLOCK_OK);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    assert_int_equal(let_go(f, second->lock), REDLOCK_OK);
}

static void a_writer_may_be_fenced(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_as(REDLOCK_WRITER, TTL_MS);
    uint64_t last = 0;

    request.fenced = true;
    for (unsigned i = 0; i < 5; i++) {
        redlock_lock *lock = hold_for(f, client, &request);
        assert_true(redlock_fence(lock) > last);
        last = redlock_fence(lock);
        wait_holders(f, KEY, FIVE);
        free(masters_query(f->masters, 0, "DEL " KEY));
        assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
        wait_holders(f, KEY, FIVE); /* topped up */
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
        lock = hold_as(f, client, REDLOCK_READER, TTL_MS);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_holders(f, KEY, 0);
    }
    request.mode = REDLOCK_READER;
    assert_refused(client, redlock_acquire(client, &request, (redlock_cb *)1, NULL, NULL),
                   REDLOCK_EINVAL, "fenced");
}

/* ----------------------------------------------------------------------------------- inspection */

struct sight {
    size_t reported;
    redlock_status status;
    bool held;
    char owner[80];
    uint64_t ttl_ms;
    uint32_t readers, readers_at[FIVE];
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct sight *sight = arg;
    *sight = (struct sight){.reported = sight->reported + 1,
                            .status = status,
                            .held = view->held,
                            .ttl_ms = view->ttl_ms,
                            .readers = view->readers};
    snprintf(sight->owner, sizeof(sight->owner), "%s", view->owner);
    for (size_t i = 0; i < FIVE; i++) {
        sight->readers_at[i] = view->nodes[i].readers;
    }
}

static bool was_reported(void *arg) {
    return ((const struct sight *)arg)->reported > 0;
}

static struct sight look(struct fixture *f, redlock_client *client) {
    struct sight sight = {0};
    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &sight), REDLOCK_OK);
    run_until(f, was_reported, &sight, "the inspection was reported");
    return sight;
}

static void readers_are_counted(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.owner = "billing";
    redlock_client *client = connect_with(f, &options);

    assert_int_equal(look(f, client).readers, 0);
    redlock_lock *first = hold_as(f, client, REDLOCK_READER, TTL_MS);
    redlock_lock *second = hold_as(f, client, REDLOCK_READER, TTL_MS);
    wait_listed(f, 2);
    free(masters_query(f->masters, 4, "DEL " KEY));
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.held);
    assert_string_equal(sight.owner, "");
    assert_int_in_range(sight.ttl_ms, 1, TTL_MS);
    assert_int_equal(sight.readers, 2);
    assert_int_equal(sight.readers_at[0], 2);
    assert_int_equal(sight.readers_at[4], 0);
    assert_int_equal(let_go(f, first), REDLOCK_OK);
    assert_int_equal(let_go(f, second), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    redlock_lock *writer = hold_as(f, client, REDLOCK_WRITER, TTL_MS);
    sight = look(f, client);
    assert_string_equal(sight.owner, "billing");
    assert_int_equal(sight.readers, 0);
    assert_int_equal(let_go(f, writer), REDLOCK_OK);
}

/* A renewal writes the list of readers, which full masters permit since it does not grow. */
static void full_masters_renew_a_share(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_as(f, client, REDLOCK_READER, LONG_TTL_MS);

    wait_listed(f, 1);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 1");
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(readers_share_a_key),
        ON_FIVE_MASTERS(readers_keep_out_who_wants_it_alone),
        ON_FIVE_MASTERS(who_holds_it_alone_keeps_out_readers),
        ON_FIVE_MASTERS(other_makes_are_excluded_and_exclude),
        ON_FIVE_MASTERS(a_key_of_that_value_that_is_no_lock_stays),
        ON_FIVE_MASTERS(one_of_several_is_released),
        ON_FIVE_MASTERS(a_dead_reader_lapses),
        ON_FIVE_MASTERS(the_last_one_dies),
        ON_FIVE_MASTERS(a_release_is_pending),
        cmocka_unit_test_setup_teardown(a_release_is_paid, five_lasting_masters, finish),
        ON_FIVE_MASTERS(the_watchdog_renews_a_share),
        ON_FIVE_MASTERS(a_share_is_topped_up),
        ON_FIVE_MASTERS(a_share_is_lost_with_a_quorum),
        ON_FIVE_MASTERS(scripts_that_were_forgotten_cost_nothing),
        ON_FIVE_MASTERS(a_writer_is_not_starved),
        ON_FIVE_MASTERS(nor_by_readers_that_keep_coming),
        ON_FIVE_MASTERS(a_writer_that_gives_up_is_forgotten),
        ON_FIVE_MASTERS(a_writer_may_be_fenced),
        ON_FIVE_MASTERS(readers_are_counted),
        ON_FIVE_MASTERS(full_masters_renew_a_share),
    };

    return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
