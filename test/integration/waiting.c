/*
 * Requests with wait_ms queue at the nodes in the order in which they were made, and the previous
 * holder's release passes the lock to them; inside a client without any message.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "plain.h"
#include "wait_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define QUEUE "orders:42::queue"
#define FIVE 5

/* -------------------------------------------------------------------------------------- order */

#define CLIENTS 4

/* A free key goes to the first waiter in the queue, not to the request that finds it free. */
static void nobody_is_overtaken(void **state) {
    struct fixture *f = *state;
    redlock_client *holder = connect_client(f);
    redlock_client *first = connect_client(f);
    redlock_client *second = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, holder, KEY, LONG_TTL_MS);
    struct call *one = begin_acquire(f, first, &request);

    wait_in_queue(f, KEY, 1);
    for (size_t i = 0; i < FIVE; i++) { /* as an expiry does, which notifies no waiter */
        assert_int_equal(masters_query_integer(f->masters, i, "DEL " KEY), 1);
    }
    struct call *two = begin_acquire(f, second, &request);
    assert_int_equal(await(f, one), REDLOCK_OK);
    assert_int_equal(two->ended, 0);
    assert_int_equal(let_go(f, one->lock), REDLOCK_OK);
    assert_int_equal(await(f, two), REDLOCK_OK);
    let_go(f, two->lock);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_queue_empty(f, KEY);
}

/* --------------------------------------------------------------------------- waiters that leave */

static void a_wait_that_is_over_leaves_no_entry(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    request.wait_ms = PATIENT_MS;
    struct call *call = begin_acquire(f, client, &request);
    struct call *behind = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 1);
    wait_all_answered(f, client);
    pass_time(PATIENT_MS);
    assert_int_equal(await(f, call), REDLOCK_EHELD);
    assert_int_equal(await(f, behind), REDLOCK_EHELD);
    assert_non_null(strstr(behind->why, "another request of the client is served first"));
    wait_in_queue(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
}

/* The release itself skips a waiter whose connections are gone. */
static void a_dead_waiter_delays_nobody(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    char entry[100]; /* of a client that is gone */

    snprintf(entry, sizeof(entry), "%040d redlock:gone 1000 0 0", 0);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 1 %s", entry), 1);
    }
    struct call *call = begin_acquire(f, connect_client(f), &request);
    wait_in_queue(f, KEY, 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* ------------------------------------------------------------------------- masters that restart */

/* Entries are lost with a master's memory, and with either connection: they are requested again. */
/*
 * Leaves an entry of a request that has ended ahead of the first one, on the same client's channel.
 */
static void leave_an_entry_behind(struct fixture *f, size_t i) {
    char *entry = masters_query(f->masters, i, "ZRANGE " QUEUE " 0 0");
    char ghost[160];
    char channel[80];

    assert_non_null(entry);
    assert_int_equal(sscanf(entry, "%*s %79s", channel), 1);
    snprintf(ghost, sizeof(ghost), "%040d %s 600000 0 0", 7, channel);
    assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 1 %s", ghost), 1);
    free(entry);
}

/*
 * A client gives back a key that is pushed to a request that no longer waits: at once, not later.
 */
static void a_key_for_nobody_goes_to_the_next(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, KEY, 1);
    for (size_t i = 0; i < FIVE; i++) {
        leave_an_entry_behind(f, i);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

static void entries_outlive_connections(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    wait_in_queue(f, KEY, 1);
    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "DEL " QUEUE));
        free(masters_query(f->masters, i,
                           i % 2 == 0 ? "CLIENT KILL TYPE normal SKIPME yes"
                                      : "CLIENT KILL TYPE pubsub"));
    }
    wait_in_queue(f, KEY, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* --------------------------------------------------------------------------- inside one client */

#define CROWD 20

struct crowd {
    unsigned inside, overlaps, served;
};

static void leave(struct call *call, void *arg) {
    struct crowd *crowd = arg;

    (void)call;
    crowd->inside--;
}

static void enter(struct call *call, void *arg) {
    struct crowd *crowd = arg;

    crowd->overlaps += crowd->inside++ != 0;
    crowd->served++;
    assert_true(redlock_validity_ms(call->lock) > 0);
    struct call *release = begin_release(call->fixture, call->lock);
    release->then = leave;
    release->then_arg = crowd;
}

static bool is_served(void *arg) {
    const struct crowd *crowd = arg;

    return crowd->served == CROWD && crowd->inside == 0;
}

/* The requests of one client are served one after the other by one acquisition at the nodes. */
static void a_client_hands_over_without_a_message(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    struct crowd crowd = {0};
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    for (unsigned i = 0; i < CROWD; i++) {
        struct call *call = begin_acquire(f, client, &request);
        call->then = enter;
        call->then_arg = &crowd;
    }
    wait_in_queue(f, KEY, 1);
    size_t before = script_calls(f);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    run_until(f, is_served, &crowd, "all are served");
    assert_int_equal(crowd.overlaps, 0);
    wait_queue_empty(f, KEY);
    /*
     * Each node gets one release of the holder, at most one confirmation, a release; and
     * heartbeats.
     */
    assert_int_in_range(script_calls(f) - before, 2 * FIVE, 3 * FIVE + 2 * FIVE * 10);
}

/* Makes one request of a client hold the key, and another one wait until it is handed over. */
static void hold_and_wait(struct fixture *f, redlock_client *client, struct call **holder,
                          struct call **waiter) {
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);

    *holder = begin_acquire(f, client, &request);
    *waiter = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, *holder), REDLOCK_OK);
}

/*
 * A client that closes notifies the next request of the close, and does not hand over a lock
 * without validity.
 */
static void a_close_overtakes_a_handover(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct call *holder, *waiter;

    hold_and_wait(f, client, &holder, &waiter);
    begin_release(f, holder->lock);
    close_client(f, client);
    assert_ended(waiter, REDLOCK_ECLOSED);
    wait_queue_empty(f, KEY);
}

/*
 * An application that blocks its loop after the release hands nothing over: nodes serve the next
 * waiter.
 */
static void a_handover_that_would_be_too_late_is_none(void **state) {
    struct fixture *f = *state;
    struct call *holder, *waiter;

    hold_and_wait(f, connect_client(f), &holder, &waiter);
    struct call *release = begin_release(f, holder->lock);
    pass_time(LONG_TTL_MS);
    assert_int_equal(await(f, release), REDLOCK_OK); /* the masters have kept the key */
    take_turn(f, waiter);
    wait_queue_empty(f, KEY);
}

/* The next request asks the nodes for a key that was lost without notice. */
static void a_lock_whose_key_is_lost_hands_nothing_over(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);

    request.watchdog = false; /* the watchdog would report the loss */
    struct call *one = begin_acquire(f, client, &request);
    assert_int_equal(await(f, one), REDLOCK_OK);
    struct call *two = begin_acquire(f, client, &request);
    struct call *three = begin_acquire(f, client, &request);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "DEL " KEY), 1);
    }
    assert_int_equal(let_go(f, one->lock), REDLOCK_ELOST);
    assert_int_equal(await(f, two), REDLOCK_OK);
    assert_int_equal(three->ended, 0);
    assert_int_equal(let_go(f, two->lock), REDLOCK_OK);
    take_turn(f, three);
    wait_queue_empty(f, KEY);
}

/* ------------------------------------------------------------------------------ foreign clients */

/* If the ACL permits no channel, waiting is polling, and the log says so once. */
static void without_a_channel_waiting_is_polling(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, "ACL SETUSER default resetchannels"));
    }
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    wait_logged(f, "&redlock:*");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* A master's clock was set back, or an entry lies: the key is not left to anybody. */
static void an_hour_for_anybody_is_over_at_once(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for_waiters(f, connect_client(f), &request);
    struct call *call = begin_acquire(f, connect_client(f), &request);

    wait_in_queue(f, KEY, 1);
    for (size_t i = 0; i < FIVE; i++) {
        char member[40];
        snprintf(member, sizeof(member), "open %lld", clock_at(f, i) + 3600000);
        assert_int_equal(masters_query_integer(f->masters, i, "ZADD " QUEUE " 0 %s", member), 1);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* A foreign client polls with SET NX, and deletes its key: waiters get it nevertheless. */
static void foreign_clients_are_waited_for(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);

    rival_takes(f, 0, FIVE, KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 1);
    rival_frees(f, 0, FIVE, KEY);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

/* A waiter that asks again as soon as it has released, until the contest is over. */
struct contender {
    redlock_client *client;
    bool *is_over;
};

static void ask(struct fixture *f, struct contender *contender);

static void ask_again(struct call *call, void *arg) {
    const struct contender *contender = arg;

    if (!*contender->is_over) {
        ask(call->fixture, arg);
    }
}

static void give_back(struct call *call, void *arg) {
    assert_int_equal(call->status, REDLOCK_OK);
    struct call *release = begin_release(call->fixture, call->lock);
    release->then = ask_again;
    release->then_arg = arg;
}

static void ask(struct fixture *f, struct contender *contender) {
    redlock_request request = waiting_request(KEY);
    struct call *call = begin_acquire(f, contender->client, &request);

    call->then = give_back;
    call->then_arg = contender;
}

/* A queue that is never empty does not keep out forever the clients that do not queue. */
static void foreign_clients_are_served_too(void **state) {
    struct fixture *f = *state;
    const struct plain_options options = {.key = KEY, .ttl_ms = LONG_TTL_MS, .poll_ms = 1};
    struct contender contenders[CLIENTS];
    bool is_over = false;

    for (size_t i = 0; i < CLIENTS; i++) {
        contenders[i] = (struct contender){connect_client(f), &is_over};
        ask(f, &contenders[i]);
        ask(f, &contenders[i]);
    }
    struct plain *plain = plain_begin(f, &options);
    wait_plain_turns(f, plain, 1);
    plain_end(plain);
    is_over = true;
    wait_all_ended(f, "all waiters are served");
    wait_queue_empty(f, KEY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(nobody_is_overtaken),
        ON_FIVE_MASTERS(a_wait_that_is_over_leaves_no_entry),
        ON_FIVE_MASTERS(a_dead_waiter_delays_nobody),
        ON_FIVE_MASTERS(a_key_for_nobody_goes_to_the_next),
        ON_FIVE_MASTERS(entries_outlive_connections),
        ON_FIVE_MASTERS(a_client_hands_over_without_a_message),
        ON_FIVE_MASTERS(a_close_overtakes_a_handover),
        ON_FIVE_MASTERS(a_handover_that_would_be_too_late_is_none),
        ON_FIVE_MASTERS(a_lock_whose_key_is_lost_hands_nothing_over),
        ON_FIVE_MASTERS(without_a_channel_waiting_is_polling),
        ON_FIVE_MASTERS(an_hour_for_anybody_is_over_at_once),
        ON_FIVE_MASTERS(foreign_clients_are_waited_for),
        ON_FIVE_MASTERS(foreign_clients_are_served_too),
    };

    return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
