/*
 * Requests wait in the queue while connections are cut, and masters restart, are full, or permit no
 * messages: all are served, one at a time.
 */
#include "clocks.h"
#include "detour.h"
#include "harness.h"
#include "master_data.h"
#include "missing_rights.h"
#include "wait_queue.h"

#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5

/* -------------------------------------------------------------------------------------- rights */

/* The rights that a user lacks, and the text with which the log reports this at each node. */
struct missing_right {
    const char *rules;
    const char *named;
};

static void leave_at_once(struct call *call, void *arg) {
    (void)arg;
    assert_ended(call, REDLOCK_OK);
    begin_release(call->fixture, call->lock);
}

#define WAITERS 3

/* Begins requests of one client, which share one queue entry. */
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

/*
 * Cuts all connections of a user, and waits until the client has new ones and has asked the server
 * again.
 */
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

/* Runs the loop until each master has been asked for the key `times` more times. */
static void wait_asked(struct fixture *f, size_t times) {
    size_t before[FIVE];

    for (size_t i = 0; i < FIVE; i++) {
        before[i] = executed(f, i, "evalsha");
    }
    for (size_t i = 0; i < FIVE; i++) {
        wait_executed(f, i, "evalsha", before[i] + times);
    }
}

/* Waiters poll instead, and the log says so once for each node, even after a reconnection. */
static void without_a_right_waiting_is_polling(void **state) {
    struct fixture *f = *state;
    const struct missing_right *missing = f->row;
    redlock_client *client = connect_without(f, missing->rules);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    begin_waiters(f, client, calls);
    wait_warnings(f, "no messages", missing->named);
    wait_asked(f, 5);
    cut_user(f, client);
    assert_none_ended(calls);
    wait_in_queue(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    await_waiters(f, calls);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(warnings(f, i, "no messages", missing->named), 1);
    }
    assert_int_equal(f->capture.levels[REDLOCK_LOG_ERROR], 0);
    wait_queue_empty(f, KEY);
}

#define ON_MISSING_RIGHT(name, ...)                                                                \
    ON_ROW(name, without_a_right_waiting_is_polling, five_masters,                                 \
           &((struct missing_right){__VA_ARGS__}))

/* ------------------------------------------------------------------------- masters that restart */

/*
 * Returns whether the restarted masters have given the key to the first waiter, with one in the
 * queue.
 */
static bool has_queue_again(void *arg) {
    struct fixture *f = arg;

    return waiters_at(f, 0, KEY) == 2 && waiters_at(f, 1, KEY) == 2;
}

/*
 * Two masters restart empty; then two others leave, so that there is no quorum without those two.
 */
static void entries_are_taken_again_after_a_restart(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[2];

    for (size_t i = 0; i < 2; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_in_queue(f, KEY, (long long)i + 1);
    }
    for (size_t i = 0; i < 2; i++) {
        masters_kill(f->masters, i);
        masters_restart(f->masters, i);
    }
    run_until(f, has_queue_again, f, "the masters that restarted have the waiters");
    masters_kill(f->masters, 3);
    masters_kill(f->masters, 4);
    assert_int_equal(calls[0]->ended + calls[1]->ended, 0);
    take_turns(f, lock, calls, 2);
    wait_queue_empty(f, KEY);
}

/*
 * The key is free, but no quorum is up. Those for which another request of the client has asked
 * fail like that one, not with REDLOCK_EHELD.
 */
static void a_cohort_without_a_quorum_is_not_held_up_by_a_holder(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    struct call *calls[3];

    for (size_t i = 0; i < 3; i++) {
        masters_kill(f->masters, i);
    }
    request.wait_ms = PATIENT_MS;
    for (size_t i = 0; i < 3; i++) {
        calls[i] = begin_acquire(f, client, &request);
    }
    pass_time(PATIENT_MS);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_ENOQUORUM);
    }
}

/* ------------------------------------------------------------------------- connections that end */

struct cut {
    const char *command;
};

/* The channels of a waiter at all masters. */
struct channels {
    struct fixture *f;
    char *names[FIVE];
};

/* Returns whether the waiter subscribes to other channels now. */
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

static void entries_move_to_new_channels(void **state) {
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
        send_to(f, i, i + 1, cut->command);
    }
    run_until(f, have_changed, &channels, "the channels of before are closed");
    wait_listening(f, KEY, 0, 1);
    wait_in_queue(f, KEY, 1); /* the previous entry is gone */
    wait_connected(f, holder, FIVE);
    take_turns(f, lock, &call, 1);
    wait_queue_empty(f, KEY);
    wait_released(f, KEY); /* no reservation was left to expire */
}

#define ON_CUT(name, ...)                                                                          \
    ON_ROW(name, entries_move_to_new_channels, five_masters, &((struct cut){__VA_ARGS__}))

/*
 * A node that is away when a request is canceled keeps the entry until its pending release is sent.
 */
static void an_entry_is_given_up_by_a_pending_release(void **state) {
    struct fixture *f = *state;
    struct detour detour = take_detour(f);
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, detour.client, &request);

    wait_in_queue(f, KEY, 1);
    go_away(f, &detour, 4);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    wait_all_answered(f, detour.client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(waiters_at(f, i, KEY), i == 4);
    }
    assert_int_equal(node_info(detour.client, 4).pending_releases, 1);
    proxy_accept(detour.proxies[4]);
    wait_releases_done(f, detour.client, 4);
    wait_in_queue(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* --------------------------------------------------------------------------------- full masters */

/* Returns the number of warnings and errors in the log. */
static size_t complaints(const struct fixture *f) {
    return f->capture.levels[REDLOCK_LOG_WARN] + f->capture.levels[REDLOCK_LOG_ERROR];
}

/* Full masters keep no queue: waiters poll, and the log says so once for each node. */
static void at_full_masters_waiting_is_polling(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    wait_holders(f, KEY, FIVE);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 1");
    begin_waiters(f, client, calls);
    wait_asked(f, 20);
    wait_in_queue(f, KEY, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_asked(f, 20);
    assert_none_ended(calls);
    assert_int_in_range(complaints(f), 0, FIVE);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 0");
    await_waiters(f, calls);
    wait_queue_empty(f, KEY);
}

/* Masters that are full when the holder releases still pass the key on: no command needs room. */
static void full_masters_pass_the_key_on(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[WAITERS];

    begin_waiters(f, client, calls);
    wait_in_queue(f, KEY, 1);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 1");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    await_waiters(f, calls);
    assert_int_in_range(complaints(f), 0, FIVE);
    send_to(f, 0, FIVE, "CONFIG SET maxmemory 0");
    wait_queue_empty(f, KEY);
}

/* A minority of full masters delays no waiter. */
static void the_masters_with_room_are_enough(void **state) {
    struct fixture *f = *state;
    redlock_request request = waiting_request(KEY);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct call *calls[2];

    wait_holders(f, KEY, FIVE);
    send_to(f, 0, 2, "CONFIG SET maxmemory 1");
    for (size_t i = 0; i < 2; i++) {
        redlock_client *client = connect_client(f);

        calls[i] = begin_acquire(f, client, &request);
        wait_listening(f, KEY, 2, (long long)i + 1);
    }
    take_turns(f, lock, calls, 2);
    wait_queue_empty(f, KEY);
}

/* ---------------------------------------------------------------------------- silent masters */

/*
 * A minority that does not answer delays no waiter: here a waiter for a key that expires gets it at
 * once, though the node timeout is longer than any test waits.
 */
static void a_silent_minority_delays_nobody(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_request request = waiting_request(KEY);

    options.node_timeout_ms = LONG_TTL_MS / 2;
    options.stall_timeout_ms = LONG_TTL_MS;
    redlock_client *client = connect_with(f, &options);

    wait_connected(f, client, FIVE);
    rival_takes(f, 2, FIVE, KEY, 300);
    freeze_masters(f, 0, 2);
    struct call *call = begin_acquire(f, client, &request);

    assert_int_equal(await(f, call), REDLOCK_OK);
    thaw_masters(f, 0, 2);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_queue_empty(f, KEY);
}

/*
 * Two of five masters lack the holder's key, so that a waiter gets it there, gives it up and
 * requeues, over and over. At the end of its wait it asks the others once more, and they deny.
 */
/* Requeues have not helped. */
static bool has_left_keys(void *arg) {
    return value_at(arg, 0, KEY) == NULL && value_at(arg, 1, KEY) == NULL;
}

static void a_holder_is_confirmed_after_a_requeue(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    size_t before;

    request.wait_ms = LONG_TTL_MS;
    rival_takes(f, 2, FIVE, KEY, 10 * LONG_TTL_MS);
    before = executed(f, 4, "evalsha");
    struct call *call = begin_acquire(f, client, &request);
    wait_executed(f, 4, "evalsha", before + 3);
    pass_until(f, client, 0, 200, has_left_keys, f, "the waiter leaves the keys to the holder");
    wait_all_answered(f, client);
    pass_time(request.wait_ms);
    assert_int_equal(await(f, call), REDLOCK_EHELD);
    assert_explained(call, "3 held by another");
    assert_explained(call, "2 left free for the holder");
}

/* ---------------------------------------------------------------------- pushes that do not count
 */

/* The votes of this kind that the node has cast. */
struct votes {
    const char *node, *kind;
    size_t count;
};

static void on_event(const redlock_event *event, void *arg) {
    struct votes *votes = arg;
    bool is_vote = strcmp(event->name, "vote_cast") == 0 && strcmp(event->node, votes->node) == 0;

    for (size_t i = 0; i < event->field_count && is_vote; i++) {
        const redlock_event_field *field = &event->fields[i];

        votes->count += strcmp(field->name, "vote") == 0 && strcmp(field->text, votes->kind) == 0;
    }
}

static bool were_cast_twice(void *arg) {
    const struct votes *votes = arg;

    return votes->count >= 2;
}

static redlock_vote vote_of(const redlock_lock *lock, size_t node) {
    redlock_node_report reports[REDLOCK_MAX_NODES];

    assert_true(redlock_report(lock, reports, REDLOCK_MAX_NODES) > node);
    return reports[node].vote;
}

/*
 * A waiter is alone, but two masters do not answer and the grants of the third do not count. So it
 * requeues, and the third passes it the key that it had granted before: the vote for this push says
 * what is wrong, as the answer did. It is no DENIED: nobody else has the key.
 */
static void assert_push_is(struct fixture *f, redlock_options *options, bool is_fenced,
                           const char *kind, redlock_vote vote, const char *why) {
    struct votes votes = {.node = "", .kind = kind};
    redlock_request request = waiting_request(KEY);

    options->node_timeout_ms = LONG_TTL_MS / 2;
    options->stall_timeout_ms = LONG_TTL_MS;
    options->trace = on_event;
    options->trace_arg = &votes;
    request.fenced = is_fenced;
    redlock_client *client = connect_with(f, options);

    wait_connected(f, client, FIVE);
    votes.node = node_info(client, 2).node;
    freeze_masters(f, 0, 2);
    struct call *call = begin_acquire(f, client, &request);

    run_until(f, were_cast_twice, &votes, "the answer and a push have been judged");
    assert_int_equal(vote_of(call->lock, 2), vote);
    assert_non_null(strstr(redlock_explain(call->lock), why));
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    await(f, call);
    thaw_masters(f, 0, 2);
    close_client(f, client); /* while the votes exist */
}

static void a_push_with_an_absurd_counter_is_an_error(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    send_to(f, 2, 3, "SET " KEY "::fence 9007199254740000");
    assert_push_is(f, &options, true, "error", REDLOCK_VOTE_ERROR, "days ahead of the clocks");
}

static void a_push_of_a_young_master_is_untrusted(void **state) {
    struct fixture *f = *state;
    const char *uris[FIVE];

    memcpy(uris, durable_uris(f), sizeof(uris));
    uris[2] = masters_uri(f->masters, 2); /* new, and not durable */
    redlock_options options = patient_options(f, uris, FIVE);
    options.guards = REDLOCK_GUARDS_ON;
    assert_push_is(f, &options, false, "untrusted", REDLOCK_VOTE_UNTRUSTED, "not trusted for");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_MISSING_RIGHT("without_a_channel_waiting_is_polling", "resetchannels", "&redlock:*"),
        ON_MISSING_RIGHT("without_subscribe_waiting_is_polling", "-subscribe", "+subscribe"),
        ON_MISSING_RIGHT("without_publish_waiting_is_polling", "-publish", "+publish"),
        ON_MISSING_RIGHT("without_a_queue_waiting_is_polling",
                         "resetkeys ~" KEY " ~" REDLOCK_MARKER_KEY, "~" KEY "::queue"),
        ON_MISSING_RIGHT("without_zadd_waiting_is_polling", "-zadd", "+zadd"),
        ON_MISSING_RIGHT("without_zrem_waiting_is_polling", "-zrem", "+zrem"),
        ON_MISSING_RIGHT("without_zrange_waiting_is_polling", "-zrange", "+zrange"),
        ON_FIVE_MASTERS(entries_are_taken_again_after_a_restart),
        ON_FIVE_MASTERS(a_cohort_without_a_quorum_is_not_held_up_by_a_holder),
        ON_CUT("entries_outlive_the_connections", "CLIENT KILL TYPE normal SKIPME yes"),
        ON_CUT("entries_outlive_the_subscriptions", "CLIENT KILL TYPE pubsub"),
        ON_FIVE_MASTERS(an_entry_is_given_up_by_a_pending_release),
        ON_FIVE_MASTERS(at_full_masters_waiting_is_polling),
        ON_FIVE_MASTERS(full_masters_pass_the_key_on),
        ON_FIVE_MASTERS(the_masters_with_room_are_enough),
        ON_FIVE_MASTERS(a_silent_minority_delays_nobody),
        ON_FIVE_MASTERS(a_holder_is_confirmed_after_a_requeue),
        ON_FIVE_MASTERS(a_push_with_an_absurd_counter_is_an_error),
        ON_FIVE_MASTERS(a_push_of_a_young_master_is_untrusted),
    };

    return cmocka_run_group_tests_name("waiting_faults", tests, NULL, NULL);
}
