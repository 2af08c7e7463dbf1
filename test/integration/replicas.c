/* Masters with replicas: a grant counts when enough replicas have confirmed it. */
#include "harness.h"
#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define THREE 3

static struct masters *replicas;

static void end_replicas(void *none) {
    (void)none;
    masters_finish(replicas);
    replicas = NULL;
}

/* Returns whether each master has a replica that follows it. */
static bool are_followed(void *arg) {
    struct fixture *f = arg;
    size_t followed = 0;

    for (size_t i = 0; i < THREE; i++) {
        followed += info_contains(f, i, "replication", "state=online");
    }
    return followed == THREE;
}

static void start_replicas(struct fixture *f) {
    replicas = masters_start(THREE, NULL);
    at_finish(f, end_replicas, replicas);
    for (size_t i = 0; i < THREE; i++) {
        char *answer =
            masters_query(replicas, i, "REPLICAOF 127.0.0.1 %d", masters_port(f->masters, i));
        assert_string_equal(answer, "OK");
        free(answer);
    }
    run_until(f, are_followed, f, "each master had its replica");
}

static redlock_request request_for_replicas(uint32_t count) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    request.wait_replicas = count;
    return request;
}

/* A WAIT for replicas, and the master that received it. */
struct vain {
    struct fixture *f;
    size_t master;
};

/* Unblocks the client that its WAIT blocks, if any, as the timeout of the WAIT would. */
static bool has_ended_wait(void *arg) {
    const struct vain *vain = arg;
    char *clients = masters_query(vain->f->masters, vain->master, "CLIENT LIST");
    const char *blocked = strstr(clients, " flags=b ");
    long long ended = 0;

    if (blocked != NULL) {
        while (blocked > clients && blocked[-1] != '\n') {
            blocked--;
        }
        ended = masters_query_integer(vain->f->masters, vain->master, "CLIENT UNBLOCK %lld",
                                      strtoll(blocked + strlen("id="), NULL, 10));
    }
    free(clients);
    return ended == 1;
}

/*
 * Ends the WAITs at these masters as their timeout would: it is 1/2 of the node timeout, so long
 * here that no WAIT ends by itself.
 */
static void end_waits(struct fixture *f, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        struct vain vain = {f, i};
        run_until(f, has_ended_wait, &vain, "the master waited for its replicas without result");
    }
}

/* Returns the number of replicas that have the key now, without waiting for it. */
static size_t replicated(void) {
    size_t count = 0;
    for (size_t i = 0; i < THREE; i++) {
        count += (size_t)masters_query_integer(replicas, i, "EXISTS %s", KEY);
    }
    return count;
}

static void what_is_reported_is_replicated(void **state, bool fenced) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(1);

    request.fenced = fenced;
    start_replicas(f);
    redlock_lock *lock = hold_for(f, client, &request);
    assert_true(replicated() >= 2);
    wait_executed(f, 0, "wait", 1);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_executed(f, 0, "wait", 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    assert_int_equal(executed(f, 0, "wait"), 2); /* a release waits for no replica */
}

static void a_lock_is_replicated_when_it_is_reported(void **state) {
    what_is_reported_is_replicated(state, false);
}

static void so_is_a_fenced_one(void **state) {
    what_is_reported_is_replicated(state, true);
}

static void nobody_is_asked_unless_asked_for(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    assert_int_equal(let_go(f, hold(f, client, KEY, LONG_TTL_MS)), REDLOCK_OK);
    assert_int_equal(executed(f, 0, "wait"), 0);
}

static void a_minority_without_replicas_costs_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(1);

    start_replicas(f);
    masters_stop_range(replicas, 0, 1);
    redlock_lock *lock = hold_for(f, client, &request);
    masters_continue_range(replicas, 0, 1);
    begin_release(f, lock);
    wait_released(f, KEY);
}

static void a_quorum_without_them_grants_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(1);

    start_replicas(f);
    masters_stop_range(replicas, 0, 2);
    struct call *call = begin_acquire(f, client, &request);
    end_waits(f, 0, 2);
    await(f, call);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "0 of 1 replicas confirmed it");
    wait_released(f, KEY);
    masters_continue_range(replicas, 0, 2);
    assert_int_equal(let_go(f, hold_for(f, client, &request)), REDLOCK_OK);
}

/*
 * Extends to a longer TTL: an extension that finds as much left, within 1 ms, has no write to
 * confirm.
 */
static void a_renewal_needs_them_too(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(1);

    request.ttl_ms = LONG_TTL_MS / 2;
    start_replicas(f);
    redlock_lock *lock = hold_for(f, client, &request);
    wait_all_answered(f, client);
    masters_stop_range(replicas, 0, 2);
    struct call *call = begin_extend(f, lock, LONG_TTL_MS);
    end_waits(f, 0, 2);
    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    assert_explained(call, "0 of 1 replicas confirmed it");
    masters_continue_range(replicas, 0, 2);
    begin_release(f, lock);
    wait_released(f, KEY);
}

/* Commands of other locks to these masters wait for WAIT to end, and are not lost. */
static void others_go_on(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(2); /* more replicas than there are */

    start_replicas(f);
    struct call *waiting = begin_acquire(f, client, &request);
    redlock_request plain = request_for("other", LONG_TTL_MS);
    struct call *other = begin_acquire(f, client, &plain);
    end_waits(f, 0, THREE);
    assert_int_equal(await(f, other), REDLOCK_OK);
    assert_int_equal(await(f, waiting), REDLOCK_ENOQUORUM);
    assert_explained(waiting, "of 2 replicas confirmed it");
    assert_int_equal(let_go(f, other->lock), REDLOCK_OK);
}

static void a_refused_question_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_replicas(1);

    for (size_t i = 0; i < THREE; i++) {
        char *answer = masters_query(f->masters, i, "ACL SETUSER default -wait");
        assert_string_equal(answer, "OK");
        free(answer);
    }
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_ENOQUORUM);
    assert_explained(call, "its replicas could not be asked");
    wait_released(f, KEY);
}

static int three_masters(void **state) {
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
    return start_fixture(state, THREE, at_once);
}

#define ON_THREE_MASTERS(test) cmocka_unit_test_setup_teardown(test, three_masters, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_THREE_MASTERS(a_lock_is_replicated_when_it_is_reported),
        ON_THREE_MASTERS(so_is_a_fenced_one),
        ON_THREE_MASTERS(nobody_is_asked_unless_asked_for),
        ON_THREE_MASTERS(a_minority_without_replicas_costs_nothing),
        ON_THREE_MASTERS(a_quorum_without_them_grants_nothing),
        ON_THREE_MASTERS(a_renewal_needs_them_too),
        ON_THREE_MASTERS(others_go_on),
        ON_THREE_MASTERS(a_refused_question_is_reported),
    };
    return cmocka_run_group_tests_name("replicas", tests, NULL, NULL);
}
