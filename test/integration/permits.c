/*
 * Permits: a semaphore never has more holders than permits. A held permit is a lock like any other,
 * and finding a free one takes at most a second round trip.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "pool:7"
#define FIVE 5
#define THREE 3
#define MOST 4 /* the number of permits in most tests */

static int three_masters(void **state) {
    return start_fixture(state, THREE, NULL);
}

#define ON_THREE_MASTERS(test) cmocka_unit_test_setup_teardown(test, three_masters, finish)

static redlock_request permit_request(uint32_t permits) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    request.permits = permits;
    return request;
}

static redlock_lock *hold_permit(struct fixture *f, redlock_client *client, uint32_t permits) {
    redlock_request request = permit_request(permits);
    return hold_for(f, client, &request);
}

/* Returns the key of one permit. */
static const char *key_of(uint32_t permit) {
    static const char *const keys[] = {KEY ":0", KEY ":1", KEY ":2", KEY ":3"};
    assert_int_in_range(permit, 0, MOST - 1);
    return keys[permit];
}

/* Returns the number of a lock's permit. */
static uint32_t permit_of(const redlock_lock *lock) {
    size_t length;
    const char *key = redlock_key(lock, &length);
    assert_int_equal(length, strlen(KEY) + 2);
    assert_memory_equal(key, KEY ":", strlen(KEY) + 1);
    return (uint32_t)(key[length - 1] - '0');
}

static void assert_not_acquired(struct fixture *f, redlock_client *client, uint32_t permits) {
    redlock_request request = permit_request(permits);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    assert_explained(call, "held by another, for");
}

static void wait_all_free(struct fixture *f) {
    for (uint32_t i = 0; i < MOST; i++) {
        wait_released(f, key_of(i));
    }
}

/* ---------------------------------------------------------------------------- number of holders */

/* Each holder has its own permit. */
static void so_many_hold_it_at_once_and_no_more(void **state) {
    struct fixture *f = *state;
    redlock_client *clients[2] = {connect_client(f), connect_client(f)};

    for (uint32_t permits = 1; permits <= MOST; permits++) {
        redlock_lock *locks[MOST];
        uint32_t seen = 0;
        for (uint32_t i = 0; i < permits; i++) {
            locks[i] = hold_permit(f, clients[i % 2], permits);
            seen |= 1u << permit_of(locks[i]);
        }
        assert_int_equal(seen, (1u << permits) - 1);
        assert_not_acquired(f, clients[0], permits);
        assert_not_acquired(f, clients[1], permits);
        for (uint32_t i = 0; i < permits; i++) {
            assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
        }
        wait_all_free(f);
    }
}

static void as_many_as_there_may_be(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(REDLOCK_MAX_PERMITS);
    static redlock_lock *locks[REDLOCK_MAX_PERMITS];

    request.wait_ms = REDLOCK_FOREVER;
    for (uint32_t i = 0; i < REDLOCK_MAX_PERMITS; i++) {
        locks[i] = hold_for(f, client, &request);
    }
    assert_not_acquired(f, client, REDLOCK_MAX_PERMITS);
    for (uint32_t i = 0; i < REDLOCK_MAX_PERMITS; i++) {
        char key[32];
        snprintf(key, sizeof(key), KEY ":%u", i);
        assert_true(holders(f, key) >= 2);
    }
    for (uint32_t i = 0; i < REDLOCK_MAX_PERMITS; i++) {
        begin_release(f, locks[i]);
    }
}

/* The request follows one that differs only in its key. */
static void a_key_without_room_for_a_permit_is_refused(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(MOST);
    redlock_lock *lock = hold_for(f, client, &request);
    static char key[REDLOCK_MAX_KEY];
    redlock_lock *other = NULL;

    memset(key, 'k', REDLOCK_MAX_KEY - 3);
    request.key = key;
    assert_refused(client, redlock_acquire(client, &request, (redlock_cb *)1, NULL, &other),
                   REDLOCK_EINVAL, "key: ");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void wrong_numbers_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(REDLOCK_MAX_PERMITS + 1);
    static char key[REDLOCK_MAX_KEY];
    redlock_lock *lock = NULL;

    assert_refused(client, redlock_acquire(client, &request, (redlock_cb *)1, NULL, &lock),
                   REDLOCK_EINVAL, "permits: ");
    memset(key, 'k', REDLOCK_MAX_KEY - 3);
    request.permits = 1;
    request.key = key;
    assert_refused(client, redlock_acquire(client, &request, (redlock_cb *)1, NULL, &lock),
                   REDLOCK_EINVAL, "key: ");
}

/* The semaphore's own key is not among those of its permits. */
static void a_lock_of_the_same_name_is_another(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    redlock_lock *permit = hold_permit(f, client, 1);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(let_go(f, permit), REDLOCK_OK);
}

/* ------------------------------------------------------------------------------ round trips */

/* A client whose tries are counted by the proxies. */
struct counted {
    struct detour way;
    size_t tries[FIVE]; /* number of calls for permits so far */
};

/* Counts the tries of a call, which has one key and five arguments for each permit. */
static void count_tries(const struct command *command, void *arg) {
    *(size_t *)arg +=
        command_is_script(command) && command_keys(command) == 1 && command->count == 3 + 1 + 5;
}

static struct counted *connect_counted(struct fixture *f) {
    struct counted *counted = calloc(1, sizeof(*counted));

    assert_non_null(counted);
    at_finish(f, free, counted);
    counted->way = take_detour(f);
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        proxy_watch(counted->way.proxies[i], count_tries, &counted->tries[i]);
    }
    return counted;
}

/* Acquires at the nodes from `first` on. Returns the number of round trips. */
static size_t round_trips(struct fixture *f, struct counted *counted, size_t first,
                          bool is_fenced) {
    size_t count = masters_count(f->masters);
    redlock_request request = permit_request(MOST);

    memset(counted->tries, 0, sizeof(counted->tries));
    request.fenced = is_fenced;
    redlock_lock *lock = hold_for(f, counted->way.client, &request);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    for (size_t i = first; i < count; i++) {
        wait_answered(f, counted->way.client, i);
        assert_int_equal(counted->tries[i], counted->tries[first]);
    }
    return counted->tries[first];
}

#define ROUNDS 80 /* in 1 of 10^10 runs no first try succeeds */

static void without_others_it_takes_one_round_trip(void **state) {
    struct fixture *f = *state;
    struct counted *counted = connect_counted(f);

    for (size_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(round_trips(f, counted, 0, i % 2), 1);
    }
}

/* Mostly two are needed: three of four permits are taken, and the first try is for any permit. */
static void where_one_is_free_a_second_round_trip_is_enough(void **state) {
    struct fixture *f = *state;
    redlock_client *other = connect_client(f);
    struct counted *counted;
    size_t seen[3] = {0};

    counted = connect_counted(f);
    for (size_t i = 0; i + 1 < MOST; i++) {
        hold_permit(f, other, MOST);
    }
    wait_all_answered(f, other);
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t trips = round_trips(f, counted, 0, i % 2);
        assert_int_in_range(trips, 1, 2);
        seen[trips]++;
    }
    print_message("# %zu by the first round trip, %zu by the second\n", seen[1], seen[2]);
    assert_true(seen[1] > 0 && seen[2] > 0);
}

/* A minority of the nodes is unreachable. */
static void a_second_round_trip_is_enough_for_the_nodes_that_are_left(void **state) {
    struct fixture *f = *state;
    redlock_client *other = connect_client(f);
    struct counted *counted;

    for (size_t i = 0; i + 1 < MOST; i++) {
        hold_permit(f, other, MOST);
    }
    wait_all_answered(f, other);
    counted = connect_counted(f);
    go_away(f, &counted->way, 0);
    go_away(f, &counted->way, 1);
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_int_in_range(round_trips(f, counted, 2, i % 2), 1, 2);
    }
}

/* ------------------------------------------------------------------ why holders are not counted */

/* Makes a client that cannot reach one of three masters. */
static struct counted *connect_past(struct fixture *f, size_t unreachable) {
    struct counted *counted = connect_counted(f);

    go_away(f, &counted->way, unreachable);
    return counted;
}

/* Returns whether a node that counts holders would admit another one: it has room for two. */
static bool is_let_in_by_count(struct fixture *f, size_t master) {
    return masters_query_integer(f->masters, master, "INCR counted") <= 2;
}

/*
 * Three clients reach the masters A and B, B and C, A and C: two of three masters that count up to
 * two would admit each client, so there would be three holders.
 */
static void where_counting_lets_three_in_only_two_get_a_permit(void **state) {
    struct fixture *f = *state;
    struct counted *clients[THREE];
    struct call *calls[THREE];
    redlock_request request = permit_request(2);
    size_t let_in = 0;

    for (size_t i = 0; i < THREE; i++) {
        size_t votes_by_count = 0;
        clients[i] = connect_past(f, i);
        calls[i] = acquire(f, clients[i]->way.client, &request);
        for (size_t master = 0; master < THREE; master++) {
            bool is_reached = clients[i]->tries[master] > 0;
            assert_int_equal(is_reached, master != i);
            votes_by_count += is_reached && is_let_in_by_count(f, master);
        }
        let_in += votes_by_count >= 2;
    }
    assert_int_equal(let_in, 3);
    assert_ended(calls[0], REDLOCK_OK);
    assert_ended(calls[1], REDLOCK_OK);
    assert_int_not_equal(permit_of(calls[0]->lock), permit_of(calls[1]->lock));
    assert_ended(calls[2], REDLOCK_EHELD);

    /* A client without a permit still gets the first free one. */
    request.wait_ms = REDLOCK_FOREVER;
    struct call *waits = begin_acquire(f, clients[2]->way.client, &request);
    uint32_t left = permit_of(calls[0]->lock);
    assert_int_equal(let_go(f, calls[0]->lock), REDLOCK_OK);
    assert_int_equal(await(f, waits), REDLOCK_OK);
    assert_int_equal(permit_of(waits->lock), left);
}

/* ------------------------------------------------------------------------------ waiting for one */

static void who_waits_gets_the_one_that_is_released(void **state) {
    struct fixture *f = *state;
    redlock_client *clients[2] = {connect_client(f), connect_client(f)};
    redlock_lock *locks[3];
    redlock_request request = permit_request(3);

    for (size_t i = 0; i < 3; i++) {
        locks[i] = hold_permit(f, clients[0], 3);
    }
    request.wait_ms = REDLOCK_FOREVER;
    for (size_t i = 0; i < 3; i++) {
        struct call *call = begin_acquire(f, clients[1], &request);
        uint32_t permit = permit_of(locks[i]);
        wait_logged(f, "acquiring -> queued");
        assert_int_equal(call->ended, 0);
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
        assert_int_equal(await(f, call), REDLOCK_OK);
        assert_int_equal(permit_of(call->lock), permit);
    }
}

/* A permit without renewals is like one whose holder has died. */
static void the_permit_of_a_dead_holder_becomes_free(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(2);

    rival_takes(f, 0, FIVE, key_of(0), LONG_TTL_MS);
    rival_takes(f, 0, FIVE, key_of(1), LONG_TTL_MS);
    assert_not_acquired(f, client, 2);
    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = begin_acquire(f, client, &request);
    rival_takes(f, 0, FIVE, key_of(1), 700);
    assert_int_equal(await(f, call), REDLOCK_OK);
    assert_int_equal(permit_of(call->lock), 1);
}

static void a_waiting_one_can_be_canceled(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(2);
    redlock_lock *locks[2] = {hold_permit(f, client, 2), hold_permit(f, client, 2)};

    request.wait_ms = REDLOCK_FOREVER;
    struct call *call = begin_acquire(f, client, &request);
    wait_logged(f, "acquiring -> queued");
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
    wait_all_free(f);
}

/* ---------------------------------------------------------------------- a permit is a lock */

/* A client that does not know semaphores uses SET NX on the key of a permit. */
static void plain_clients_are_respected(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    rival_takes(f, 0, FIVE, key_of(0), LONG_TTL_MS);
    rival_takes(f, 1, 4, key_of(1), LONG_TTL_MS); /* at a quorum, which is enough */
    for (size_t i = 0; i < 10; i++) {
        redlock_lock *lock = hold_permit(f, client, 3);
        assert_int_equal(permit_of(lock), 2);
        assert_int_equal(try_lock(f, client, key_of(2), LONG_TTL_MS), REDLOCK_EHELD);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    redlock_lock *plain = hold(f, client, key_of(2), LONG_TTL_MS);
    assert_not_acquired(f, client, 3);
    assert_int_equal(let_go(f, plain), REDLOCK_OK);
}

static void what_is_no_lock_is_passed_over(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "LPUSH " KEY ":0 x"));
        free(masters_query(f->masters, i, "SET " KEY ":1 x"));
    }
    for (size_t i = 0; i < 10; i++) {
        redlock_lock *lock = hold_permit(f, client, 3);
        assert_int_equal(permit_of(lock), 2);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
}

static void it_is_extended_and_topped_up(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (int is_fenced = 0; is_fenced < 2; is_fenced++) {
        redlock_request request = permit_request(3);
        request.fenced = is_fenced;
        redlock_lock *lock = hold_for(f, client, &request);
        const char *key = key_of(permit_of(lock));
        wait_holders(f, key, FIVE);
        send_to(f, 4, FIVE, "FLUSHALL");
        assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
        wait_holders(f, key, FIVE);
        assert_string_equal(value_at(f, 4, key), value_at(f, 0, key));
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        wait_all_free(f);
    }
}

static void the_watchdog_keeps_it(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(2);
    redlock_lock *locks[2];

    request.ttl_ms = 60000;
    request.watchdog = true;
    for (size_t i = 0; i < 2; i++) {
        locks[i] = hold_for(f, client, &request);
    }
    for (size_t i = 0; i < 6; i++) { /* well past the first TTL of both */
        pass_time(20000);
        wait_valid(f, locks[0], 50000);
        wait_valid(f, locks[1], 50000);
    }
    assert_not_acquired(f, client, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(redlock_validity_ms(locks[i]) > 0);
        assert_int_equal(let_go(f, locks[i]), REDLOCK_OK);
    }
}

struct sight {
    size_t reported;
    redlock_status status;
    bool held;
    uint64_t fence;
    char owner[32];
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct sight *sight = arg;
    *sight = (struct sight){1, status, view->held, view->fence, ""};
    snprintf(sight->owner, sizeof(sight->owner), "%s", view->owner);
}

static bool was_reported(void *arg) {
    return ((const struct sight *)arg)->reported > 0;
}

/* Each permit has a fence that a resource can check. */
static void it_is_fenced_and_inspected(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = permit_request(2);
    uint64_t fences[2] = {0};

    options.owner = "some-application";
    redlock_client *client = connect_with(f, &options);
    request.fenced = true;
    for (size_t i = 0; i < 20; i++) {
        redlock_lock *lock = hold_for(f, client, &request);
        struct sight sight = {0};
        uint32_t permit = permit_of(lock);
        assert_true(redlock_fence(lock) > fences[permit]);
        fences[permit] = redlock_fence(lock);
        wait_holders(f, key_of(permit), FIVE);
        assert_int_equal(redlock_inspect(client, redlock_key(lock, NULL), 0, on_view, &sight),
                         REDLOCK_OK);
        run_until(f, was_reported, &sight, "the permit was inspected");
        assert_int_equal(sight.status, REDLOCK_OK);
        assert_true(sight.held);
        assert_int_equal(sight.fence, fences[permit]);
        assert_string_equal(sight.owner, "some-application");
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    assert_true(fences[0] > 0 && fences[1] > 0);
}

static void scripts_that_were_forgotten_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    for (size_t i = 0; i < 3; i++) {
        redlock_lock *locks[2] = {hold_permit(f, client, 2), hold_permit(f, client, 2)};
        for (size_t master = 0; master < FIVE; master++) {
            free(masters_query(f->masters, master, "SCRIPT FLUSH"));
        }
        assert_not_acquired(f, client, 2);
        assert_int_equal(let_go(f, locks[0]), REDLOCK_OK);
        assert_int_equal(let_go(f, locks[1]), REDLOCK_OK);
        wait_all_free(f);
    }
}

/* All requests of a turn share one call, and each has its own answer. */
static void many_requests_of_one_turn(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = permit_request(MOST);
    struct call *calls[100];
    uint32_t seen = 0;
    size_t got = 0;

    for (size_t i = 0; i < 100; i++) {
        calls[i] = begin_acquire(f, client, &request);
    }
    for (size_t i = 0; i < 100; i++) {
        if (await(f, calls[i]) == REDLOCK_OK) {
            seen |= 1u << permit_of(calls[i]->lock);
            got++;
        } else {
            assert_ended(calls[i], REDLOCK_EHELD);
        }
    }
    assert_int_equal(got, MOST);
    assert_int_equal(seen, (1u << MOST) - 1);
}

/* ------------------------------------------------------------------------- the work of one call */

/*
 * The work of calls: the maximum of keys that a server checks for a call for permits when none is
 * free.
 */
struct work {
    size_t calls;
    size_t locks;
    size_t most;
};

/* Records a call's work: the last of a lock's five arguments is the number of permits. */
static void record_work(struct peer_link *link, const struct command *command, void *arg) {
    struct work *work = arg;
    size_t keys = command_keys(command);
    char permits[24];

    if (keys > 0 && command->count == 3 + 6 * keys) {
        command_text(command, command->count - 1, permits, sizeof(permits));
        size_t reads = keys * (1 + strtoul(permits, NULL, 10));
        work->calls++;
        work->locks += keys;
        work->most = reads > work->most ? reads : work->most;
    }
    peer_answer_well(link, command, NULL);
}

static struct work work_of(struct fixture *f, uint32_t permits) {
    struct work work = {0};
    const char *uri = peer_uri(peer_create(f, record_work, &work));
    redlock_options options = patient_options(f, &uri, 1);
    redlock_client *client = connect_with(f, &options);
    redlock_request request = permit_request(permits);
    struct call *calls[64];

    for (size_t i = 0; i < 64; i++) {
        calls[i] = begin_acquire(f, client, &request);
    }
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
    close_client(f, client);
    return work;
}

/* A server does nothing else during a call, which must be short. */
static void a_call_has_the_server_look_at_few_keys(void **state) {
    struct fixture *f = *state;
    struct work work = work_of(f, 256);

    assert_int_equal(work.locks, 64);
    assert_int_in_range(work.most, 257, 64 + 256);
    work = work_of(f, 4);
    assert_int_equal(work.locks, 64);
    assert_int_in_range(work.most, 5, 64 + 4);
    assert_int_in_range(work.calls, 2, 8); /* a few permits still share a call */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(so_many_hold_it_at_once_and_no_more),
        ON_THREE_MASTERS(so_many_hold_it_at_once_and_no_more),
        ON_THREE_MASTERS(as_many_as_there_may_be),
        ON_FIVE_MASTERS(wrong_numbers_are_refused),
        ON_FIVE_MASTERS(a_key_without_room_for_a_permit_is_refused),
        ON_FIVE_MASTERS(a_lock_of_the_same_name_is_another),
        ON_FIVE_MASTERS(without_others_it_takes_one_round_trip),
        ON_FIVE_MASTERS(where_one_is_free_a_second_round_trip_is_enough),
        ON_THREE_MASTERS(where_one_is_free_a_second_round_trip_is_enough),
        ON_FIVE_MASTERS(a_second_round_trip_is_enough_for_the_nodes_that_are_left),
        ON_THREE_MASTERS(where_counting_lets_three_in_only_two_get_a_permit),
        ON_FIVE_MASTERS(who_waits_gets_the_one_that_is_released),
        ON_FIVE_MASTERS(the_permit_of_a_dead_holder_becomes_free),
        ON_FIVE_MASTERS(a_waiting_one_can_be_canceled),
        ON_FIVE_MASTERS(plain_clients_are_respected),
        ON_FIVE_MASTERS(what_is_no_lock_is_passed_over),
        ON_FIVE_MASTERS(it_is_extended_and_topped_up),
        ON_FIVE_MASTERS(the_watchdog_keeps_it),
        ON_FIVE_MASTERS(it_is_fenced_and_inspected),
        ON_FIVE_MASTERS(scripts_that_were_forgotten_cost_nothing),
        ON_FIVE_MASTERS(many_requests_of_one_turn),
        ON_NO_MASTERS(a_call_has_the_server_look_at_few_keys),
    };

    return cmocka_run_group_tests_name("permits", tests, NULL, NULL);
}
