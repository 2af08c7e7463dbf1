/*
 * Requests that stand in line while messages are lost, doubled or late, connections are cut, and
 * masters restart, are full, or permit no messages: all are served, one at a time.
 */
#include "clocks.h"
#include "courier.h"
#include "detour.h"
#include "harness.h"
#include "line.h"
#include "look.h"
#include "rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* Releases the lock, and asserts that the calls then end well, one after the other. */
static void let_go_to(struct fixture *f, redlock_lock *lock, struct call *const *calls,
                      size_t count) {
    let_go(f, lock);
    for (size_t i = 0; i < count; i++) {
        await(f, calls[i]);
        assert_ended(calls[i], REDLOCK_OK);
        for (size_t k = i + 1; k < count; k++) {
            assert_int_equal(calls[k]->ended, 0);
        }
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
    }
}

/* ------------------------------------------------------------------------------------ messages */

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
    struct courier *courier = courier_create(f);
    struct rivals_options options = {.request = waiting_request(KEY), .turns = post->turns};

    options.request.fenced = post->fenced;
    courier_lose(courier, post->lost_percent);
    if (post->doubles) {
        courier_double(courier);
    }
    struct rivals *rivals = rivals_create(f, &options);
    for (unsigned i = 0; i < 6; i++) {
        rivals_begin(rivals, courier_client(f, courier, post->guards));
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    assert_true(courier_pushes(courier) >= (size_t)post->turns * FIVE);
    assert_true((courier_lost(courier) > 0) == (post->lost_percent > 0));
    wait_line_over(f, KEY);
    if (post->lost_percent == 0) {
        wait_released(f, KEY); /* no claim was left to end by itself */
    }
}

#define ON_POST(name, ...)                                                                         \
    ON_ROW(name, with_such_messages_all_are_served, five_masters, &((struct post){__VA_ARGS__}))

/* A copy of the message by which the client got a lock comes when another request has the lock. */
static void a_copy_does_not_give_away_a_lock_that_was_handed_over(void **state) {
    struct fixture *f = *state;
    struct courier *courier = courier_create(f);
    redlock_client *client = courier_client(f, courier, REDLOCK_GUARDS_ON);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *first = begin_acquire(f, client, &request);
    struct call *second = begin_acquire(f, client, &request);

    wait_in_line(f, KEY, 1);
    courier_keep_copies(courier);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, first), REDLOCK_OK);
    assert_int_equal(let_go(f, first->lock), REDLOCK_OK);
    assert_int_equal(await(f, second), REDLOCK_OK);
    wait_holders(f, KEY, FIVE);
    courier_deliver_copies(f, courier);
    wait_all_answered(f, client);
    assert_int_equal(holders(f, KEY), FIVE);
    assert_int_equal(extend(f, second->lock, 0), REDLOCK_OK);
    assert_int_equal(let_go(f, second->lock), REDLOCK_OK);
    wait_line_over(f, KEY);
    wait_released(f, KEY);
}

/* The messages arrive when the masters have taken the key back and given it to the next in line. */
static void messages_that_come_after_the_claim_do_not_count(void **state) {
    struct fixture *f = *state;
    struct courier *courier = courier_create(f);
    redlock_client *slow = courier_client(f, courier, REDLOCK_GUARDS_ON);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *late = begin_acquire(f, slow, &request);

    wait_in_line(f, KEY, 1);
    struct call *next = begin_acquire(f, connect_client(f), &request);
    wait_in_line(f, KEY, 2);
    wait_all_answered(f, slow);
    courier_hold(courier, CLIENT);
    courier_hold(courier, SERVER);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    courier_pass(courier, SERVER);
    wait_delivered(f, courier);
    assert_true(courier_pushes(courier) >= FIVE);
    assert_int_equal(late->ended, 0);
    courier_pass(courier, CLIENT);
    wait_all_answered(f, slow);
    assert_int_equal(late->ended, 0);
    assert_int_equal(extend(f, next->lock, 0), REDLOCK_OK);
    let_go_to(f, next->lock, &late, 1);
    wait_line_over(f, KEY);
}

/* -------------------------------------------------------------------------------------- rights */

/* The rights that a user lacks, and the text by which the log names the lack at each node. */
struct lack {
    const char *rules;
    const char *named;
};

/* Returns the number of warnings about a node's messages that contain the text. */
static size_t warnings(struct fixture *f, size_t node, const char *text) {
    char start[64];
    size_t count = 0;

    snprintf(start, sizeof(start),
             "node 127.0.0.1:%d: no messages: ", masters_port(f->masters, node));
    for (size_t i = 0; i < f->diary.count && i < DIARY_LINES; i++) {
        const char *line = f->diary.lines[i];

        count += strstr(line, start) != NULL && strstr(line, text) != NULL;
    }
    return count;
}

/* Makes a client of a user that lacks rights. */
static redlock_client *connect_without(struct fixture *f, const struct lack *lack) {
    char text[FIVE][64];
    const char *uris[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        char command[160];

        snprintf(command, sizeof(command), "ACL SETUSER app on >pw ~* &* +@all %s", lack->rules);
        tell(f, i, i + 1, command);
        snprintf(text[i], sizeof(text[i]), "redis://app:pw@127.0.0.1:%d",
                 masters_port(f->masters, i));
        uris[i] = text[i];
    }
    redlock_options options = patient_options(f, uris, FIVE);
    return connect_with(f, &options);
}

struct naming {
    struct fixture *f;
    const char *text;
};

static bool is_named_at_all(void *arg) {
    const struct naming *naming = arg;

    for (size_t i = 0; i < FIVE; i++) {
        if (warnings(naming->f, i, naming->text) == 0) {
            return false;
        }
    }
    return true;
}

static void leave_at_once(struct call *call, void *arg) {
    (void)arg;
    assert_ended(call, REDLOCK_OK);
    begin_release(call->fixture, call->lock);
}

#define WAITERS 3

/* Begins requests of one client, which stand in line as one. */
static void begin_waiters(struct fixture *f, redlock_client *client, struct call **calls) {
    redlock_request request = waiting_request(KEY);

    for (size_t i = 0; i < WAITERS; i++) {
        calls[i] = begin_acquire(f, client, &request);
        calls[i]->then = leave_at_once;
    }
}

static void assert_none_ended(struct call *const *calls) {
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(calls[i]->ended, 0);
    }
}

static void await_waiters(struct fixture *f, struct call *const *calls) {
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
    }
}

/* Cuts all connections of a user, and waits for new ones, and until the server is asked again. */
static void cut_user(struct fixture *f, redlock_client *client) {
    for (size_t i = 0; i < FIVE; i++) {
        uint64_t before = node_info(client, i).disconnected;

        free(masters_query(f->masters, i, "CLIENT KILL USER app"));
        wait_disconnected(f, client, i, before + 1);
    }
    wait_connected(f, client, FIVE);
    wait_all_answered(f, client);
    pass_time(20000);
    run_turns(f, 10);
    wait_all_answered(f, client);
}

/* Runs the loop until each master has been asked for the key so many times more. */
static void wait_asked(struct fixture *f, size_t times) {
    size_t before[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        before[i] = executed(f, i, "evalsha");
    }
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "evalsha", before[i] + times);
    }
}

/* Waiters poll instead, and the log says so once for each node, also when its connection is new. */
static void without_a_right_waiting_is_polling(void **state) {
    struct fixture *f = *state;
    const struct lack *lack = f->row;
    redlock_client *client = connect_without(f, lack);
    struct naming naming = {f, lack->named};
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    begin_waiters(f, client, calls);
    run_until(f, is_named_at_all, &naming, "the missing right is named at all nodes");
    wait_asked(f, 5);
    cut_user(f, client);
    assert_none_ended(calls);
    wait_in_line(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    await_waiters(f, calls);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(warnings(f, i, lack->named), 1);
    }
    assert_int_equal(f->diary.levels[REDLOCK_LOG_ERROR], 0);
    wait_line_over(f, KEY);
}

#define ON_LACK(name, ...)                                                                         \
    ON_ROW(name, without_a_right_waiting_is_polling, five_masters, &((struct lack){__VA_ARGS__}))

/* ------------------------------------------------------------------------- masters that restart */

/* Returns whether the masters that restarted have given the key to the first, with one in line. */
static bool has_line_again(void *arg) {
    struct fixture *f = arg;

    for (size_t i = 0; i < 2; i++) {
        if (line_length(f, i, KEY) == 0 || expiry_at(f, i, KEY) == 0) {
            return false;
        }
    }
    return true;
}

/* Two masters restart empty; then two others go, so that no quorum is without those two. */
static void places_are_taken_again_after_a_restart(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[2];

    for (size_t i = 0; i < 2; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_in_line(f, KEY, (long long)i + 1);
    }
    for (size_t i = 0; i < 2; i++) {
        masters_kill(f->masters, i);
        masters_restart(f->masters, i);
    }
    run_until(f, has_line_again, f, "the waiters are in line at the masters that restarted");
    masters_kill(f->masters, 3);
    masters_kill(f->masters, 4);
    assert_int_equal(calls[0]->ended + calls[1]->ended, 0);
    let_go_to(f, lock, calls, 2);
    wait_line_over(f, KEY);
}

/* ------------------------------------------------------------------------- connections that end */

struct cut {
    const char *command;
};

/* Channels of a waiter at all masters. */
struct channels {
    struct fixture *f;
    char *names[FIVE];
};

/* Returns whether the waiter listens to other channels now. */
static bool have_changed(void *arg) {
    const struct channels *channels = arg;

    for (size_t i = 0; i < FIVE; i++) {
        char *counts =
            masters_query(channels->f->masters, i, "PUBSUB NUMSUB %s", channels->names[i]);
        bool is_gone = counts != NULL && strstr(counts, "\n0") != NULL;

        free(counts);
        if (!is_gone) {
            return false;
        }
    }
    return true;
}

static void places_move_to_new_channels(void **state) {
    struct fixture *f = *state;
    const struct cut *cut = f->row;
    redlock_client *holder = connect_client(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, holder, KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, connect_client(f), &request);
    struct channels channels = {.f = f};

    wait_listening(f, KEY, 0, 1);
    wait_all_answered(f, holder);
    for (size_t i = 0; i < FIVE; i++) {
        channels.names[i] = first_channel(f, i, KEY);
        assert_non_null(channels.names[i]);
        at_finish(f, free, channels.names[i]);
        tell(f, i, i + 1, cut->command);
    }
    run_until(f, have_changed, &channels, "the channels of before are closed");
    wait_listening(f, KEY, 0, 1);
    wait_in_line(f, KEY, 1); /* the place of before is gone */
    wait_connected(f, holder, FIVE);
    let_go_to(f, lock, &call, 1);
    wait_line_over(f, KEY);
    wait_released(f, KEY); /* no claim was left to end by itself */
}

#define ON_CUT(name, ...)                                                                          \
    ON_ROW(name, places_move_to_new_channels, five_masters, &((struct cut){__VA_ARGS__}))

/* A node that is away when a request is canceled keeps the place until the debt is paid. */
static void a_place_is_given_up_as_a_debt(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, detour.client, &request);

    wait_in_line(f, KEY, 1);
    go_away(f, &detour, 4);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    wait_all_answered(f, detour.client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(line_length(f, i, KEY), i == 4);
    }
    assert_int_equal(node_info(detour.client, 4).release_debts, 1);
    proxy_accept(detour.proxies[4]);
    wait_no_debts(f, detour.client, 4);
    wait_in_line(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* ---------------------------------------------------------------------------- masters without room
 */

/* Returns the number of warnings and errors in the log. */
static size_t complaints(const struct fixture *f) {
    return f->diary.levels[REDLOCK_LOG_WARN] + f->diary.levels[REDLOCK_LOG_ERROR];
}

/* Full masters keep no queue: who waits polls, and the log says so once for each node. */
static void at_full_masters_waiting_is_polling(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    wait_holders(f, KEY, FIVE);
    tell(f, 0, FIVE, "CONFIG SET maxmemory 1");
    begin_waiters(f, client, calls);
    wait_asked(f, 20);
    wait_in_line(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_asked(f, 20);
    assert_none_ended(calls);
    assert_in_range(complaints(f), 0, FIVE);
    tell(f, 0, FIVE, "CONFIG SET maxmemory 0");
    await_waiters(f, calls);
    wait_line_over(f, KEY);
}

/* Masters that are full when the holder releases cannot pass the key on: the key is free then. */
static void full_masters_free_the_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    begin_waiters(f, client, calls);
    wait_in_line(f, KEY, 1);
    tell(f, 0, FIVE, "CONFIG SET maxmemory 1");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    wait_asked(f, 5);
    assert_none_ended(calls);
    assert_in_range(complaints(f), 0, FIVE);
    tell(f, 0, FIVE, "CONFIG SET maxmemory 0");
    await_waiters(f, calls);
    wait_line_over(f, KEY);
}

/* A minority of full masters keeps nobody waiting. */
static void the_masters_with_room_are_enough(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[2];

    wait_holders(f, KEY, FIVE);
    tell(f, 0, 2, "CONFIG SET maxmemory 1");
    for (size_t i = 0; i < 2; i++) {
        redlock_client *client = connect_client(f);

        calls[i] = begin_acquire(f, client, &request);
        wait_listening(f, KEY, 2, (long long)i + 1);
    }
    let_go_to(f, lock, calls, 2);
    wait_line_over(f, KEY);
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
        ON_FIVE_MASTERS(a_copy_does_not_give_away_a_lock_that_was_handed_over),
        ON_FIVE_MASTERS(messages_that_come_after_the_claim_do_not_count),
        ON_LACK("without_a_channel_waiting_is_polling", "resetchannels", "&redlock:*"),
        ON_LACK("without_subscribe_waiting_is_polling", "-subscribe", "+subscribe"),
        ON_LACK("without_publish_waiting_is_polling", "-publish", "+publish"),
        ON_LACK("without_a_queue_waiting_is_polling", "resetkeys ~" KEY " ~" REDLOCK_MARKER_KEY,
                "~" KEY "::queue"),
        ON_FIVE_MASTERS(places_are_taken_again_after_a_restart),
        ON_CUT("places_outlive_the_connections", "CLIENT KILL TYPE normal SKIPME yes"),
        ON_CUT("places_outlive_the_subscriptions", "CLIENT KILL TYPE pubsub"),
        ON_FIVE_MASTERS(a_place_is_given_up_as_a_debt),
        ON_FIVE_MASTERS(at_full_masters_waiting_is_polling),
        ON_FIVE_MASTERS(full_masters_free_the_key),
        ON_FIVE_MASTERS(the_masters_with_room_are_enough),
    };

    return cmocka_run_group_tests_name("waiting_faults", tests, NULL, NULL);
}
