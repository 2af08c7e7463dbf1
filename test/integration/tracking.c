/*
 * Nodes notify at once of a changed key: holders whose requests ask for that, and the first waiter
 * in the queue if the holder is foreign.
 */
#include "clocks.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "missing_rights.h"
#include "wait_queue.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* ------------------------------------------------------------------------------------ watching */

/* Runs the loop until each master has been asked to watch keys `times` times, and has answered. */
static void wait_watched(struct fixture *f, redlock_client *client, size_t times) {
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "getrange", times);
    }
    wait_all_answered(f, client);
}

static redlock_request watched_request(const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);

    request.watchdog = true;
    request.watch_key = true;
    return request;
}

/* Acquires a key that all masters watch from then on. */
static redlock_lock *hold_watched(struct fixture *f, redlock_client *client,
                                  const redlock_request *request) {
    size_t before = executed(f, 0, "getrange");
    redlock_lock *lock = hold_for(f, client, request);

    wait_watched(f, client, before + 1);
    return lock;
}

static size_t executed_at_all(struct fixture *f, const char *command) {
    size_t count = 0;

    for (size_t i = 0; i < FIVE; i++) {
        count += executed(f, i, command);
    }
    return count;
}

/* ------------------------------------------------------------------------------------- holders */

/* The next renewal is minutes away. */
static void a_key_deleted_at_a_minority_is_set_again(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    redlock_lock *lock = hold_watched(f, client, &request);

    rival_frees(f, 0, 2, KEY);
    wait_holders(f, KEY, FIVE);
    wait_watched(f, client, 2); /* also where the key was topped up */
    rival_frees(f, 2, 4, KEY);
    wait_holders(f, KEY, FIVE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_deleted_key_is_lost_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void so_is_a_replaced_one(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    rival_takes(f, 0, 3, KEY, LONG_TTL_MS);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
    rival_frees(f, 0, FIVE, KEY);
}

static void so_is_one_that_somebody_lets_expire(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    rival_takes(f, 0, 3, KEY, 1);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void so_are_all_keys_of_emptied_masters(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    send_to(f, 0, 3, "FLUSHALL");
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void so_is_one_key_of_several(void **state) {
    struct fixture *f = *state;
    const char *const keys[] = {"from", KEY, "to"};
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(NULL);
    struct loss *loss = watch_loss(f, &request);

    request.keys = keys;
    request.key_count = 3;
    redlock_lock *lock = hold_for(f, client, &request);
    wait_watched(f, client, 3);
    rival_frees(f, 0, 3, KEY);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void a_watched_permit_is_lost_at_once_too(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);

    request.permits = 3;
    request.fenced = true;
    redlock_lock *lock = hold_watched(f, client, &request);
    rival_frees(f, 0, 3, redlock_key(lock, NULL));
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

/* A renewal ends the watching, and is followed by another question. */
static void a_renewed_key_is_watched_again(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_watched(f, client, 2);
    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void a_new_connection_watches_again(void **state, const char *kill) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = watched_request(KEY);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_watched(f, client, &request);

    for (size_t i = 0; i < FIVE; i++) {
        free(masters_query(f->masters, i, kill));
    }
    wait_watched(f, client, 2);
    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, lock);
}

static void a_new_channel_watches_again(void **state) {
    a_new_connection_watches_again(state, "CLIENT KILL TYPE pubsub");
}

static void so_does_a_new_connection(void **state) {
    a_new_connection_watches_again(state, "CLIENT KILL TYPE normal SKIPME yes");
}

/* A lock that is handed over is watched for its next holder. */
static void a_handed_over_key_is_watched(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold_for(f, client, &request);

    request.watch_key = true;
    struct loss *loss = watch_loss(f, &request);
    struct call *next = begin_acquire(f, client, &request);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    wait_watched(f, client, 1);
    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    let_go(f, next->lock);
}

/* ------------------------------------------------------------------------------ endless changes */

static redlock_client *connect_unguarded(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.guards = REDLOCK_GUARDS_OFF; /* guards compare clocks, and ours will stand still */
    return connect_with(f, &options);
}

#define CHANGES 200

/* Each change is notified, but the lock is renewed only after a pause. */
static void a_key_that_changes_all_the_time_is_looked_at_seldom(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_unguarded(f);
    redlock_request request = watched_request(KEY);
    redlock_lock *lock = hold_watched(f, client, &request);
    size_t before = scripts_at(f, 0);

    pass_time(10);
    stop_time();
    for (size_t i = 0; i < CHANGES; i++) {
        masters_query_integer(f->masters, i % FIVE, "PEXPIRE %s %d", KEY, LONG_TTL_MS);
        event_base_loop(f->base, EVLOOP_NONBLOCK);
    }
    resume_time();
    assert_int_in_range(scripts_at(f, 0) - before, 1, 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* A server that grants all rights and scripts, and sends change notifications forever. */
struct liar {
    struct peer *peer;
    struct peer_link *subscriber;
    char channel[64];
    const char *bytes;
};

static void confirm(struct liar *liar, struct peer_link *link, const struct command *command) {
    char text[160];

    liar->subscriber = link;
    command_text(command, 1, liar->channel, sizeof(liar->channel));
    snprintf(text, sizeof(text), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
             strlen(liar->channel), liar->channel);
    peer_say(link, text);
}

static void publish(const struct liar *liar, struct peer_link *link,
                    const struct command *command) {
    char probe[64], text[256];

    command_text(command, 4, probe, sizeof(probe));
    snprintf(text, sizeof(text), "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
             strlen(liar->channel), liar->channel, strlen(probe), probe);
    peer_say(liar->subscriber, text);
    peer_say(link, ":1\r\n");
}

static void lie(struct peer_link *link, const struct command *command, void *arg) {
    struct liar *liar = arg;

    if (command_is(command, "SUBSCRIBE", NULL)) {
        confirm(liar, link, command);
    } else if (command_is(command, "CLIENT", "ID")) {
        peer_say(link, ":7\r\n");
    } else if (command_is(command, "CLIENT", "TRACKING")) {
        peer_say(link, "+OK\r\n");
        peer_pour(liar->subscriber, liar->bytes, strlen(liar->bytes));
    } else if (command_is(command, "GETRANGE", NULL)) {
        peer_say(link, "$0\r\n\r\n");
    } else if (command_is_script(command) && command_keys(command) == 0) {
        publish(liar, link, command);
    } else {
        peer_answer_well(link, command, arg);
    }
}

#define CHANGE "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"

static bool has_poured(void *arg) {
    const struct liar *liar = arg;

    return peer_poured(liar->peer) > 100000;
}

static void changes_without_end_are_survived(void **state) {
    struct fixture *f = *state;
    struct liar liar = {.bytes = CHANGE "*1\r\n$9\r\norders:42\r\n" CHANGE
                                        "*1\r\n$1\r\nx\r\n" CHANGE "*-1\r\n"};
    liar.peer = peer_create(f, lie, &liar);
    const char *const uris[] = {peer_uri(liar.peer)};
    redlock_options options = patient_options(f, uris, 1);

    options.guards = REDLOCK_GUARDS_OFF;
    redlock_client *client = connect_with(f, &options);
    redlock_request request = watched_request(KEY);
    redlock_lock *lock = hold_for(f, client, &request);
    run_until(f, has_poured, &liar, "the server reports changes");
    stop_time();
    size_t before = peer_commands(liar.peer);
    for (size_t i = 0; i < 10; i++) {
        struct call *call = begin_extend(f, lock, LONG_TTL_MS);
        await(f, call);
        assert_ended(call, REDLOCK_OK);
    }
    assert_int_in_range(peer_commands(liar.peer) - before, 10, 40); /* each with two, for a check */
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    resume_time();
}

#define CROWD 1000

static void a_thousand_keys_are_watched_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    size_t count = cycles_here(CROWD);
    struct call **calls = calloc(count, sizeof(*calls));
    struct loss **losses = calloc(count, sizeof(*losses));
    char key[32];

    assert_true(calls != NULL && losses != NULL);
    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "key:%zu", i);
        redlock_request request = watched_request(key);
        losses[i] = watch_loss(f, &request);
        calls[i] = begin_acquire(f, client, &request);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
    wait_watched(f, client, count);
    rival_frees(f, 0, 2, "key:0");
    wait_holders(f, "key:0", FIVE);
    rival_frees(f, 0, 3, "key:1");
    assert_int_equal(wait_lost(f, losses[1]), REDLOCK_ELOST);
    assert_int_equal(losses[2]->count, 0);
    send_to(f, 0, 3, "FLUSHALL");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(wait_lost(f, losses[i]), REDLOCK_ELOST);
        let_go(f, calls[i]->lock);
    }
    free(calls);
    free(losses);
}

/* No message could hold the key. */
static void a_very_long_key_is_not_watched(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    char key[4098];

    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    redlock_request request = watched_request(key);
    redlock_lock *lock = hold_for(f, client, &request);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(executed_at_all(f, "getrange"), 0);
}

static void who_does_not_ask_pays_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);

    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(executed_at_all(f, "client|id"), 0);
    assert_int_equal(executed_at_all(f, "client|tracking"), 0);
    assert_int_equal(executed_at_all(f, "client|caching"), 0);
    assert_int_equal(executed_at_all(f, "getrange"), 0);
}

/* ------------------------------------------------------------------------------------- waiters */

/* No poll of the waiter is due as long as its clock stands still. */
static void a_foreign_client_that_leaves_wakes_the_first(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_unguarded(f);
    redlock_client *other = connect_unguarded(f);
    redlock_request request = waiting_request(KEY);

    rival_takes(f, 0, FIVE, KEY, LONG_TTL_MS);
    struct call *first = begin_acquire(f, client, &request);
    wait_watched(f, client, 1);
    struct call *second = begin_acquire(f, other, &request);
    wait_listening(f, KEY, 0, 2);
    pass_time(10); /* the minimum pause between two asks */
    stop_time();
    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(await(f, first), REDLOCK_OK);
    resume_time();
    assert_int_equal(second->ended, 0);
    assert_int_equal(let_go(f, first->lock), REDLOCK_OK);
    take_turn(f, second);
    wait_queue_empty(f, KEY);
}

/* Masters that left the key to anybody have an entry for this in the queue, ahead of the first. */
static void so_does_one_that_got_it_when_it_was_anybodys(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < FIVE; i++) {
        masters_query_integer(f->masters, i, "ZADD %s 0 %s", KEY "::queue", "open 1");
    }
    a_foreign_client_that_leaves_wakes_the_first(state);
}

/*
 * The waiter is notified of the first release so soon after its ask that it pauses before the next.
 */
static void so_does_one_that_comes_back_at_once(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_unguarded(f);
    redlock_request request = waiting_request(KEY);

    rival_takes(f, 0, FIVE, KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    wait_watched(f, client, 1);
    stop_time();
    rival_frees(f, 0, FIVE, KEY);
    rival_takes(f, 0, FIVE, KEY, LONG_TTL_MS);
    pass_time(10); /* the minimum pause between two asks */
    wait_watched(f, client, 2);
    pass_time(250); /* the maximum */
    rival_frees(f, 0, FIVE, KEY);
    assert_int_equal(await(f, call), REDLOCK_OK);
    resume_time();
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* The holder itself notifies the next waiter. */
static void a_client_of_our_make_is_not_watched(void **state) {
    struct fixture *f = *state;
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    redlock_request request = waiting_request(KEY);
    struct call *first = begin_acquire(f, connect_client(f), &request);
    struct call *second = begin_acquire(f, connect_client(f), &request);

    wait_listening(f, KEY, 0, 2);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, first);
    take_turn(f, second);
    assert_int_equal(executed_at_all(f, "client|tracking"), 0);
    assert_int_equal(executed_at_all(f, "getrange"), 0);
}

/* -------------------------------------------------------------------------------------- rights */

#define SUBJECT "no change notifications"

struct missing_right {
    const char *rules;
    const char *named;
};

/* Without the right, holding and waiting work as before, and the log names the right once. */
static void a_missing_right_is_named(void **state) {
    struct fixture *f = *state;
    const struct missing_right *missing = f->row;
    redlock_client *client = connect_without(f, missing->rules);
    redlock_request request = watched_request(KEY);
    redlock_lock *lock = hold_for(f, client, &request);
    wait_warnings(f, SUBJECT, missing->named);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    rival_takes(f, 0, FIVE, KEY, LONG_TTL_MS);
    request = waiting_request(KEY);
    struct call *call = begin_acquire(f, client, &request);
    wait_listening(f, KEY, 0, 1);
    rival_frees(f, 0, FIVE, KEY);
    take_turn(f, call);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(warnings(f, i, SUBJECT, missing->named), 1);
    }
}

#define MISSING_RIGHT(name, rules, named)                                                          \
    ON_ROW(name, a_missing_right_is_named, five_masters,                                           \
           (&(const struct missing_right){rules, named}))

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_key_deleted_at_a_minority_is_set_again),
        ON_FIVE_MASTERS(a_deleted_key_is_lost_at_once),
        ON_FIVE_MASTERS(so_is_a_replaced_one),
        ON_FIVE_MASTERS(so_is_one_that_somebody_lets_expire),
        ON_FIVE_MASTERS(so_are_all_keys_of_emptied_masters),
        ON_FIVE_MASTERS(so_is_one_key_of_several),
        ON_FIVE_MASTERS(a_watched_permit_is_lost_at_once_too),
        ON_FIVE_MASTERS(a_renewed_key_is_watched_again),
        ON_FIVE_MASTERS(a_new_channel_watches_again),
        ON_FIVE_MASTERS(so_does_a_new_connection),
        ON_FIVE_MASTERS(a_handed_over_key_is_watched),
        ON_FIVE_MASTERS(a_key_that_changes_all_the_time_is_looked_at_seldom),
        ON_NO_MASTERS(changes_without_end_are_survived),
        ON_FIVE_MASTERS(a_thousand_keys_are_watched_at_once),
        ON_FIVE_MASTERS(a_very_long_key_is_not_watched),
        ON_FIVE_MASTERS(who_does_not_ask_pays_nothing),
        ON_FIVE_MASTERS(a_foreign_client_that_leaves_wakes_the_first),
        ON_FIVE_MASTERS(so_does_one_that_got_it_when_it_was_anybodys),
        ON_FIVE_MASTERS(so_does_one_that_comes_back_at_once),
        ON_FIVE_MASTERS(a_client_of_our_make_is_not_watched),
        MISSING_RIGHT("without_client_id", "-client|id", "the user needs +client|id"),
        MISSING_RIGHT("without_client_tracking", "-client|tracking",
                      "the user needs +client|tracking"),
        MISSING_RIGHT("without_client_caching", "-client|caching",
                      "the user needs +client|caching"),
        MISSING_RIGHT("without_getrange", "-getrange", "the user needs +getrange"),
    };

    return cmocka_run_group_tests_name("tracking", tests, NULL, NULL);
}
