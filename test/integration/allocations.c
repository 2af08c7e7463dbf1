/*
 * The memory that a client takes from its allocator: none in a steady state, and a bounded amount
 * for any number of tries; and the status that a client without memory reports.
 */
#include "cycles.h"
#include "harness.h"
#include "master_data.h"
#include <stdio.h>
#include <string.h>

#define MOST_COMMANDS 64
#define KEY "orders:42"
#define IN_FLIGHT 16

static redlock_client *quiet_client(struct fixture *f, uint64_t retry_delay_ms) {
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);

    options.log_level = REDLOCK_LOG_INFO;
    options.retry_delay_ms = retry_delay_ms;
    options.retry_delay_max_ms = retry_delay_ms;
    return connect_with(f, &options);
}

/*
 * Repeats the same work until a repetition allocates nothing: before that, the spare objects grow
 * to the number that the slowest node requires. That node catches up between repetitions; on a busy
 * machine it would otherwise fall further behind each time.
 */
static void assert_steady(struct fixture *f, redlock_client *client,
                          void (*work)(struct fixture *f, void *arg), void *arg) {
    for (size_t i = 0; i < 50; i++) {
        size_t before = f->allocator.calls;

        work(f, arg);
        wait_all_answered(f, client);
        if (f->allocator.calls == before) {
            return;
        }
    }
    fail_msg("it went on to allocate");
}

static void run_1000_cycles(struct fixture *f, void *arg) {
    struct cycles cycles = {0};

    cycles_run(&cycles, f, arg, IN_FLIGHT, 1000);
}

static void a_cycle_in_the_steady_state_allocates_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);

    assert_steady(f, client, run_1000_cycles, client);
}

static void run_100_permits(struct fixture *f, void *arg) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    request.permits = 2;
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(let_go(f, hold_for(f, arg, &request)), REDLOCK_OK);
    }
}

/* One of two permits is taken: in 1/2 of the cycles the first try is for that permit. */
static void a_permit_in_the_steady_state_allocates_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);

    rival_takes(f, 0, 5, KEY ":0", LONG_TTL_MS);
    assert_steady(f, client, run_100_permits, client);
}

static void extend_100_times(struct fixture *f, void *arg) {
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(extend(f, arg, 0), REDLOCK_OK);
    }
}

static void an_extension_in_the_steady_state_allocates_nothing(void **state) {
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);

    assert_steady(f, client, extend_100_times, hold(f, client, KEY, LONG_TTL_MS));
}

static void be_refused(struct fixture *f, redlock_client *client, size_t tries) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct call *call;

    request.retries = (uint32_t)tries - 1;
    call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
}

/*
 * Fills the queue of a stopped master up to the bound. The masters before it must be stopped
 * already.
 */
static void fill_queue(struct fixture *f, redlock_client *client, size_t master) {
    for (size_t i = master; i < 5; i++) {
        wait_answered(f, client, i); /* three full queues would leave no quorum to refuse the key */
    }
    freeze(f, master);
    be_refused(f, client, MOST_COMMANDS);
    /* Tries have 3/4 of the room; their releases may have more. */
    assert_int_in_range(node_info(client, master).commands, MOST_COMMANDS / 4 * 3,
                        MOST_COMMANDS + OWN_COMMANDS);
}

/* The memory of an acquisition does not grow with the number of its tries. */
static void tries_do_not_pile_up(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_client *client;
    size_t early;

    options.retry_delay_ms = 1;
    options.retry_delay_max_ms = 1;
    options.log_level = REDLOCK_LOG_INFO;
    options.max_commands = MOST_COMMANDS;
    client = connect_with(f, &options);
    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    /* A quorum may leave two slow masters lagging, each with tries that the other does not have. */
    fill_queue(f, client, 0);
    fill_queue(f, client, 1);
    early = counting_allocator_mark(&f->allocator);
    thaw_masters(f, 0, 2);
    be_refused(f, client, cycles_here(10000));
    assert_true(counting_allocator_mark(&f->allocator) <= early + (128 << 10));
}

/* Holds a lock on the `i`-th of many keys of 16 bytes, and waits until it is at rest. */
static redlock_lock *hold_at_rest(struct fixture *f, redlock_client *client, size_t i) {
    char key[17];
    snprintf(key, sizeof(key), "sixteen:%08zu", i % 100000000);
    redlock_request request = request_for(key, LONG_TTL_MS);

    request.watchdog = true;
    redlock_lock *lock = hold_for(f, client, &request);
    wait_all_answered(f, client);
    return lock;
}

/* The locks held before use up the spare objects of the first rounds. */
static void a_lock_at_rest_takes_320_bytes(void **state) {
    enum { BEFORE = 4, LOCKS = 100 };
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);

    for (size_t i = 0; i < BEFORE; i++) {
        hold_at_rest(f, client, i);
    }
    size_t bytes = f->allocator.bytes;
    for (size_t i = 0; i < LOCKS; i++) {
        hold_at_rest(f, client, BEFORE + i);
    }
    assert_true(f->allocator.bytes - bytes <= LOCKS * (size_t)320);
}

static void assert_report(const redlock_lock *lock, const char *head) {
    redlock_node_report reports[5];

    assert_int_equal(redlock_report(lock, reports, 5), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(reports[i].vote, i < 4 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_UNREACHABLE);
        assert_int_equal(reports[i].detail[0] != '\0', i == 4);
    }
    assert_memory_equal(redlock_explain(lock), head, strlen(head));
}

/* A lock at rest has dropped its latest round, but not the answers. */
static void a_lock_at_rest_reports_the_votes_of_its_latest_round(void **state) {
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);

    masters_kill(f->masters, 4);
    wait_connected(f, client, 4);
    redlock_lock *lock = hold_at_rest(f, client, 0);
    assert_report(lock, "acquired");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_all_answered(f, client);
    assert_report(lock, "renewed");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void a_second_client_after_the_first_leaves_nothing(void **state) {
    struct fixture *f = *state;

    for (size_t i = 0; i < 5; i++) {
        redlock_client *client = quiet_client(f, 5);

        hold(f, client, KEY, LONG_TTL_MS);
        close_client(f, client);
        assert_int_equal(f->allocator.blocks, 0);
        wait_released(f, KEY);
    }
}

/* ------------------------------------------------------------------------------ out of memory */

static bool is_balanced(void *arg) {
    return ((const struct counting_allocator *)arg)->blocks == 0;
}

static void creation_without_memory_says_so(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_status status = REDLOCK_ENOMEM;
    redlock_client *client;

    for (size_t served = 0; status != REDLOCK_OK; served++) {
        redlock_error error;

        f->allocator.refuse_after = served;
        status = try_to_create(f, &options, &client, &error);
        f->allocator.refuse_after = SIZE_MAX;
        if (status == REDLOCK_OK) {
            redlock_client_close(client, NULL, NULL);
            run_until(f, is_balanced, &f->allocator, "all memory is given back");
        } else {
            assert_int_equal(status, REDLOCK_ENOMEM);
            assert_int_equal(error.status, REDLOCK_ENOMEM);
            assert_null(client);
            assert_int_equal(f->allocator.blocks, 0);
        }
        assert_true(served < 10000);
    }
}

struct outcome {
    struct fixture *f;
    bool came;
    redlock_status status;
    redlock_lock *lock;
};

static void record_outcome(redlock_lock *lock, redlock_status status, void *arg) {
    struct outcome *outcome = arg;

    assert_false(outcome->came);
    outcome->came = true;
    outcome->status = status;
    outcome->lock = lock;
    outcome->f->allocator.refuse_after = SIZE_MAX;
}

static bool has_come(void *arg) {
    return ((const struct outcome *)arg)->came;
}

/*
 * Acquires with `served` allocations: the request is refused, or ends with one callback. Returns
 * whether the lock is held.
 */
static bool acquire_with(struct fixture *f, redlock_client *client, size_t served) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome outcome = {.f = f};
    redlock_status status;

    f->allocator.refuse_after = served;
    status = redlock_acquire(client, &request, record_outcome, &outcome, NULL);
    if (status != REDLOCK_OK) {
        f->allocator.refuse_after = SIZE_MAX;
        assert_int_equal(status, REDLOCK_ENOMEM);
        return false;
    }
    run_until(f, has_come, &outcome, "acquire ends");
    f->allocator.refuse_after = SIZE_MAX;
    if (outcome.status == REDLOCK_OK) {
        assert_int_equal(let_go(f, outcome.lock), REDLOCK_OK);
        return true;
    }
    assert_true(outcome.status == REDLOCK_ENOMEM || outcome.status == REDLOCK_ENOQUORUM);
    return false;
}

static void acquisition_without_memory_says_so(void **state) {
    struct fixture *f = *state;

    for (size_t served = 0; served < 1000; served++) {
        redlock_client *client = quiet_client(f, 5);
        bool held = acquire_with(f, client, served);

        assert_int_equal(let_go(f, hold(f, client, "other", LONG_TTL_MS)), REDLOCK_OK);
        wait_released(f, KEY);
        close_client(f, client);
        if (held) {
            return;
        }
    }
    fail_msg("no acquisition succeeded");
}

/* ---- after a round that could not be sent ---- */

static void a_release_that_was_sent_reports_its_own_result(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold(f, client, "one", LONG_TTL_MS);

    wait_holders(f, "one", 5);
    wait_answered(f, client, 0);
    for (int i = 0; i < 8; i++) { /* use up the spare objects */
        char name[16];
        snprintf(name, sizeof(name), "other:%d", i);
        hold(f, client, name, LONG_TTL_MS);
    }
    f->allocator.refuse_after = 0;
    begin_extend(f, lock, 0); /* cannot be sent */
    f->allocator.refuse_after = SIZE_MAX;
    struct call *release = begin_release(f, lock); /* can be sent */
    assert_int_equal(await(f, release), REDLOCK_OK);
    wait_released(f, "one");
}

struct release {
    bool came;
    redlock_status status;
    char why[32];
};

static void record_release(redlock_lock *lock, redlock_status status, void *arg) {
    struct release *release = arg;

    *release = (struct release){.came = true, .status = status};
    snprintf(release->why, sizeof(release->why), "%s", redlock_explain(lock));
}

static bool is_released(void *arg) {
    return ((const struct release *)arg)->came;
}

/* Keys that stay until their TTL is over are counted. */
static void a_release_without_memory_is_counted(void **state) {
    struct fixture *f = *state;
    redlock_client *client = quiet_client(f, 5);
    redlock_lock *lock = hold(f, client, "one", LONG_TTL_MS);
    struct release release = {0};

    wait_holders(f, "one", 5);
    wait_all_answered(f, client);
    freeze(f, 4);
    for (int i = 0; i < 8; i++) { /* their rounds, which go on, use up the spare objects */
        char name[16];
        snprintf(name, sizeof(name), "other:%d", i);
        hold(f, client, name, LONG_TTL_MS);
    }
    f->allocator.refuse_after = 0;
    assert_int_equal(redlock_release(lock, record_release, &release), REDLOCK_OK);
    run_until(f, is_released, &release, "the release ends");
    f->allocator.refuse_after = SIZE_MAX;
    thaw_masters(f, 4, 5);
    assert_int_equal(release.status, REDLOCK_ENOMEM);
    assert_memory_equal(release.why, "not released: out of memory,", 28);
    struct member *member = begin_drain(f, client);
    wait_closed(f, member);
    assert_int_equal(member->unreleased, 5);
    wait_holders(f, "one", 5);
}

/* The pollable loop does not return between the failure and its report: nobody can cancel there. */
static void a_cancel_releases_what_a_diagnosing_round_could_not(void **state) {
    struct fixture *f = *state;
    if (f->loop != NULL) {
        return; /* cmocka's skip() counts as a failure in TAP */
    }
    redlock_client *client = connect_client(f);
    redlock_request request = request_for("one", LONG_TTL_MS);

    rival_takes(f, 0, 3, "one", LONG_TTL_MS);
    struct call *call = begin_acquire(f, client, &request);
    f->allocator.refuse_after = 0;
    wait_logged(f, "diagnosing");
    f->allocator.refuse_after = SIZE_MAX;
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    await(f, call);
    wait_holders(f, "one", 3); /* the rival's keys */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_cycle_in_the_steady_state_allocates_nothing),
        ON_FIVE_MASTERS(a_permit_in_the_steady_state_allocates_nothing),
        ON_FIVE_MASTERS(an_extension_in_the_steady_state_allocates_nothing),
        ON_FIVE_MASTERS(tries_do_not_pile_up),
        ON_FIVE_MASTERS(a_lock_at_rest_takes_320_bytes),
        ON_FIVE_MASTERS(a_lock_at_rest_reports_the_votes_of_its_latest_round),
        ON_FIVE_MASTERS(a_second_client_after_the_first_leaves_nothing),
        ON_FIVE_MASTERS(creation_without_memory_says_so),
        ON_FIVE_MASTERS(acquisition_without_memory_says_so),
        ON_FIVE_MASTERS(a_release_that_was_sent_reports_its_own_result),
        ON_FIVE_MASTERS(a_cancel_releases_what_a_diagnosing_round_could_not),
        ON_FIVE_MASTERS(a_release_without_memory_is_counted),
    };

    return cmocka_run_group_tests_name("allocations", tests, NULL, NULL);
}
