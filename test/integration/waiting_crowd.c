/*
 * Many requests in one queue: of one client, of many clients, and of processes beside foreign
 * clients that poll. All are served, one at a time, and those of one client in order.
 */
#include "clocks.h"
#include "contest.h"
#include "crew.h"
#include "harness.h"
#include "master_data.h"
#include "plain.h"
#include "rivals.h"
#include "wait_queue.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:42"

/* Makes a client that may hand a lock over up to `most` times in a row. */
static redlock_client *connect_with_handoffs(struct fixture *f, uint32_t most) {
    redlock_options options =
        patient_options(f, masters_uris(f->masters), masters_count(f->masters));

    options.max_local_handoffs = most;
    options.log_level = REDLOCK_LOG_INFO;
    return connect_with(f, &options);
}

/* --------------------------------------------------------------------------------------- order */

#define MOST 1000

/* The order in which requests are served. */
struct row {
    size_t begun, entered, left;
    struct call *calls[MOST]; /* in the order in which they were made */
    struct call *order[MOST];
};

static void go_out(struct call *call, void *arg) {
    struct row *row = arg;

    assert_ended(call, REDLOCK_OK);
    row->left++;
}

static void come_in(struct call *call, void *arg) {
    struct row *row = arg;

    assert_ended(call, REDLOCK_OK);
    assert_true(redlock_validity_ms(call->lock) > 0);
    row->order[row->entered++] = call;
    struct call *release = begin_release(call->fixture, call->lock);
    release->then = go_out;
    release->then_arg = row;
}

/* Makes a request that records when it is served, and releases at once. */
static void join_row(struct fixture *f, redlock_client *client, struct row *row) {
    redlock_request request = waiting_request(KEY);
    struct call *call = begin_acquire(f, client, &request);

    call->then = come_in;
    call->then_arg = row;
    row->calls[row->begun++] = call;
}

static bool is_served(void *arg) {
    const struct row *row = arg;

    return row->left == row->begun;
}

/* Waits until all waiters for this lock have been served. */
static void serve(struct fixture *f, redlock_lock *lock, struct row *row) {
    assert_int_equal(row->entered, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    run_until(f, is_served, row, "all are served");
    wait_queue_empty(f, KEY);
    wait_released(f, KEY);
}

static struct row *new_row(struct fixture *f) {
    struct row *row = calloc(1, sizeof(*row));

    assert_non_null(row);
    at_finish(f, free, row);
    return row;
}

static void a_thousand_of_one_client_are_served_in_order(void **state) {
    struct fixture *f = *state;
    const uint32_t *most = f->row;
    redlock_client *client = connect_with_handoffs(f, *most);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct row *row = new_row(f);

    for (size_t i = cycles_here(MOST); i > 0; i--) {
        join_row(f, client, row);
    }
    wait_in_queue(f, KEY, 1); /* one entry for all */
    serve(f, lock, row);
    assert_memory_equal(row->order, row->calls, sizeof(row->order));
}

/* The number of requests of a client, and of those served before a request of another client. */
#define OWN 10
struct bound {
    uint32_t most;
    size_t before;
};

/* The other request came second: it waits for the first one, and for those that may follow. */
static void so_many_are_served_before_another_client(void **state) {
    struct fixture *f = *state;
    const struct bound *bound = f->row;
    redlock_client *client = connect_with_handoffs(f, bound->most);
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct row *row = new_row(f);

    join_row(f, client, row);
    wait_in_queue(f, KEY, 1);
    join_row(f, connect_client(f), row);
    wait_in_queue(f, KEY, 2);
    for (size_t i = 1; i < OWN; i++) {
        join_row(f, client, row);
    }
    serve(f, lock, row);
    assert_ptr_equal(row->order[bound->before], row->calls[1]);
    assert_ptr_equal(row->order[0], row->calls[0]);
    for (size_t i = 1; i < OWN; i++) {
        assert_ptr_equal(row->order[i < bound->before ? i : i + 1], row->calls[i + 1]);
    }
}

#define CLIENTS 64

static void clients_are_served_in_the_order_of_their_requests(void **state) {
    struct fixture *f = *state;
    redlock_lock *lock = hold(f, connect_client(f), KEY, LONG_TTL_MS);
    struct row *row = new_row(f);

    for (size_t i = 0; i < CLIENTS; i++) {
        join_row(f, connect_with_handoffs(f, 64), row);
        wait_in_queue(f, KEY, (long long)i + 1);
    }
    serve(f, lock, row);
    assert_memory_equal(row->order, row->calls, sizeof(row->order));
}

/* They start in step, and come back as soon as they have released. */
static void many_clients_have_all_of_their_turns(void **state) {
    struct fixture *f = *state;
    const struct rivals_options options = {.request = waiting_request(KEY), .turns = 4};
    struct rivals *rivals = rivals_create(f, &options);
    redlock_client *clients[CLIENTS];

    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = connect_with_handoffs(f, 64);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        rivals_begin(rivals, clients[i]);
    }
    wait_rivals(f, rivals);
    assert_int_equal(rivals_intrusions(rivals), 0);
    wait_queue_empty(f, KEY);
}

/* ------------------------------------------------------------------------------ foreign clients */

#define PROCESSES 2
#define PER_PROCESS 3
#define TURNS 40

/* Memory shared by all processes. */
struct arena {
    atomic_int inside;
    atomic_size_t intruders; /* acquisitions while another client was inside */
    atomic_size_t turns[PROCESSES][PER_PROCESS];
};

static void enter_arena(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_add(&arena->intruders, atomic_fetch_add(&arena->inside, 1) != 0);
}

static void leave_arena(struct call *call, void *memory) {
    struct arena *arena = memory;

    (void)call;
    atomic_fetch_sub(&arena->inside, 1);
}

static void plain_enters(void *memory) {
    enter_arena(NULL, memory);
}

static void plain_leaves(void *memory) {
    leave_arena(NULL, memory);
}

/* Runs a process of waiters, which ends at a failed assertion. */
static int run_waiters(size_t process, void *memory, char **uris, size_t count) {
    struct arena *arena = memory;
    const struct contest contest = {
        .request = waiting_request(KEY),
        .turns = TURNS,
        .usual_delays = true,
        .stay = 1,
        .on_in = enter_arena,
        .on_out = leave_arena,
        .arg = arena,
    };

    return contest_run(&contest, uris, count, PER_PROCESS, arena->turns[process]);
}

static bool have_had_all_turns(void *memory) {
    struct arena *arena = memory;
    size_t turns = 0;

    for (size_t i = 0; i < PROCESSES * PER_PROCESS; i++) {
        turns += atomic_load(&arena->turns[i / PER_PROCESS][i % PER_PROCESS]);
    }
    return turns == (size_t)PROCESSES * PER_PROCESS * TURNS;
}

#define PLAIN 2

/*
 * Foreign clients poll, others wait, for one key: waiters have all their turns, and holders never
 * overlap.
 */
static void plain_clients_beside_waiters_starve_none(void **state) {
    struct fixture *f = *state;
    struct plain *plain[PLAIN];
    struct crew *crew = crew_create(f, sizeof(struct arena));
    struct arena *arena;

    arena = crew->memory;
    for (size_t i = 0; i < PLAIN; i++) {
        plain[i] = plain_begin(f, &(struct plain_options){.key = KEY,
                                                          .ttl_ms = LONG_TTL_MS,
                                                          .poll_ms = 4,
                                                          .on_in = plain_enters,
                                                          .on_out = plain_leaves,
                                                          .arg = arena});
    }
    wait_plain_turns(f, plain[0], 5);
    crew_start(crew, PROCESSES);
    run_until(f, have_had_all_turns, arena, "all waiters have had their turns");
    crew_wait(crew);
    size_t turns = plain_turns(plain[0]);
    wait_plain_turns(f, plain[0], turns + 5); /* no waiter is left */
    for (size_t i = 0; i < PLAIN; i++) {
        plain_end(plain[i]);
    }
    assert_int_equal(arena->intruders, 0);
    assert_int_equal(arena->inside, 0);
    wait_queue_empty(f, KEY);
}

/* The waiter keeps asking, and gets the key when the foreign client has released it. */
static void a_waiter_leaves_a_plain_client_its_key(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = waiting_request(KEY);
    struct plain *plain = plain_begin(
        f, &(struct plain_options){.key = KEY, .ttl_ms = LONG_TTL_MS, .poll_ms = 4, .stays = true});

    wait_plain_turns(f, plain, 1);
    struct call *call = begin_acquire(f, client, &request);
    wait_in_queue(f, KEY, 1);
    for (unsigned i = 0; i < 20; i++) {
        wait_all_answered(f, client);
        pass_time(500);
        run_turns(f, 3);
    }
    assert_int_equal(call->ended, 0);
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        assert_int_equal(strncmp(value_at(f, i, KEY), "plain", 5), 0);
    }
    plain_end(plain);
    take_turn(f, call);
    wait_queue_empty(f, KEY);
}

int main(int argc, char **argv) {
    static const uint32_t handoffs[] = {0, 1, 64};
    static const struct bound bounds[] = {{0, 1}, {1, 2}, {4, 5}, {64, OWN}};
    const struct CMUnitTest tests[] = {
        ON_ROW("a_thousand_of_one_client_without_handoffs",
               a_thousand_of_one_client_are_served_in_order, five_masters, &handoffs[0]),
        ON_ROW("a_thousand_of_one_client_in_pairs", a_thousand_of_one_client_are_served_in_order,
               five_masters, &handoffs[1]),
        ON_ROW("a_thousand_of_one_client", a_thousand_of_one_client_are_served_in_order,
               five_masters, &handoffs[2]),
        ON_ROW("without_handoffs_another_client_is_next", so_many_are_served_before_another_client,
               five_masters, &bounds[0]),
        ON_ROW("after_one_handoff_another_client_is_next", so_many_are_served_before_another_client,
               five_masters, &bounds[1]),
        ON_ROW("after_four_handoffs_another_client_is_next",
               so_many_are_served_before_another_client, five_masters, &bounds[2]),
        ON_ROW("after_all_that_wait_another_client_is_next",
               so_many_are_served_before_another_client, five_masters, &bounds[3]),
        ON_FIVE_MASTERS(clients_are_served_in_the_order_of_their_requests),
        ON_FIVE_MASTERS(many_clients_have_all_of_their_turns),
        ON_FIVE_MASTERS(plain_clients_beside_waiters_starve_none),
        ON_FIVE_MASTERS(a_waiter_leaves_a_plain_client_its_key),
    };
    int result;

    if (crew_member(argc, argv, sizeof(struct arena), run_waiters, &result)) {
        return result;
    }
    return cmocka_run_group_tests_name("waiting_crowd", tests, NULL, NULL);
}
