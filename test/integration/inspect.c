/*
 * Inspection of locks: the holder of a key, the rest of its TTL, and whether a fence is still the
 * newest. The answers are compared with those of the servers.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"
#define COUNTER "orders:42::fence"
#define FIVE 5
#define TTL_MS 60000

/* A copy of an inspection's answer. */
struct sight {
    struct fixture *f;
    size_t reported;
    redlock_status status;
    redlock_view view; /* the view; its `nodes` are the next field */
    redlock_node_view nodes[FIVE];
    char owner[80];
    char owners[FIVE][80];
    char details[FIVE][96];
};

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct sight *sight = arg;

    sight->reported++;
    sight->status = status;
    sight->view = *view;
    assert_int_equal(view->node_count, FIVE);
    snprintf(sight->owner, sizeof(sight->owner), "%s", view->owner);
    for (size_t i = 0; i < FIVE; i++) {
        sight->nodes[i] = view->nodes[i];
        snprintf(sight->owners[i], sizeof(sight->owners[i]), "%s", view->nodes[i].owner);
        snprintf(sight->details[i], sizeof(sight->details[i]), "%s", view->nodes[i].detail);
    }
}

static bool was_reported(void *arg) {
    return ((const struct sight *)arg)->reported > 0;
}

static struct sight look(struct fixture *f, redlock_client *client) {
    struct sight sight = {.f = f};

    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &sight), REDLOCK_OK);
    assert_int_equal(sight.reported, 0); /* never before the call has returned */
    run_until(f, was_reported, &sight, "the inspection was reported");
    assert_int_equal(sight.reported, 1);
    return sight;
}

struct check {
    size_t reported;
    redlock_status status;
};

static void on_fence(redlock_status status, void *arg) {
    struct check *check = arg;

    check->reported++;
    check->status = status;
}

static bool was_checked(void *arg) {
    return ((const struct check *)arg)->reported > 0;
}

static redlock_status check_fence(struct fixture *f, redlock_client *client, uint64_t fence) {
    struct check check = {0, REDLOCK_OK};

    assert_int_equal(redlock_check_fence(client, KEY, 0, fence, on_fence, &check), REDLOCK_OK);
    assert_int_equal(check.reported, 0);
    run_until(f, was_checked, &check, "the fence was checked");
    assert_int_equal(check.reported, 1);
    return check.status;
}

static redlock_client *owned_client(struct fixture *f, const char *owner) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.owner = owner;
    return connect_with(f, &options);
}

static redlock_lock *hold_fenced(struct fixture *f, redlock_client *client) {
    redlock_request request = request_for(KEY, TTL_MS);
    request.fenced = true;
    return hold_for(f, client, &request);
}

/* ----------------------------------------------------------------------------------- the holder */

static void a_holder_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, owned_client(f, "billing"));

    wait_holders(f, KEY, FIVE);
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.view.held);
    assert_string_equal(sight.owner, "billing");
    assert_int_in_range(sight.view.ttl_ms, 1, TTL_MS);
    assert_int_equal(sight.view.fence, redlock_fence(lock));
    for (size_t i = 0; i < FIVE; i++) {
        assert_string_equal(sight.nodes[i].node, masters_address(f->masters, i));
        assert_true(sight.nodes[i].answered && sight.nodes[i].held);
        assert_int_equal(sight.nodes[i].fence, redlock_fence(lock));
        assert_string_equal(sight.details[i], "");
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_holders(f, KEY, 0);
    sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_false(sight.view.held);
    assert_string_equal(sight.owner, "");
    assert_true(sight.view.fence > 0); /* the counter outlives the lock */
}

static void an_inspection_changes_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    look(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(masters_query_integer(f->masters, i, "DBSIZE"), 0);
    }
}

/* Locks of another library, and locks without an owner. */
static void others_are_notified_too(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    rival_takes(f, 0, 3, KEY, TTL_MS);
    struct sight sight = look(f, client);
    assert_true(sight.view.held);
    assert_string_equal(sight.owner, "");
    assert_int_equal(sight.view.fence, 0);
    assert_false(sight.nodes[4].held);
}

static void a_split_is_nobody(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    rival_takes(f, 0, 2, KEY, TTL_MS);
    for (size_t i = 2; i < 4; i++) {
        free(masters_query(f->masters, i, "SET " KEY " another PX 60000"));
    }
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_false(sight.view.held);
    assert_true(sight.nodes[0].held && sight.nodes[2].held);
}

#define ZEROS "0000000000000000000000000000000000000000"

static void take_with_bytes(struct fixture *f, size_t from, size_t to, const char *value,
                            size_t length) {
    for (size_t i = from; i < to; i++) {
        char *answer = masters_query(f->masters, i, "SET " KEY " %b PX 60000", value, length);
        assert_string_equal(answer, "OK");
        free(answer);
    }
}

/* A foreign owner is cleaned up, since an application may print it. */
static void a_foreign_owner_is_cleaned(void **state) {
    struct fixture *f = *state;
    static const char value[] = ZEROS "/a\x1b[31mb\r\n\t\x7f\x80\xff~ c\0\x1b";
    redlock_client *client = connect_client(f);

    take_with_bytes(f, 0, 3, value, sizeof(value) - 1);
    take_with_bytes(f, 3, 4, ZEROS "/\x1b", 42);
    struct sight sight = look(f, client);
    assert_true(sight.view.held);
    assert_string_equal(sight.owner, "a?[31mb??????~ c");
    assert_string_equal(sight.owners[0], "a?[31mb??????~ c");
    assert_string_equal(sight.owners[3], "?");
    assert_string_equal(sight.owners[4], "");
}

/* Values are compared in full, not in their printable form. */
static void owners_that_look_alike_are_not_one(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    take_with_bytes(f, 0, 2, ZEROS "/a\x01", 43);
    take_with_bytes(f, 2, 4, ZEROS "/a\x02", 43);
    assert_false(look(f, client).view.held);
    take_with_bytes(f, 0, 2, ZEROS "/a\0b", 44);
    take_with_bytes(f, 2, 4, ZEROS "/a\0c", 44);
    assert_false(look(f, client).view.held);
}

/* A value that exceeds a reply is reported in part, and does not cost the connection. */
static void a_foreign_value_may_be_long(void **state) {
    struct fixture *f = *state;
    static char value[100000];
    redlock_client *client = connect_client(f);

    memset(value, 'x', sizeof(value));
    memcpy(value, ZEROS "/long", 45);
    take_with_bytes(f, 0, 3, value, sizeof(value));
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.view.held);
    assert_memory_equal(sight.owner, "longxxx", 7);
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(sight.nodes[i].answered);
        assert_int_equal(node_info(client, i).disconnected, 0);
    }
}

static void what_is_no_lock_is_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    free(masters_query(f->masters, 0, "LPUSH " KEY " x"));
    free(masters_query(f->masters, 1, "SET " KEY " x"));
    free(masters_query(f->masters, 2, "LPUSH " COUNTER " x"));
    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.nodes[0].answered && !sight.nodes[0].held);
    assert_string_equal(sight.details[0], "the key is not a string");
    assert_string_equal(sight.details[1], "the key never expires");
    assert_int_equal(sight.nodes[2].fence, 0);
    assert_false(sight.nodes[2].answered);
    assert_non_null(strstr(sight.details[2], "its counter is used up, or is none"));
}

/* ----------------------------------------------------------------- nodes that do not answer */

/* Makes the inspection time out after all nodes but those of the mask have answered. */
static void time_out_without(struct fixture *f, redlock_client *client, uint32_t silent) {
    for (size_t i = 0; i < FIVE; i++) {
        if ((silent & (1u << i)) == 0) {
            wait_answered(f, client, i);
        }
    }
    pass_time(PATIENT_MS);
}

static struct sight look_without(struct fixture *f, redlock_client *client, uint32_t silent) {
    struct sight sight = {.f = f};

    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &sight), REDLOCK_OK);
    run_turns(f, 1);
    assert_int_equal(sight.reported, 0);
    time_out_without(f, client, silent);
    run_until(f, was_reported, &sight, "the inspection was reported");
    return sight;
}

static void a_minority_need_not_answer(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, connect_client(f));

    wait_holders(f, KEY, FIVE);
    freeze(f, 0);
    masters_kill(f->masters, 1);
    wait_connected(f, client, 4);
    struct sight sight = look_without(f, client, 1u << 0);
    assert_int_equal(sight.status, REDLOCK_OK);
    assert_true(sight.view.held);
    assert_string_equal(sight.details[0], "no answer in time");
    assert_false(sight.nodes[1].answered);
    assert_string_not_equal(sight.details[1], "");
    assert_int_equal(check_fence(f, client, redlock_fence(lock)), REDLOCK_OK);

    freeze(f, 2);
    sight = look_without(f, client, 1u << 0 | 1u << 2);
    assert_int_equal(sight.status, REDLOCK_ENOQUORUM);
    struct check check = {0, REDLOCK_OK};
    assert_int_equal(redlock_check_fence(client, KEY, 0, redlock_fence(lock), on_fence, &check),
                     REDLOCK_OK);
    run_turns(f, 1);
    time_out_without(f, client, 1u << 0 | 1u << 2);
    run_until(f, was_checked, &check, "the fence was checked");
    assert_int_equal(check.status, REDLOCK_ENOQUORUM);
    thaw(f, 0);
    thaw(f, 2);
}

/* The answer of an untrusted node counts as little as its vote. */
static void who_is_not_trusted_does_not_count(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);
    options.guards = REDLOCK_GUARDS_ON; /* the servers were just started */
    redlock_client *client = connect_with(f, &options);

    struct sight sight = look(f, client);
    assert_int_equal(sight.status, REDLOCK_ENOQUORUM);
    for (size_t i = 0; i < FIVE; i++) {
        assert_false(sight.nodes[i].answered);
        assert_string_not_equal(sight.details[i], "");
    }
}

static void scripts_that_were_forgotten_cost_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    look(f, client);
    send_to(f, 0, FIVE, "SCRIPT FLUSH");
    struct sight sight = look(f, client);
    for (size_t i = 0; i < FIVE; i++) {
        assert_true(sight.nodes[i].answered);
    }
}

/* The masters are durable: their answers count, after a heartbeat whose script they lack. */
static void a_question_may_come_before_the_connection(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, durable_uris(f), FIVE);

    options.guards = REDLOCK_GUARDS_ON;
    assert_int_equal(look(f, create_client(f, &options)).status, REDLOCK_OK);
    assert_int_equal(check_fence(f, create_client(f, &options), 1), REDLOCK_OK);
}

/* A question that nobody can answer yet ends with the time that nodes have to connect. */
static void a_question_to_nobody_ends(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    freeze_masters(f, 0, FIVE);
    options.stall_timeout_ms = 100;
    assert_int_equal(look(f, create_client(f, &options)).status, REDLOCK_ENOQUORUM);
    thaw_masters(f, 0, FIVE);
}

/* --------------------------------------------------------------------------------------- fences */

static void the_newest_fence_is_known(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, client);
    uint64_t fence = redlock_fence(lock);

    assert_int_equal(check_fence(f, client, fence), REDLOCK_OK);
    assert_int_equal(check_fence(f, client, fence - 1), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    assert_int_equal(check_fence(f, client, fence), REDLOCK_OK); /* no acquisition came after it */
    lock = hold_fenced(f, client);
    assert_int_equal(check_fence(f, client, fence), REDLOCK_ELOST);
    assert_int_equal(check_fence(f, client, redlock_fence(lock)), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/*
 * The nodes do not know which request of a client has the lock: the whole range is newest, until
 * another client takes the next one.
 */
static void fences_of_one_range_are_newest_together(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);

    request.fenced = true;
    request.wait_ms = REDLOCK_FOREVER;
    struct call *holder = begin_acquire(f, client, &request);
    struct call *next = begin_acquire(f, client, &request);
    assert_int_equal(await(f, holder), REDLOCK_OK);
    uint64_t fence = redlock_fence(holder->lock);
    assert_int_equal(let_go(f, holder->lock), REDLOCK_OK);
    assert_int_equal(await(f, next), REDLOCK_OK);
    assert_int_equal(redlock_fence(next->lock), fence + 1);
    assert_int_equal(look(f, client).view.fence, fence);
    assert_int_equal(check_fence(f, client, fence), REDLOCK_OK);
    assert_int_equal(check_fence(f, client, fence + 1), REDLOCK_OK);
    assert_int_equal(let_go(f, next->lock), REDLOCK_OK);
    redlock_lock *lock = hold_fenced(f, connect_client(f));
    assert_int_equal(check_fence(f, client, fence), REDLOCK_ELOST);
    assert_int_equal(check_fence(f, client, fence + 1), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* The value of a ruined counter is unknown: the node may have had a larger fence. */
static void a_ruined_counter_is_no_answer(void **state) {
    struct fixture *f = *state;
    static const char *const counts[] = {"abc", "-7", "1.5", "9007199254740992"};
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_fenced(f, client);
    uint64_t old = redlock_fence(lock);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    rival_takes(f, 3, FIVE, KEY, TTL_MS); /* only three nodes have the newest fence */
    lock = hold_fenced(f, client);
    wait_all_answered(f, client);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        free(masters_query(f->masters, 0, "SET " COUNTER " %s", counts[i]));
        assert_int_equal(check_fence(f, client, old), REDLOCK_ENOQUORUM);
        assert_int_equal(check_fence(f, client, redlock_fence(lock)), REDLOCK_OK);
        struct sight sight = look(f, client);
        assert_false(sight.nodes[0].answered);
        assert_non_null(strstr(sight.details[0], "delete the key of the counter"));
    }
    let_go(f, lock);
}

/* The try has raised counters where the key was free, yet failed. */
static void a_try_that_failed_makes_no_fence_old(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_client *other = connect_client(f);
    redlock_request request = request_for(KEY, TTL_MS);
    redlock_lock *lock;

    rival_takes(f, 3, FIVE, KEY, TTL_MS);
    lock = hold_fenced(f, client);
    wait_all_answered(f, client);
    rival_frees(f, 3, FIVE, KEY);
    request.fenced = true;
    assert_ended(acquire(f, other, &request), REDLOCK_EHELD);
    wait_all_answered(f, other);
    assert_true(look(f, client).nodes[4].fence > redlock_fence(lock));
    assert_int_equal(check_fence(f, client, redlock_fence(lock)), REDLOCK_OK);
    assert_int_equal(look(f, client).view.fence, redlock_fence(lock));
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void a_gate_refuses_smaller_fences(void **state) {
    redlock_gate gate = REDLOCK_GATE_INIT;

    (void)state;
    assert_true(redlock_gate_admit(&gate, 33));
    assert_true(redlock_gate_admit(&gate, 33));
    assert_true(redlock_gate_admit(&gate, 34));
    assert_false(redlock_gate_admit(&gate, 33));
    assert_true(redlock_gate_admit(&gate, 34));
    assert_int_equal(gate.fence, 34);
}

/* ------------------------------------------------------------------------------- calls and ends */

struct chain {
    redlock_client *client;
    size_t left;
    size_t reported;
};

static void ask_again(redlock_status status, void *arg) {
    struct chain *chain = arg;

    assert_int_equal(status, REDLOCK_OK);
    chain->reported++;
    if (chain->left-- > 0) {
        assert_int_equal(redlock_check_fence(chain->client, KEY, 0, 1, ask_again, chain),
                         REDLOCK_OK);
    }
}

static bool chain_has_ended(void *arg) {
    return ((const struct chain *)arg)->reported == 10;
}

static void asked_inside_callbacks(void **state) {
    struct fixture *f = *state;
    struct chain chain = {connect_client(f), 9, 0};

    assert_int_equal(redlock_check_fence(chain.client, KEY, 0, 1, ask_again, &chain), REDLOCK_OK);
    run_until(f, chain_has_ended, &chain, "each inspection was reported");
}

static void a_close_ends_what_was_asked(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    struct sight sight = {.f = f};
    struct check check = {0, REDLOCK_OK};

    assert_int_equal(redlock_inspect(client, KEY, 0, on_view, &sight), REDLOCK_OK);
    assert_int_equal(redlock_check_fence(client, KEY, 0, 1, on_fence, &check), REDLOCK_OK);
    close_client(f, client);
    assert_int_equal(sight.reported, 1);
    assert_int_equal(sight.status, REDLOCK_ECLOSED);
    assert_int_equal(check.reported, 1);
    assert_int_equal(check.status, REDLOCK_ECLOSED);
}

/* A close waits for releases, not for answers that change nothing. */
static void closed_with_nodes_that_never_answer(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    freeze_masters(f, 0, 2);
    look_without(f, client, 1u << 0 | 1u << 1);
    stop_time();
    close_client(f, client);
    resume_time();
    thaw_masters(f, 0, 2);
}

#define QUESTIONS 200

/* Bytes that an inspection may keep after its report, for the answers that may still come. */
#define KEPT_BYTES 2048

static void count_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)view;
    assert_int_equal(status, REDLOCK_OK);
    ++*(size_t *)arg;
}

static bool are_all_counted(void *arg) {
    return *(const size_t *)arg == QUESTIONS;
}

static void a_silent_node_keeps_little_memory(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    size_t reported = 0;
    size_t before;

    freeze(f, 0);
    before = f->allocator.bytes;
    for (unsigned i = 0; i < QUESTIONS; i++) {
        assert_int_equal(redlock_inspect(client, KEY, 0, count_view, &reported), REDLOCK_OK);
    }
    time_out_without(f, client, 1u << 0);
    run_until(f, are_all_counted, &reported, "each inspection was reported");
    assert_int_in_range(node_info(client, 0).commands, QUESTIONS, 2 * QUESTIONS);
    assert_int_in_range(f->allocator.bytes - before, 0, QUESTIONS * KEPT_BYTES);
    thaw(f, 0);
}

static void mistakes_are_named(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);

    assert_refused(client, redlock_inspect(client, NULL, 0, on_view, NULL), REDLOCK_EINVAL, "key");
    assert_refused(client, redlock_inspect(client, "", 0, on_view, NULL), REDLOCK_EINVAL, "key");
    assert_refused(client, redlock_inspect(client, COUNTER, 0, on_view, NULL), REDLOCK_EINVAL,
                   "kept for counters");
    assert_refused(client, redlock_inspect(client, KEY, 0, NULL, NULL), REDLOCK_EINVAL, "callback");
    assert_refused(client, redlock_check_fence(client, KEY, 0, 1, NULL, NULL), REDLOCK_EINVAL,
                   "callback");
    assert_int_equal(redlock_inspect(NULL, KEY, 0, on_view, NULL), REDLOCK_EINVAL);
    begin_close(f, client);
    assert_refused(client, redlock_inspect(client, KEY, 0, on_view, NULL), REDLOCK_ECLOSED,
                   "closing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_holder_is_reported),
        ON_FIVE_MASTERS(an_inspection_changes_nothing),
        ON_FIVE_MASTERS(others_are_notified_too),
        ON_FIVE_MASTERS(a_split_is_nobody),
        ON_FIVE_MASTERS(a_foreign_owner_is_cleaned),
        ON_FIVE_MASTERS(owners_that_look_alike_are_not_one),
        ON_FIVE_MASTERS(a_foreign_value_may_be_long),
        ON_FIVE_MASTERS(what_is_no_lock_is_named),
        ON_FIVE_MASTERS(a_minority_need_not_answer),
        ON_FIVE_MASTERS(who_is_not_trusted_does_not_count),
        ON_FIVE_MASTERS(scripts_that_were_forgotten_cost_nothing),
        ON_FIVE_MASTERS(a_question_may_come_before_the_connection),
        ON_FIVE_MASTERS(a_question_to_nobody_ends),
        ON_FIVE_MASTERS(the_newest_fence_is_known),
        ON_FIVE_MASTERS(fences_of_one_range_are_newest_together),
        ON_FIVE_MASTERS(a_ruined_counter_is_no_answer),
        ON_FIVE_MASTERS(a_try_that_failed_makes_no_fence_old),
        cmocka_unit_test(a_gate_refuses_smaller_fences),
        ON_FIVE_MASTERS(asked_inside_callbacks),
        ON_FIVE_MASTERS(a_close_ends_what_was_asked),
        ON_FIVE_MASTERS(closed_with_nodes_that_never_answer),
        ON_FIVE_MASTERS(a_silent_node_keeps_little_memory),
        ON_FIVE_MASTERS(mistakes_are_named),
    };

    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
