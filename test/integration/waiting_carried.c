/*
 * A client releases a lock for which another of its requests waits, or requests the lock again in
 * the turn of the release: one command carries the release and the request to each node.
 */
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"

#define KEY "orders:42"
#define FIVE 5

/* Makes a client that hands no lock over by itself. */
static redlock_client *connect_alone(struct fixture *f) {
    redlock_options options =
        patient_options(f, masters_uris(f->masters), masters_count(f->masters));

    options.max_local_handoffs = 0;
    options.log_level = REDLOCK_LOG_INFO;
    return connect_with(f, &options);
}

/* Makes a request of a client hold the key, and another one wait for it. */
static void hold_and_wait(struct fixture *f, redlock_client *client, struct call **holder,
                          struct call **waiter) {
    redlock_request request = waiting_request(KEY);

    *holder = begin_acquire(f, client, &request);
    assert_int_equal(await(f, *holder), REDLOCK_OK);
    *waiter = begin_acquire(f, client, &request);
}

#define ROUNDS 60

/* A stretch of time in which script calls are counted. */
struct stretch {
    int64_t began_at;
    size_t before;
};

static struct stretch begin_stretch(struct fixture *f) {
    return (struct stretch){.began_at = clock_at(f, 0), .before = script_calls(f)};
}

/*
 * Checks the number of script calls: each master gets two calls for each handover, since without
 * guards its pushes are confirmed; and two calls from each client each second, for a heartbeat and
 * a probe.
 */
static void check_calls(struct fixture *f, struct stretch stretch, size_t handovers,
                        size_t clients) {
    size_t seconds = (size_t)(clock_at(f, 0) - stretch.began_at) / 1000 + 1;
    size_t masters = masters_pid(f->masters, FIVE - 1) != 0 ? FIVE : FIVE - 1;
    size_t least = 2 * handovers * masters;

    assert_int_in_range(script_calls(f) - stretch.before, least,
                        least + handovers * masters / 2 + 2 * clients * masters * seconds);
}

/* Also where a master is dead (the row), which neither the release nor the request reaches. */
static void one_command_does_for_both(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_alone(f);
    redlock_request request = waiting_request(KEY);
    struct call *calls[ROUNDS];

    if (f->row != NULL) {
        masters_kill(f->masters, FIVE - 1);
        wait_disconnected(f, client, FIVE - 1, 1);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        calls[i] = begin_acquire(f, client, &request);
    }
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    struct stretch stretch = begin_stretch(f);
    for (size_t i = 1; i < ROUNDS; i++) {
        struct call *release = begin_release(f, calls[i - 1]->lock);
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        assert_int_equal(await(f, release), REDLOCK_OK);
    }
    check_calls(f, stretch, ROUNDS - 1, 1);
    assert_int_equal(let_go(f, calls[ROUNDS - 1]->lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
}

/* Two clients that request the key again whenever they release it. */
static void a_request_in_the_turn_of_the_release_goes_with_it(void **state) {
    struct fixture *f = *state;
    redlock_client *clients[] = {connect_alone(f), connect_alone(f)};
    redlock_request request = waiting_request(KEY);
    struct call *calls[2];

    for (size_t i = 0; i < 2; i++) {
        calls[i] = begin_acquire(f, clients[i], &request);
        wait_in_queue(f, KEY, (int64_t)i);
    }
    assert_int_equal(await(f, calls[0]), REDLOCK_OK);
    struct stretch stretch = begin_stretch(f);
    for (size_t i = 0; i < ROUNDS; i++) {
        struct call *release = begin_release(f, calls[i % 2]->lock);
        calls[i % 2] = begin_acquire(f, clients[i % 2], &request);
        assert_int_equal(await(f, release), REDLOCK_OK);
        assert_int_equal(await(f, calls[(i + 1) % 2]), REDLOCK_OK);
        assert_int_equal(calls[i % 2]->ended, 0);
    }
    check_calls(f, stretch, ROUNDS, 2);
    assert_int_equal(let_go(f, calls[ROUNDS % 2]->lock), REDLOCK_OK);
    assert_int_equal(await(f, calls[(ROUNDS + 1) % 2]), REDLOCK_OK);
    assert_int_equal(let_go(f, calls[(ROUNDS + 1) % 2]->lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
}

/* The carried request was made before that of another client, which waits in the queue. */
static void the_carried_request_keeps_its_turn(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_alone(f);
    redlock_request request = waiting_request(KEY);
    struct call *holder, *next;

    hold_and_wait(f, client, &holder, &next);
    struct call *other = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 1);
    assert_int_equal(let_go(f, holder->lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    assert_int_equal(other->ended, 0);
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
    take_turn(f, other);
    wait_queue_empty(f, KEY);
}

/* The scripts are missing: the call is sent once more, with the release. */
static void servers_without_scripts_release_too(void **state) {
    struct fixture *f = *state;
    struct call *holder, *next;

    hold_and_wait(f, connect_alone(f), &holder, &next);
    send_to(f, 0, FIVE, "SCRIPT FLUSH");
    assert_int_equal(let_go(f, holder->lock), REDLOCK_OK);
    take_turn(f, next);
    wait_queue_empty(f, KEY);
}

/* A server that refuses the request carried by a release, for lack of memory, still releases. */
static void refused_requests_do_not_keep_the_release(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_alone(f);
    struct call *holder, *next;

    hold_and_wait(f, client, &holder, &next);
    for (size_t i = 0; i < FIVE; i++) { /* the key is free for the request, and memory is full */
        assert_int_equal(masters_query_integer(f->masters, i, "DEL " KEY), 1);
    }
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 1");
    assert_int_equal(let_go(f, holder->lock), REDLOCK_ELOST);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 0");
    take_turn(f, next);
    wait_queue_empty(f, KEY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(one_command_does_for_both),
        ON_ROW("one_command_does_for_both_where_a_master_is_dead", one_command_does_for_both,
               five_masters, "dead"),
        ON_FIVE_MASTERS(a_request_in_the_turn_of_the_release_goes_with_it),
        ON_FIVE_MASTERS(the_carried_request_keeps_its_turn),
        ON_FIVE_MASTERS(servers_without_scripts_release_too),
        ON_FIVE_MASTERS(refused_requests_do_not_keep_the_release),
    };

    return cmocka_run_group_tests_name("waiting_carried", tests, NULL, NULL);
}
