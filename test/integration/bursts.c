/*
 * More requests at once than the nodes have room for: they wait, and are sent in order. In most
 * tests the room is small, so that a few thousand requests are many.
 */
#include "clocks.h"
#include "harness.h"

#include <redlock.h>
#include <stdio.h>
#include <string.h>

#define THREE 3
#define ON_THREE_MASTERS(test) cmocka_unit_test_setup_teardown(test, three_masters, finish)
#define ROOM 160 /* of which new requests take 1/8 */

static int three_masters(void **state) {
    return start_fixture(state, THREE, NULL);
}

struct burst {
    size_t requests;
    size_t acquired, failed, released;
    bool is_releasing; /* each lock is released in its callback */
};

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct burst *burst = arg;
    (void)lock;

    burst->released += status == REDLOCK_OK;
    burst->failed += status != REDLOCK_OK;
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct burst *burst = arg;

    burst->acquired += status == REDLOCK_OK;
    burst->failed += status != REDLOCK_OK;
    if (status == REDLOCK_OK && burst->is_releasing) {
        assert_int_equal(redlock_release(lock, on_released, burst), REDLOCK_OK);
    }
}

static bool has_ended(void *arg) {
    const struct burst *burst = arg;

    return burst->failed > 0 || burst->released == burst->requests;
}

/* Makes all requests of a burst, each for a key of its own, before the loop runs. */
static void fire(redlock_client *client, struct burst *burst, redlock_request *request) {
    char key[32];

    for (size_t i = 0; i < burst->requests; i++) {
        snprintf(key, sizeof(key), "burst:%zu", i);
        request->key = key;
        assert_int_equal(redlock_acquire(client, request, on_acquired, burst, NULL), REDLOCK_OK);
    }
}

static redlock_options small_options(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), THREE);

    options.max_commands = ROOM;
    options.log_level = REDLOCK_LOG_WARN;
    return options;
}

struct order {
    size_t sent;         /* number of first tries */
    size_t out_of_order; /* number of those before that of an earlier request */
};

/* Counts first tries. (Locks may be acquired in another order: a node without room gets no try.) */
static void on_event(const redlock_event *event, void *arg) {
    struct order *order = arg;

    for (size_t i = 0; i < event->field_count; i++) {
        const char *text = event->fields[i].text;

        if (strcmp(event->name, "round_sent") == 0 && text != NULL &&
            (strcmp(text, "acquire") == 0 || strcmp(text, "queue") == 0)) {
            order->sent++;
            order->out_of_order += event->request != order->sent;
        }
    }
}

/* Connects a client whose first tries are counted. `order` must outlive it. */
static redlock_client *connect_counted(struct fixture *f, struct order *order) {
    redlock_options options = small_options(f);

    *order = (struct order){0};
    options.trace = on_event;
    options.trace_arg = order;
    return connect_with(f, &options);
}

static void requests_beyond_the_room_wait_in_order(void **state) {
    struct fixture *f = *state;
    struct order order;
    redlock_client *client = connect_counted(f, &order);
    redlock_request request = request_for("", LONG_TTL_MS);
    struct burst burst = {.requests = cycles_here(3000), .is_releasing = true};

    fire(client, &burst, &request);
    run_until(f, has_ended, &burst, "all of the burst is released");
    assert_int_equal(burst.failed, 0);
    assert_int_equal(burst.acquired, burst.requests);
    assert_int_equal(order.sent, burst.requests);
    assert_int_equal(order.out_of_order, 0);
}

static void bytes_are_bounded_too(void **state) {
    struct fixture *f = *state;
    redlock_options options = small_options(f);
    redlock_request request = request_for("", LONG_TTL_MS);
    struct burst burst = {.requests = cycles_here(3000), .is_releasing = true};

    options.max_commands = 65536;
    options.max_bytes = 100000;
    redlock_client *client = connect_with(f, &options);
    fire(client, &burst, &request);
    run_until(f, has_ended, &burst, "all of the burst is released");
    assert_int_equal(burst.failed, 0);
}

/* As a newcomer does: all options as they are, and before the client is connected. */
static void ten_thousand_requests_with_default_options(void **state) {
    struct fixture *f = *state;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_client *client;
    redlock_request request = request_for("", 10000);
    struct burst burst = {.requests = cycles_here(10000), .is_releasing = true};

    options.nodes = masters_uris(f->masters);
    options.node_count = THREE;
    options.guards = REDLOCK_GUARDS_OFF; /* the masters are new */
    client = create_client(f, &options);
    fire(client, &burst, &request);
    run_until(f, has_ended, &burst, "all of the burst is released");
    assert_int_equal(burst.failed, 0);
    assert_int_equal(burst.acquired, burst.requests);
}

/* The requests that wait are ended like any other. */
static void what_waits_for_room_is_canceled_and_closed(void **state) {
    struct fixture *f = *state;
    redlock_options options = small_options(f);
    redlock_client *client = connect_with(f, &options);
    redlock_request request = request_for("last", LONG_TTL_MS);
    struct burst burst = {.requests = 3000};

    fire(client, &burst, &request);
    request.key = "last";
    struct call *canceled = begin_acquire(f, client, &request);
    struct call *closed = begin_acquire(f, client, &request);
    assert_int_equal(redlock_cancel(canceled->lock), REDLOCK_OK);
    assert_int_equal(await(f, canceled), REDLOCK_ECANCELED);
    assert_explained(canceled, "no node was asked, for the nodes had no room");
    assert_true(burst.acquired < burst.requests);
    close_client(f, client);
    assert_ended(closed, REDLOCK_ECLOSED);
    assert_int_equal(burst.acquired + burst.failed, burst.requests);
}

/* Without a try: none begins after wait_ms. */
static void a_wait_for_room_ends_with_the_request(void **state) {
    struct fixture *f = *state;
    redlock_options options = small_options(f);
    redlock_client *client = connect_with(f, &options);
    redlock_request request = request_for("", LONG_TTL_MS);
    struct burst burst = {.requests = 3000};

    fire(client, &burst, &request);
    request.key = "last";
    request.wait_ms = 1;
    struct call *call = begin_acquire(f, client, &request);
    pass_time(2);
    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    assert_explained(call, "wait_ms is over; no node was asked, for the nodes had no room");
    assert_true(burst.acquired < burst.requests);
    close_client(f, client); /* while the burst exists */
}

static bool have_all_ended(void *arg) {
    const struct burst *burst = arg;

    return burst->acquired + burst->failed == burst->requests;
}

/* However many requests wait, no try begins after wait_ms. */
static void no_request_of_a_backlog_begins_after_its_time(void **state) {
    struct fixture *f = *state;
    struct order order;
    redlock_client *client = connect_counted(f, &order);
    redlock_request request = request_for("", LONG_TTL_MS);
    struct burst burst = {.requests = 3000};

    stop_time();
    request.wait_ms = 100;
    fire(client, &burst, &request);
    pass_time(request.wait_ms);
    resume_time();
    run_until(f, have_all_ended, &burst, "all of the burst has ended");
    assert_int_equal(order.sent, burst.acquired);
    assert_in_range(burst.acquired, 1, ROOM / 8 + 1);
    close_client(f, client); /* while the burst exists */
}

static void requests_beyond_max_unsent_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_options options = small_options(f);
    redlock_request request = request_for("last", LONG_TTL_MS);
    struct burst burst = {.requests = ROOM / 8 + 40, .is_releasing = true};

    options.max_unsent = 40;
    redlock_client *client = connect_with(f, &options);
    fire(client, &burst, &request);
    request.key = "last";
    redlock_status status = redlock_acquire(client, &request, on_acquired, NULL, NULL);
    assert_refused(client, status, REDLOCK_EBUSY, "max_unsent: 40 requests wait to be sent");
    run_until(f, has_ended, &burst, "all of the burst is released");
    assert_int_equal(burst.failed, 0);
    assert_int_equal(try_lock(f, client, "last", LONG_TTL_MS), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_THREE_MASTERS(requests_beyond_the_room_wait_in_order),
        ON_THREE_MASTERS(bytes_are_bounded_too),
        ON_THREE_MASTERS(ten_thousand_requests_with_default_options),
        ON_THREE_MASTERS(what_waits_for_room_is_canceled_and_closed),
        ON_THREE_MASTERS(a_wait_for_room_ends_with_the_request),
        ON_THREE_MASTERS(no_request_of_a_backlog_begins_after_its_time),
        ON_THREE_MASTERS(requests_beyond_max_unsent_are_refused),
    };

    return cmocka_run_group_tests_name("bursts", tests, NULL, NULL);
}
