/*
 * A client that is idle closes its connections (idle_close_ms), and connects again when a call
 * needs them, as a new client does.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"

#include <redlock/inspection.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define IDLE_MS 5000

static redlock_options idle_options(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.idle_close_ms = IDLE_MS;
    return options;
}

static redlock_client *connect_idle(struct fixture *f) {
    redlock_options options = idle_options(f);
    return connect_with(f, &options);
}

static bool is_resting(void *arg) {
    return strstr(node_info(arg, 0).reason, "idle") != NULL;
}

/*
 * Lets time pass until the client has closed its connections: all of them are open before, as the
 * call that needed them may have ended with a quorum.
 */
static void rest(struct fixture *f, redlock_client *client) {
    wait_connected(f, client, FIVE);
    pass_time(IDLE_MS);
    run_until(f, is_resting, client, "the connections are closed");
    for (size_t i = 0; i < FIVE; i++) {
        assert_false(node_info(client, i).connected);
    }
}

static bool are_gone(void *arg) {
    struct fixture *f = arg;
    bool is_gone = true;

    for (size_t i = 0; i < FIVE; i++) {
        char *list = masters_query(f->masters, i, "CLIENT LIST");
        is_gone = is_gone && strstr(list, "name=redlock ") == NULL;
        free(list);
    }
    return is_gone;
}

/* Lets more time pass than an idle client keeps its connections. */
static void stay_connected(struct fixture *f, redlock_client *client) {
    for (unsigned i = 0; i < 4; i++) {
        pass_time(IDLE_MS / 2);
        wait_all_answered(f, client);
    }
    assert_int_equal(node_info(client, 0).disconnected, 0);
    assert_true(node_info(client, 0).connected);
}

static void connections_close_and_come_back(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_client *client = connect_idle(f);

    for (unsigned i = 0; i < 3; i++) {
        rest(f, client);
        run_until(f, are_gone, f, "no master has a connection");
        struct call *call = acquire(f, client, &request);
        assert_ended(call, REDLOCK_OK);
        assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    }
    wait_logged(f, "connections closed after ");
    assert_int_equal(node_info(client, 0).disconnected, 0); /* none has failed */
}

static void a_held_lock_keeps_them(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_idle(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    stay_connected(f, client);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    rest(f, client);
}

static void a_waiting_request_keeps_them(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_client *holder = connect_client(f);
    redlock_lock *lock = hold_for_waiters(f, holder, &request);
    redlock_client *client = connect_idle(f);
    struct call *call = begin_acquire(f, client, &request);

    wait_listening(f, KEY, 0, 1);
    stay_connected(f, client);
    take_turns(f, lock, &call, 1);
    close_client(f, holder);
    rest(f, client);
    run_until(f, are_gone, f, "no master has a connection"); /* nor one for messages */
}

static void a_request_after_a_rest_can_wait(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_options options = idle_options(f);
    redlock_client *client = connect_with(f, &options);

    options.idle_close_ms = 0;
    rest(f, client);
    redlock_lock *lock = hold_for_waiters(f, connect_with(f, &options), &request);
    struct call *call = begin_acquire(f, client, &request);
    wait_listening(f, KEY, 0, 1);
    take_turns(f, lock, &call, 1);
}

/* The status that a call reported. */
struct report {
    bool has_come;
    redlock_status status;
};

static bool has_come(void *arg) {
    const struct report *report = arg;
    return report->has_come;
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    *(struct report *)arg = (struct report){true, view->held ? REDLOCK_EHELD : status};
}

static void on_ready(redlock_status status, void *arg) {
    *(struct report *)arg = (struct report){true, status};
}

static redlock_status look(struct fixture *f, redlock_client *client) {
    struct report report = {false, REDLOCK_OK};

    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &report), REDLOCK_OK);
    run_until(f, has_come, &report, "the inspection was reported");
    return report.status;
}

static redlock_status wait_ready(struct fixture *f, redlock_client *client) {
    struct report report = {false, REDLOCK_OK};

    assert_int_equal(redlock_client_ready(client, PATIENT_MS, on_ready, &report), REDLOCK_OK);
    run_until(f, has_come, &report, "the client is ready");
    return report.status;
}

static void other_calls_connect_too(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_idle(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    rest(f, client);
    assert_int_equal(look(f, client), REDLOCK_EHELD);
    rest(f, client);
    assert_int_equal(wait_ready(f, client), REDLOCK_OK);
    rest(f, client);
    assert_int_equal(redlock_client_change_nodes(client, masters_uris(f->masters), 3), REDLOCK_OK);
    stay_connected(f, client); /* while the list changes */
    assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
    rest(f, client);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void a_resting_client_closes(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_idle(f);

    rest(f, client);
    close_client(f, client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(connections_close_and_come_back),
        ON_FIVE_MASTERS(a_held_lock_keeps_them),
        ON_FIVE_MASTERS(a_waiting_request_keeps_them),
        ON_FIVE_MASTERS(a_request_after_a_rest_can_wait),
        ON_FIVE_MASTERS(other_calls_connect_too),
        ON_FIVE_MASTERS(a_resting_client_closes),
    };

    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
