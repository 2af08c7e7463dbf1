/*
 * Requests wait in the queue while messages are lost, doubled or late, or reach no waiter: all are
 * served, one at a time.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "push_relay.h"
#include "rivals.h"
#include "wait_queue.h"

#include <stdlib.h>

#define KEY "orders:42"
#define FIVE 5

/* -------------------------------------------------------------------------------- lost, doubled */

/* The treatment of pushes. */
struct post {
    unsigned lost_percent;
    bool doubles;
    bool fenced;
    redlock_guards guards;
    unsigned turns;
};

static void with_such_messages_all_are_served(void **state) {
    struct fixture *f = *state;
    const struct post *post = f->row;
    struct push_relay *push_relay = push_relay_create(f);
    struct rivals_options options = {.request = waiting_request(KEY), .turns = post->turns};

    options.request.fenced = post->fenced;
    push_relay_lose(push_relay, post->lost_percent);
    if (post->doubles) {
        push_relay_double(push_relay);
    }
    struct rivals *rivals = rivals_create(f, &options);
    for (unsigned i = 0; i < 6; i++) {
        rivals_begin(rivals, push_relay_client(f, push_relay, post->guards));
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    assert_true(push_relay_pushes(push_relay) >= (size_t)post->turns * FIVE);
    assert_true((push_relay_lost(push_relay) > 0) == (post->lost_percent > 0));
    wait_queue_empty(f, KEY);
    if (post->lost_percent == 0) {
        wait_released(f, KEY); /* no reservation was left to expire */
    }
}

#define ON_POST(name, ...)                                                                         \
    ON_ROW(name, with_such_messages_all_are_served, five_masters, &((struct post){__VA_ARGS__}))

#define POLLED_CLIENTS 6

/* Lets the clients have their turns. Returns how many scripts the masters ran for them. */
static size_t run_rivals(struct fixture *f, redlock_client *const *clients) {
    const struct rivals_options options = {.request = waiting_request(KEY), .turns = 40};
    struct rivals *rivals = rivals_create(f, &options);
    size_t before = script_calls(f);

    for (unsigned i = 0; i < POLLED_CLIENTS; i++) {
        rivals_begin(rivals, clients[i]);
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    return script_calls(f) - before;
}

/* Of five pushes three are enough: few waiters must ask for a lost push. */
static void a_tenth_that_is_lost_costs_few_polls(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    redlock_client *clients[POLLED_CLIENTS];

    for (unsigned i = 0; i < POLLED_CLIENTS; i++) {
        clients[i] = push_relay_client(f, push_relay, REDLOCK_GUARDS_ON);
    }
    run_rivals(f, clients); /* channels are ready after that */
    size_t whole = run_rivals(f, clients);
    push_relay_lose(push_relay, 10);
    size_t lossy = run_rivals(f, clients);
    assert_true(push_relay_lost(push_relay) > 0);
    assert_int_in_range(lossy, 1, 2 * whole);
    wait_queue_empty(f, KEY);
}

/*
 * A copy of the message by which the client got a lock arrives when another request has the lock.
 */
static void a_copy_does_not_give_away_a_lock_that_was_handed_over(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    redlock_client *client = push_relay_client(f, push_relay, REDLOCK_GUARDS_ON);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for_waiters(f, connect_client(f), &request);
    struct call *first = begin_acquire(f, client, &request);
    struct call *second = begin_acquire(f, client, &request);

    wait_in_queue(f, KEY, 1);
    push_relay_keep_copies(push_relay);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, first);
    assert_int_equal(await(f, second), REDLOCK_OK);
    wait_holders(f, KEY, FIVE);
    push_relay_deliver_copies(f, push_relay);
    wait_all_answered(f, client);
    assert_int_equal(holders(f, KEY), FIVE);
    assert_int_equal(extend(f, second->lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, second->lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

static bool has_five_pushes(void *arg) {
    return push_relay_pushes(arg) >= FIVE;
}

static bool are_tickets_past(void *arg) {
    static const char script[] =
        "local ticket = tonumber(redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2]) "
        "local now = redis.call('time') "
        "return now[1] * 1000000 + now[2] > ticket and 1 or 0";
    struct fixture *f = arg;
    bool are_past = true;

    for (size_t i = 0; i < FIVE; i++) {
        are_past &= masters_query_integer(f->masters, i, "EVAL %s 1 %s::queue", script, KEY) == 1;
    }
    return are_past;
}

/*
 * Waits until requests that begin now sort after those in the queue. A client that has only had
 * slow answers may estimate the masters' clocks some milliseconds ahead.
 */
static void wait_tickets_past(struct fixture *f) {
    run_until(f, are_tickets_past, f, "the tickets of the waiters are of the past");
}

/* The messages arrive after the masters have taken the key back and given it to the next waiter. */
static void messages_that_come_after_the_reservation_do_not_count(void **state) {
    struct fixture *f = *state;
    struct push_relay *push_relay = push_relay_create(f);
    redlock_client *slow = push_relay_client(f, push_relay, REDLOCK_GUARDS_ON);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for_waiters(f, connect_client(f), &request);
    struct call *late = begin_acquire(f, slow, &request);

    wait_in_queue(f, KEY, 1);
    redlock_client *fast = connect_client(f);
    wait_tickets_past(f);
    struct call *next = begin_acquire(f, fast, &request);
    wait_listening(f, KEY, 0, 2);
    wait_all_answered(f, slow);
    push_relay_hold(push_relay, CLIENT);
    push_relay_hold(push_relay, SERVER);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    push_relay_pass(push_relay, SERVER);
    run_until(f, has_five_pushes, push_relay, "each master has pushed the key");
    wait_delivered(f, push_relay);
    assert_int_equal(late->ended, 0);
    push_relay_pass(push_relay, CLIENT);
    wait_all_answered(f, slow);
    assert_int_equal(late->ended, 0);
    assert_int_equal(extend(f, next->lock, 0), REDLOCK_OK);
    take_turns(f, next->lock, &late, 1);
    wait_queue_empty(f, KEY);
}

/* ------------------------------------------------------------------------ messages to no waiter */

#define GIFTS 3000
#define BACK_MAX 1024 /* lock/pushes.c: limit for one second */

/* Makes the first master push `count` keys to a channel, all for a token that no request has. */
static void push_gifts(struct fixture *f, const char *channel) {
    static const char script[] =
        "local now, nobody = redis.call('time')[1], string.rep('f', 40) "
        "for i = 1, tonumber(ARGV[2]) do "
        "  redis.call('set', 'gift:' .. i, nobody, 'PX', 600000) "
        "  redis.call('publish', ARGV[1], now .. '999000 ' .. now .. '000000 0 ' .. nobody .. "
        "    ' gift:' .. i) "
        "end "
        "return 1";

    assert_int_equal(
        masters_query_integer(f->masters, 0, "EVAL %s 0 %s %d", script, channel, GIFTS), 1);
}

static long long gifts_left(struct fixture *f) {
    return masters_query_integer(f->masters, 0, "EVAL %s 0",
                                 "return #redis.call('keys', 'gift:*')");
}

static bool has_waiter(void *arg) {
    return waiters_at(arg, 0, KEY) == 1;
}

/*
 * The waiter's own push comes after the gifts, and its release follows all that the client has sent
 * for them.
 */
static void keys_pushed_to_nobody_go_back_in_bounded_numbers(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 1);
    redlock_request request = waiting_request(KEY);

    redlock_lock *lock = hold(f, connect_with(f, &options), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, connect_with(f, &options), &request);
    run_until(f, has_waiter, f, "the request is in the queue");
    char *channel = first_channel(f, 0, KEY);
    long long from_ms = clock_at(f, 0);
    push_gifts(f, channel);
    free(channel);
    take_turns(f, lock, &call, 1);
    long long returned = GIFTS - gifts_left(f);
    long long seconds = (clock_at(f, 0) - from_ms) / 1000 + 1;
    assert_int_in_range(returned, BACK_MAX, BACK_MAX * (seconds + 1));
}

/* --------------------------------------------------------------------------- after a long wait */

#define GHOSTS 100

/* Time in which a waiter sends heartbeats for pushes; time in which its last one gets too old. */
#define ALERT_MS 4100
#define STALE_MS 2400

/*
 * Returns a client that trusts its nodes at once, but not for long after a heartbeat. Its own clock
 * may count twice as fast as theirs: time that passes only here is no fault of theirs.
 */
static redlock_client *connect_trusting(struct fixture *f) {
    redlock_options options = patient_options(f, durable_uris(f), FIVE);

    options.node_timeout_ms = 0;
    options.drift = 0.5;
    options.guards = REDLOCK_GUARDS_ON;
    return connect_with(f, &options);
}

/*
 * A request with a hundred others ahead polls seldom, and sends no heartbeats between its polls, so
 * the pushes that it gets do not count by themselves. No time passes from the release on: it does
 * not get the lock by a poll.
 */
static void pushes_after_a_long_wait_are_asked_about(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for_waiters(f, connect_client(f), &request);
    redlock_client *client = connect_trusting(f);

    eavesdrop(f, "SUBSCRIBE redlock:ghosts");
    put_ghosts(f, KEY, GHOSTS, '0', "redlock:ghosts", 1000);
    struct call *call = begin_acquire(f, client, &request);
    wait_listening(f, KEY, 0, GHOSTS + 1);
    pass_time(ALERT_MS);
    wait_all_answered(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        masters_query_integer(f->masters, i, "ZREMRANGEBYRANK %s::queue 0 %d", KEY, GHOSTS - 1);
    }
    pass_time(STALE_MS);
    stop_time();
    struct call *release = begin_release(f, lock);
    assert_int_equal(await(f, call), REDLOCK_OK);
    resume_time();
    assert_int_equal(await(f, release), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_POST("a_tenth_of_the_messages_is_lost", .lost_percent = 10, .guards = REDLOCK_GUARDS_ON,
                .turns = 15),
        ON_POST("a_tenth_of_the_messages_is_lost_where_locks_are_confirmed", .lost_percent = 10,
                .guards = REDLOCK_GUARDS_OFF, .turns = 15),
        ON_POST("a_third_of_the_messages_is_lost", .lost_percent = 33, .fenced = true,
                .guards = REDLOCK_GUARDS_ON, .turns = 3),
        ON_POST("all_messages_are_lost", .lost_percent = 100, .guards = REDLOCK_GUARDS_ON,
                .turns = 2),
        ON_POST("all_messages_come_twice", .doubles = true, .guards = REDLOCK_GUARDS_ON,
                .turns = 30),
        ON_POST("all_messages_of_fenced_locks_come_twice", .doubles = true, .fenced = true,
                .guards = REDLOCK_GUARDS_ON, .turns = 30),
        ON_FIVE_MASTERS(a_tenth_that_is_lost_costs_few_polls),
        ON_FIVE_MASTERS(a_copy_does_not_give_away_a_lock_that_was_handed_over),
        ON_FIVE_MASTERS(messages_that_come_after_the_reservation_do_not_count),
        ON_FIVE_MASTERS(keys_pushed_to_nobody_go_back_in_bounded_numbers),
        ON_FIVE_MASTERS(pushes_after_a_long_wait_are_asked_about),
    };

    return cmocka_run_group_tests_name("waiting_messages", tests, NULL, NULL);
}
