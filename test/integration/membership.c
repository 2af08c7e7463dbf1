/*
 * The list of nodes changes while clients run: clients one step apart exclude each other, fences
 * keep growing, held locks move along, and a refused call changes nothing.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"

/* The longest TTL in tests that let enough time pass to commit a change. */
#define MAX_TTL_MS 60000

#define FIVE 5
#define SIX 6

static int six_masters(void **state) {
    return start_fixture(state, SIX, NULL);
}

#define ON_SIX_MASTERS(test) cmocka_unit_test_setup_teardown(test, six_masters, finish)

/* Returns the URIs of the masters from `from` on. */
static const char *const *uris(struct fixture *f, size_t from) {
    return masters_uris(f->masters) + from;
}

static redlock_client *client_on(struct fixture *f, size_t from, size_t to, uint64_t max_ttl_ms) {
    redlock_options options = patient_options(f, uris(f, from), to - from);
    options.max_ttl_ms = max_ttl_ms;
    return connect_with(f, &options);
}

static void change(struct fixture *f, redlock_client *client, size_t from, size_t to) {
    assert_int_equal(redlock_client_change_nodes(client, uris(f, from), to - from), REDLOCK_OK);
}

static redlock_client *joint_client(struct fixture *f, size_t from, size_t to, size_t next_from,
                                    size_t next_to) {
    redlock_client *client = client_on(f, from, to, LONG_TTL_MS);
    change(f, client, next_from, next_to);
    wait_connected(f, client, redlock_client_nodes(client, NULL, 0));
    return client;
}

/* Commits as soon as that is allowed; until then the refusal states for how long to wait. */
static bool has_committed(void *arg) {
    redlock_client *client = arg;
    redlock_status status = redlock_client_commit_nodes(client);
    if (status != REDLOCK_OK) {
        assert_refused(client, status, REDLOCK_EBUSY, "ms more");
    }
    return status == REDLOCK_OK;
}

static void commit(struct fixture *f, redlock_client *client) {
    run_until(f, has_committed, client, "the change could be committed");
}

/* ----------------------------------------------------------------------------- one step apart */

static void assert_excluded(struct fixture *f, redlock_client *holder, redlock_client *other) {
    redlock_lock *lock = hold(f, holder, KEY, LONG_TTL_MS);
    assert_int_not_equal(try_lock(f, other, KEY, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* The lists are 1, 2, 3 and 3, 4, 5, whose quorums need not overlap. */
static void neighbouring_steps_exclude_each_other(void **state) {
    struct fixture *f = *state;
    redlock_client *old = client_on(f, 0, 3, LONG_TTL_MS);
    redlock_client *joint = joint_client(f, 0, 3, 2, 5);
    redlock_client *other = joint_client(f, 0, 3, 2, 5);
    redlock_client *new = client_on(f, 2, 5, LONG_TTL_MS);

    assert_excluded(f, old, joint);
    assert_excluded(f, joint, old);
    assert_excluded(f, joint, other);
    assert_excluded(f, joint, new);
    assert_excluded(f, new, joint);
}

/* Such clients do not exclude each other, so no client may change lists in one step. */
static void clients_two_steps_apart_do_not(void **state) {
    struct fixture *f = *state;
    redlock_client *old = client_on(f, 0, 3, LONG_TTL_MS);
    redlock_client *new = client_on(f, 2, 5, LONG_TTL_MS);

    hold(f, old, KEY, LONG_TTL_MS);
    wait_holders(f, KEY, 3);
    hold(f, new, KEY, LONG_TTL_MS); /* at 4 and 5: both clients hold the key */
}

static void a_joint_client_needs_a_quorum_of_both(void **state) {
    struct fixture *f = *state;
    redlock_client *client = joint_client(f, 0, 3, 3, SIX);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    rival_takes(f, 3, 5, KEY, LONG_TTL_MS);
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    assert_explained(call, "2 of 3 nodes and 2 of the next 3 are needed");
    assert_int_equal(call->opinion_count, SIX);
    rival_frees(f, 3, 5, KEY);
    masters_kill(f->masters, 4);
    masters_kill(f->masters, 5);
    wait_connected(f, client, 4);
    assert_ended(acquire(f, client, &request), REDLOCK_ENOQUORUM);

    /* The old list, which works, is in use again. */
    assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

static uint64_t acquire_fence(struct fixture *f, redlock_client *client) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock;
    uint64_t fence;

    request.fenced = true;
    lock = hold_for(f, client, &request);
    fence = redlock_fence(lock);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
    return fence;
}

/* All masters are replaced. The old ones' counters are an hour ahead of the clocks, from which the
   new ones would start. */
static void a_fence_grows_from_list_to_list(void **state) {
    struct fixture *f = *state;
    redlock_client *old = client_on(f, 0, 3, LONG_TTL_MS);
    redlock_client *joint = joint_client(f, 0, 3, 3, SIX);
    redlock_client *new = client_on(f, 3, SIX, LONG_TTL_MS);
    redlock_client *steps[] = {old, joint, old, joint, joint, new, joint, new};
    uint64_t fence = acquire_fence(f, old);
    char command[64];

    snprintf(command, sizeof(command), "SET " KEY "::fence %llu",
             (unsigned long long)(fence + UINT64_C(3600000000)));
    send_to(f, 0, 3, command);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        uint64_t next = acquire_fence(f, steps[i]);
        assert_true(next > fence);
        fence = next;
    }
}

/* ---------------------------------------------------------------------- locks that move along */

static void a_held_lock_lives_through_a_change(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, FIVE, MAX_TTL_MS);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, MAX_TTL_MS, &loss);

    wait_holders(f, KEY, FIVE);
    change(f, client, 1, SIX);
    wait_holders(f, KEY, SIX); /* the joining node is given the key */
    assert_string_equal(value_at(f, 5, KEY), value_at(f, 1, KEY));
    for (size_t i = 0; i < 3; i++) {
        assert_false(has_committed(client));
        pass_renewal(f, lock, MAX_TTL_MS);
    }
    assert_true(has_committed(client));
    wait_all_answered(f, client);
    rival_frees(f, 0, 1, KEY); /* as if the key had expired at the node that left */
    pass_renewal(f, lock, MAX_TTL_MS);
    wait_all_answered(f, client);
    assert_null(value_at(f, 0, KEY)); /* it is not given the key again */
    assert_int_equal(holders(f, KEY), FIVE);
    masters_kill(f->masters, 0);
    masters_kill(f->masters, 1);
    masters_kill(f->masters, 2);
    assert_int_equal(extend(f, lock, MAX_TTL_MS), REDLOCK_OK); /* by 4, 5 and 6 */
    assert_int_equal(loss->count, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* All masters are replaced at once, while one lock is held and others come and go. */
static void all_masters_are_replaced_under_load(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, MAX_TTL_MS);
    struct loss *loss;
    redlock_lock *lock = hold_renewed(f, client, KEY, MAX_TTL_MS, &loss);

    change(f, client, 3, SIX);
    wait_connected(f, client, SIX);
    for (size_t i = 0; !has_committed(client); i++) {
        for (size_t k = 0; k < 50; k++) {
            assert_int_equal(let_go(f, hold(f, client, "other", MAX_TTL_MS)), REDLOCK_OK);
        }
        assert_int_in_range(i, 0, 2);
        pass_renewal(f, lock, MAX_TTL_MS);
    }
    kill_masters(f, 0, 3);
    assert_int_equal(let_go(f, hold(f, client, "other", MAX_TTL_MS)), REDLOCK_OK);
    assert_int_equal(extend(f, lock, MAX_TTL_MS), REDLOCK_OK);
    assert_int_equal(loss->count, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_answered(f, client);
    assert_null(value_at(f, 4, KEY));
}

/* Without a quorum of the next list a lock that the old list keeps is lost, in time. */
static void a_lock_without_a_quorum_of_both_is_lost(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    struct loss *loss;
    redlock_lock *lock;

    rival_takes(f, 3, SIX, KEY, LONG_TTL_MS);
    lock = hold_renewed(f, client, KEY, MAX_TTL_MS, &loss);
    change(f, client, 3, SIX);
    assert_int_equal(pass_until_lost(f, client, 0, MAX_TTL_MS / 20, loss), REDLOCK_EEXPIRED);
    assert_int_equal(let_go(f, lock), REDLOCK_OK); /* the old list had the key until the end */
}

/* The joining nodes are unreachable at first: later renewals give them the key. */
static void nodes_that_join_late_are_given_the_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_lock *lock;

    kill_masters(f, 3, SIX);
    lock = hold_for(f, client, &request);
    wait_holders(f, KEY, 3);
    change(f, client, 3, SIX);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_ENOQUORUM);
    for (size_t i = 3; i < SIX; i++) {
        masters_restart(f->masters, i);
    }
    wait_connected(f, client, SIX);
    assert_int_equal(extend(f, lock, LONG_TTL_MS),
                     REDLOCK_ENOQUORUM); /* they lack the key so far */
    wait_holders(f, KEY, SIX);
    assert_int_equal(extend(f, lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* The lock's round began with the old list, and ends after the change. */
static void a_lock_that_was_being_acquired_moves_along(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);

    change(f, client, 1, 4);
    assert_int_equal(await(f, call), REDLOCK_OK);
    wait_holders(f, KEY, 4);
    assert_int_equal(extend(f, call->lock, LONG_TTL_MS), REDLOCK_OK);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    wait_released(f, KEY);
}

/* --------------------------------------------------------------------------- nodes that leave */

static void what_is_under_way_at_a_node_that_leaves_ends(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, MAX_TTL_MS);
    redlock_request request = request_for("other", MAX_TTL_MS);
    redlock_lock *lock;
    struct call *call;

    change(f, client, 1, 4);
    wait_connected(f, client, 4);
    lock = hold(f, client, KEY, MAX_TTL_MS);
    freeze(f, 0);
    begin_release(f, lock); /* not answered, and no pending release of a node that has left */
    call = begin_acquire(f, client, &request);
    run_turns(f, 2); /* both commands are written */
    pass_time(MAX_TTL_MS);
    commit(f, client);
    await(f, call);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), 3);
    assert_int_equal(try_lock(f, client, KEY, MAX_TTL_MS), REDLOCK_OK);
    thaw(f, 0);
    long long before = master_number(f, 0, "total_commands_processed");
    for (size_t i = 0; i < 20; i++) {
        try_lock(f, client, KEY, MAX_TTL_MS);
    }
    /* The node may have executed the commands sent before, and this query. */
    assert_int_in_range(master_number(f, 0, "total_commands_processed"), before, before + 8);
    assert_int_equal(executed(f, 0, "set"), 1 + 1);
}

static void connections_are_kept(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, FIVE, MAX_TTL_MS);
    long long before = master_number(f, 3, "total_connections_received");

    change(f, client, 1, SIX);
    wait_connected(f, client, SIX);
    pass_time(MAX_TTL_MS);
    commit(f, client);
    wait_connected(f, client, FIVE);
    for (size_t i = 0; i < FIVE; i++) {
        assert_int_equal(node_info(client, i).disconnected, 0);
        assert_string_equal(node_info(client, i).node, masters_address(f->masters, i + 1));
    }
    assert_int_in_range(master_number(f, 3, "total_connections_received"), before, before + 1);
}

static void joining_and_leaving_are_reported(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    const char *next[] = {masters_uri(f->masters, 4), masters_uri(f->masters, 2)};

    assert_false(node_info(client, 0).leaving || node_info(client, 0).joining);
    assert_int_equal(redlock_client_change_nodes(client, next, 2), REDLOCK_OK);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(node_info(client, i).leaving, i < 2);
        assert_int_equal(node_info(client, i).joining, i == 3);
    }
    assert_string_equal(node_info(client, 3).node, masters_address(f->masters, 4));
    assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), 3);
    assert_false(node_info(client, 0).leaving);
}

/* More nodes come and go than a client can have at a time. */
static void nodes_come_and_go_for_ever(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, 1);

    for (size_t i = 0; i < 3 * REDLOCK_MAX_NODES; i++) {
        change(f, client, i % 2 == 0 ? 3 : 0, i % 2 == 0 ? SIX : 3);
        commit(f, client);
    }
    wait_connected(f, client, 3);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), 3);
}

static bool all_is_quiet(void *arg) {
    redlock_node_info infos[3];

    redlock_client_nodes(arg, infos, 3);
    return infos[0].commands + infos[1].commands + infos[2].commands == 0;
}

/* Returns the memory of an idle client; nodes that have left are freed in a turn. */
static size_t memory_at_rest(struct fixture *f, redlock_client *client) {
    run_turns(f, 2);
    run_until(f, all_is_quiet, client, "all nodes have answered");
    return f->allocator.bytes;
}

static void nodes_that_left_leave_no_memory(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, 1);
    size_t after_ten = 0;

    for (size_t i = 0; i <= 1000; i++) {
        change(f, client, 3, SIX);
        if (i % 2 == 0) {
            commit(f, client);
            change(f, client, 0, 3);
            commit(f, client);
        } else {
            assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
        }
        if (i == 10) {
            after_ten = memory_at_rest(f, client);
        }
    }
    assert_in_range(memory_at_rest(f, client), 0, after_ten + 16384);
}

/* ------------------------------------------------------------------------------ from callbacks */

struct mover {
    struct fixture *f;
    redlock_client *client;
    size_t steps;
};

static void move_and_back(struct call *call, void *arg) {
    struct mover *mover = arg;
    (void)call;
    mover->steps++;
    change(mover->f, mover->client, 3, SIX);
    if (mover->steps % 2 == 0) {
        assert_int_equal(redlock_client_abandon_nodes(mover->client), REDLOCK_OK);
        change(mover->f, mover->client, 2, FIVE);
    }
    assert_int_equal(redlock_client_abandon_nodes(mover->client), REDLOCK_OK);
}

static void changed_inside_callbacks(void **state) {
    struct fixture *f = *state;
    struct mover mover = {f, client_on(f, 0, 3, LONG_TTL_MS), 0};
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    for (size_t i = 0; i < 6; i++) {
        struct call *call = begin_acquire(f, mover.client, &request);
        call->then = move_and_back;
        call->then_arg = &mover;
        await(f, call);
        if (call->lock != NULL) {
            call = begin_extend(f, call->lock, LONG_TTL_MS);
            call->then = move_and_back;
            call->then_arg = &mover;
            await(f, call);
            call = begin_release(f, call->lock);
            call->then = move_and_back;
            call->then_arg = &mover;
            await(f, call);
        }
    }
    assert_true(mover.steps >= 6);
}

static void closed_in_the_middle(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);

    hold(f, client, KEY, LONG_TTL_MS);
    change(f, client, 3, SIX); /* before they are connected */
    begin_close(f, client);
    assert_refused(client, redlock_client_change_nodes(client, uris(f, 0), 3), REDLOCK_ECLOSED,
                   "closing");
    assert_refused(client, redlock_client_commit_nodes(client), REDLOCK_ECLOSED, "closing");
    assert_refused(client, redlock_client_abandon_nodes(client), REDLOCK_ECLOSED, "closing");
    wait_holders(f, KEY, 0);
}

/* ------------------------------------------------------------------------------------ refusals */

static void assert_change_refused(redlock_client *client, const char *const *nodes, size_t count,
                                  const char *named) {
    size_t before = redlock_client_nodes(client, NULL, 0);
    assert_refused(client, redlock_client_change_nodes(client, nodes, count), REDLOCK_EINVAL,
                   named);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), before);
}

static void what_is_refused_changes_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    char known[96];
    const char *twice[] = {masters_uri(f->masters, 4), masters_uri(f->masters, 1),
                           masters_uri(f->masters, 4)};
    const char *null[] = {masters_uri(f->masters, 4), NULL};
    const char *bad[] = {masters_uri(f->masters, 4), "redis://:secret@h:x"};
    const char *login[] = {known};

    snprintf(known, sizeof(known), "redis://:secret@%s", masters_address(f->masters, 1));
    assert_change_refused(client, NULL, 3, "nodes: not set");
    assert_change_refused(client, uris(f, 0), 0, "node_count: 0");
    assert_change_refused(client, twice, REDLOCK_MAX_NODES + 1, "node_count: 33");
    assert_change_refused(client, null, 2, "nodes[1]: NULL");
    assert_change_refused(client, bad, 2, "nodes[1]: the port");
    assert_null(strstr(redlock_client_error(client), "secret"));
    assert_change_refused(client, twice, 3, "is named twice, as nodes[0]");
    assert_change_refused(client, login, 1, "is a node already, with another login");
    assert_null(strstr(redlock_client_error(client), "secret"));
    assert_refused(client, redlock_client_commit_nodes(client), REDLOCK_EINVAL,
                   "not being changed");
    assert_refused(client, redlock_client_abandon_nodes(client), REDLOCK_EINVAL,
                   "not being changed");
    assert_int_equal(redlock_client_change_nodes(NULL, uris(f, 0), 3), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_commit_nodes(NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_client_abandon_nodes(NULL), REDLOCK_EINVAL);
    change(f, client, 3, SIX);
    assert_refused(client, redlock_client_change_nodes(client, uris(f, 0), 3), REDLOCK_EBUSY,
                   "committed or abandoned first");
    assert_refused(client, redlock_client_commit_nodes(client), REDLOCK_EBUSY, "ms more");
}

static void two_lists_have_32_nodes_at_most(void **state) {
    struct fixture *f = *state;
    redlock_client *client = client_on(f, 0, 3, LONG_TTL_MS);
    char text[REDLOCK_MAX_NODES][32];
    const char *nodes[REDLOCK_MAX_NODES];

    for (int i = 0; i < REDLOCK_MAX_NODES; i++) {
        snprintf(text[i], sizeof(text[i]), "redis://127.0.0.1:%d", i + 1); /* no server is there */
        nodes[i] = text[i];
    }
    assert_change_refused(client, nodes, REDLOCK_MAX_NODES - 2, "more than 32 in both lists");
    assert_int_equal(redlock_client_change_nodes(client, nodes, REDLOCK_MAX_NODES - 3), REDLOCK_OK);
    assert_int_equal(redlock_client_nodes(client, NULL, 0), REDLOCK_MAX_NODES);
    assert_int_equal(redlock_client_abandon_nodes(client), REDLOCK_OK);
    assert_int_equal(try_lock(f, client, KEY, LONG_TTL_MS), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_SIX_MASTERS(neighbouring_steps_exclude_each_other),
        ON_SIX_MASTERS(clients_two_steps_apart_do_not),
        ON_SIX_MASTERS(a_joint_client_needs_a_quorum_of_both),
        ON_SIX_MASTERS(a_fence_grows_from_list_to_list),
        ON_SIX_MASTERS(a_held_lock_lives_through_a_change),
        ON_SIX_MASTERS(all_masters_are_replaced_under_load),
        ON_SIX_MASTERS(a_lock_without_a_quorum_of_both_is_lost),
        ON_SIX_MASTERS(nodes_that_join_late_are_given_the_key),
        ON_SIX_MASTERS(a_lock_that_was_being_acquired_moves_along),
        ON_SIX_MASTERS(what_is_under_way_at_a_node_that_leaves_ends),
        ON_SIX_MASTERS(connections_are_kept),
        ON_SIX_MASTERS(joining_and_leaving_are_reported),
        ON_SIX_MASTERS(nodes_come_and_go_for_ever),
        ON_SIX_MASTERS(nodes_that_left_leave_no_memory),
        ON_SIX_MASTERS(changed_inside_callbacks),
        ON_SIX_MASTERS(closed_in_the_middle),
        ON_SIX_MASTERS(what_is_refused_changes_nothing),
        ON_SIX_MASTERS(two_lists_have_32_nodes_at_most),
    };

    return cmocka_run_group_tests_name("membership", tests, NULL, NULL);
}
