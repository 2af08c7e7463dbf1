/*
 * Nodes that forget a lock, or fall silent: the lock is topped up, or lost, and the loss is
 * reported in time.
 */
#include "clocks.h"
#include "harness.h"
#include "harness_peer.h"
#include "master_data.h"
#include "watchdog.h"

#include <stdio.h>
#include <string.h>

#define KEY "orders:42"
#define FIVE 5
#define TTL_MS 60000

/* ------------------------------------------------------------------------ nodes that forget */

static void an_empty_node_is_topped_up_after_the_next_renewal(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    wait_holders(f, KEY, 5);
    masters_kill(f->masters, 0);
    masters_restart(f->masters, 0);
    wait_disconnected(f, client, 0, 1);
    wait_connected(f, client, FIVE);
    pass_time(TTL_MS / 3);
    wait_holders(f, KEY, 5);
    assert_string_equal(value_at(f, 0, KEY), value_at(f, 1, KEY));
    assert_int_in_range(pttl_at(f, 0, KEY), 1, TTL_MS);

    /* The node counts from then on: with two others gone it is needed for the quorum. */
    kill_masters(f, 3, 5);
    assert_int_equal(extend(f, lock, TTL_MS), REDLOCK_OK);
    assert_int_equal(loss->count, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
}

/* Nodes that denied at first are free now, and the bare quorum becomes complete. */
static void a_bare_quorum_is_topped_up_when_nodes_come_free(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock;

    rival_takes(f, 3, 5, KEY, LONG_TTL_MS);
    lock = hold(f, client, KEY, LONG_TTL_MS);
    rival_frees(f, 3, 5, KEY);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    wait_holders(f, KEY, 5);
    assert_string_equal(value_at(f, 4, KEY), value_at(f, 0, KEY));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

static void a_lock_that_a_quorum_forgot_is_lost_not_revived(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_holders(f, KEY, 5);
    send_to(f, 0, 3, "FLUSHALL");
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(holders(f, KEY), 2);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_released(f, KEY);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(executed(f, i, "set"), 1); /* only the acquisition's */
    }
}

static void the_watchdog_reports_that_a_quorum_forgot(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, TTL_MS, &loss);

    wait_holders(f, KEY, 5);
    send_to(f, 0, 3, "FLUSHALL");
    pass_time(TTL_MS / 3);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_ptr_equal(loss->lock, lock);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    wait_holders(f, KEY, 0);
}

/* The scripts are missing at a node after a restart, or after SCRIPT FLUSH. */
static void forgotten_scripts_cost_no_vote(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, KEY, LONG_TTL_MS);
    struct call *call;

    send_to(f, 0, 5, "SCRIPT FLUSH");
    call = begin_extend(f, lock, LONG_TTL_MS);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(votes(call, REDLOCK_VOTE_ERROR), 0);
    send_to(f, 0, 5, "SCRIPT FLUSH");
    call = begin_release(f, lock);
    await(f, call);
    assert_ended(call, REDLOCK_OK);
    assert_int_equal(votes(call, REDLOCK_VOTE_ERROR), 0);
    wait_released(f, KEY);
    assert_int_equal(node_info(client, 0).disconnected, 0);
}

static void forgotten_scripts_cost_no_release_of_many(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *locks[50];
    struct call *calls[50];
    char key[50][16];

    for (size_t i = 0; i < 50; i++) {
        snprintf(key[i], sizeof(key[i]), "key:%zu", i);
        locks[i] = hold(f, client, key[i], LONG_TTL_MS);
    }
    send_to(f, 0, 5, "SCRIPT FLUSH");
    for (size_t i = 0; i < 50; i++) {
        calls[i] = begin_release(f, locks[i]);
    }
    for (size_t i = 0; i < 50; i++) {
        await(f, calls[i]);
        assert_ended(calls[i], REDLOCK_OK);
        wait_released(f, key[i]);
    }
}

/* ----------------------------------------------------------------------------- reported in time */

struct survivors {
    struct fixture *fixture;
    long long pttl; /* the shortest PTTL on any master when the loss was reported */
};

static void measure_survivors(struct loss *loss, void *arg) {
    struct survivors *survivors = arg;

    (void)loss;
    survivors->pttl = least_pttl(survivors->fixture, KEY);
}

static void stop_answering(struct peer_link *link, const struct command *command, void *arg) {
    if (command_is_script(command)) {
        return; /* renewals are never answered */
    }
    peer_answer_well(link, command, arg);
}

/*
 * Three of five nodes fall silent after the acquisition. Two real masters keep the key, and got it
 * no later than the lock was reported: when the loss is reported, they must still have it. The time
 * is real here, and drift is 1/2 of the TTL, so that "in time" is wide enough for any machine. (No
 * watchdog: a renewal would prolong the key.)
 */
static void a_lock_without_quorum_is_lost_before_the_servers_forget_it(void **state) {
    struct fixture *f = *state;
    struct survivors survivors = {f, 0};
    redlock_request request = request_for(KEY, 10000);
    struct loss *loss = watch_loss(f, &request);
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    redlock_client *client;
    redlock_lock *lock;

    options.drift = 0.5;
    client = connect_with(f, &options);
    loss->then = measure_survivors;
    loss->then_arg = &survivors;
    lock = hold_for(f, client, &request);
    wait_holders(f, KEY, 5);
    kill_masters(f, 0, 3);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_true(survivors.pttl > 0);
    assert_int_equal(redlock_validity_ms(lock), 0);
    assert_int_equal(redlock_extend(lock, 0, NULL, NULL), REDLOCK_ELOST);
    let_go(f, lock);
}

/* The renewals of the watchdog fail, and must not hide the loss. */
static void the_watchdog_without_quorum_reports_the_loss(void **state) {
    struct fixture *f = *state;
    struct survivors survivors = {f, 0};
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    struct loss *loss;
    redlock_lock *lock;

    options.drift = 0.5;
    lock = hold_renewed(f, connect_with(f, &options), KEY, 10000, &loss);
    loss->then = measure_survivors;
    loss->then_arg = &survivors;
    wait_holders(f, KEY, 5);
    kill_masters(f, 0, 3);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
    assert_true(survivors.pttl > 0);
    let_go(f, lock);
}

static void renewals_that_are_never_answered_lose_the_lock(void **state) {
    struct fixture *f = *state;
    const char *uris[FIVE];
    redlock_options options;
    redlock_client *client;
    struct loss *loss;
    redlock_lock *lock;
    struct call *release;

    for (size_t i = 0; i < FIVE; i++) {
        uris[i] = peer_uri(peer_create(f, stop_answering, NULL));
    }
    options = patient_options(f, uris, FIVE);
    options.close_timeout_ms = 0; /* nor are releases */
    client = connect_with(f, &options);
    lock = hold_renewed(f, client, KEY, TTL_MS, &loss);
    assert_int_equal(pass_until_lost(f, client, UINT32_MAX, TTL_MS / 20, loss), REDLOCK_EEXPIRED);
    release = begin_release(f, lock);
    run_turns(f, 3);
    pass_time(PATIENT_MS);
    assert_int_equal(await(f, release), REDLOCK_ENOQUORUM);
}

/* --------------------------------------------------------------------------------- explanations */

static char words[512];

static void record_words(struct loss *loss, void *arg) {
    (void)arg;
    snprintf(words, sizeof(words), "%s", redlock_explain(loss->lock));
}

static void lose_and_record(struct fixture *f, redlock_request *request) {
    redlock_client *client = connect_client(f);
    struct loss *loss = watch_loss(f, request);

    loss->then = record_words;
    hold_for(f, client, request);
    pass_time(request->ttl_ms);
    assert_int_equal(wait_lost(f, loss), REDLOCK_EEXPIRED);
}

/* The explanation is about the end that the callback reports, not about the previous round. */
static void an_end_is_explained(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_for(KEY, TTL_MS);

    lose_and_record(f, &request);
    assert_non_null(strstr(words, "lost: its validity ended, and nothing renewed it"));
    request.key = "orders:43";
    request.watchdog = true;
    request.max_hold_ms = 1;
    lose_and_record(f, &request);
    assert_non_null(strstr(words, "lost: max_hold_ms was over, and its validity ended"));
}

/* First the cause of the end, then what the nodes had answered. */
static void the_end_of_a_request_is_explained(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *closed = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_request held = request_for("orders:43", LONG_TTL_MS);
    struct call *call;
    struct loss *loss = watch_loss(f, &held);

    hold(f, connect_client(f), KEY, LONG_TTL_MS);
    request.retries = 1;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    assert_explained(call, "not acquired: no retry is left after 2 tries in ");
    assert_explained(call, "held by another");
    request.retries = 0;
    request.wait_ms = 1;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    assert_explained(call, "not acquired: wait_ms is over after 1 try in ");

    request.wait_ms = REDLOCK_FOREVER;
    call = begin_acquire(f, client, &request);
    wait_all_answered(f, client);
    struct call *behind = begin_acquire(f, client, &request);
    assert_int_equal(redlock_cancel(behind->lock), REDLOCK_OK);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, behind), REDLOCK_ECANCELED);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    assert_explained(call, "not acquired: canceled after 1 try in ");
    assert_explained(behind, "not acquired: canceled; no node was asked");

    loss->then = record_words;
    hold_for(f, closed, &held);
    call = begin_acquire(f, closed, &request);
    close_client(f, closed);
    assert_explained(call, "not acquired: the client was closed after 1 try in ");
    assert_int_equal(loss->status, REDLOCK_ECLOSED);
    assert_memory_equal(words, "the client was closed: being released, ", 39);
    assert_non_null(strstr(words, " not answered yet ("));
}

static void what_has_taken_its_time_takes_no_more(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = acquire(f, client, &request);

    assert_ended(call, REDLOCK_OK);
    assert_explained(call, "acquired after 1 try in ");
    run_turns(f, 20);
    assert_memory_equal(redlock_explain(call->lock), call->why, strcspn(call->why, ","));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(an_empty_node_is_topped_up_after_the_next_renewal),
        ON_FIVE_MASTERS(a_bare_quorum_is_topped_up_when_nodes_come_free),
        ON_FIVE_MASTERS(a_lock_that_a_quorum_forgot_is_lost_not_revived),
        ON_FIVE_MASTERS(the_watchdog_reports_that_a_quorum_forgot),
        ON_FIVE_MASTERS(forgotten_scripts_cost_no_vote),
        ON_FIVE_MASTERS(forgotten_scripts_cost_no_release_of_many),
        ON_FIVE_MASTERS(a_lock_without_quorum_is_lost_before_the_servers_forget_it),
        ON_FIVE_MASTERS(the_watchdog_without_quorum_reports_the_loss),
        ON_NO_MASTERS(renewals_that_are_never_answered_lose_the_lock),
        ON_FIVE_MASTERS(an_end_is_explained),
        ON_FIVE_MASTERS(the_end_of_a_request_is_explained),
        ON_FIVE_MASTERS(what_has_taken_its_time_takes_no_more),
    };

    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
