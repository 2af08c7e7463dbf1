/*
 * Waiting is the same for all kinds of locks: those who wait are served in the order of their
 * requests, those who leave the queue leave no entry, and nobody keeps a key from its holder.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "wait_queue.h"

#include <stdio.h>
#include <string.h>

#define KEY "orders:42"
#define OTHER_KEY "orders:43"
#define WAITERS 4

struct kind {
    const char *name;
    redlock_mode mode;
    uint32_t permits;
    bool is_set; /* a lock of two keys */
    bool fenced;
    bool both_queue;   /* two waiters of one client both have entries */
    const char *queue; /* the key of the queue in which they wait */
    const char *key;   /* the key that is held */
};

static const struct kind kinds[] = {
    {"a lock", .queue = KEY "::queue", .key = KEY},
    {"a fenced lock", .fenced = true, .queue = KEY "::queue", .key = KEY},
    {"a reader", .mode = REDLOCK_READER, .both_queue = true, .queue = KEY "::queue", .key = KEY},
    {"a writer", .mode = REDLOCK_WRITER, .queue = KEY "::queue", .key = KEY},
    {"a fenced writer", .mode = REDLOCK_WRITER, .fenced = true, .queue = KEY "::queue", .key = KEY},
    {"two keys", .is_set = true, .queue = KEY "::queue", .key = KEY},
    {"two keys, fenced", .is_set = true, .fenced = true, .queue = KEY "::queue", .key = KEY},
    {"a permit", .permits = 1, .both_queue = true, .queue = KEY "::permits", .key = KEY ":0"},
    {"a fenced permit", .permits = 1, .both_queue = true, .fenced = true, .queue = KEY "::permits",
     .key = KEY ":0"},
};

static redlock_request request_of(const struct kind *kind) {
    static const char *const keys[] = {KEY, OTHER_KEY};
    redlock_request request = waiting_request_of(KEY, kind->mode, kind->permits);

    if (kind->is_set) {
        request.key = NULL;
        request.keys = keys;
        request.key_count = 2;
    }
    request.fenced = kind->fenced;
    return request;
}

/* Holds the lock, at all masters, in such a way that all kinds wait. */
static redlock_lock *hold_kind(struct fixture *f, const struct kind *kind) {
    redlock_request request = request_of(kind);

    request.mode = REDLOCK_EXCLUSIVE;
    request.watchdog = false; /* a test says when a lost key is brought back */
    redlock_lock *lock = hold_for(f, connect_client(f), &request);
    /* A master that had it later would give the key to the waiter, in place of an entry. */
    wait_holders(f, kind->key, masters_count(f->masters));
    return lock;
}

struct expected {
    struct fixture *f;
    const char *least; /* smallest score that is counted */
    long long wanted;
};

static bool are_as_expected(void *arg) {
    const struct expected *expected = arg;
    const struct kind *kind = expected->f->row;

    for (size_t i = 0; i < masters_count(expected->f->masters); i++) {
        if (masters_query_integer(expected->f->masters, i, "ZCOUNT %s %s +inf", kind->queue,
                                  expected->least) != expected->wanted) {
            return false;
        }
    }
    return true;
}

/* Waits until each master has the entries of so many waiters, whose scores are their tickets. */
static void wait_for_entries(struct fixture *f, long long count) {
    struct expected expected = {f, "1", count};

    run_until(f, are_as_expected, &expected, "each master has so many entries");
}

/* Waits until no master has a member of the queue, or the key. */
static void wait_all_over(struct fixture *f) {
    struct expected expected = {f, "-inf", 0};
    const struct kind *kind = f->row;

    run_until(f, are_as_expected, &expected, "no master has a queue");
    wait_holders(f, kind->key, 0);
    wait_holders(f, OTHER_KEY, 0);
}

/* ---- tests ---- */

/* Each has a larger fence than the one before. */
static void is_had_in_the_order_of_requests(void **state) {
    struct fixture *f = *state;
    const struct kind *kind = f->row;
    redlock_request request = request_of(kind);
    struct call *calls[WAITERS];
    uint64_t fence = 0;
    redlock_lock *lock = hold_kind(f, kind);

    for (size_t i = 0; i < WAITERS; i++) {
        calls[i] = begin_acquire(f, connect_client(f), &request);
        wait_for_entries(f, (long long)i + 1);
    }
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(await(f, calls[i]), REDLOCK_OK);
        assert_true(!kind->fenced || redlock_fence(calls[i]->lock) > fence);
        fence = redlock_fence(calls[i]->lock);
        for (size_t k = i + 1; k < WAITERS && kind->mode != REDLOCK_READER; k++) {
            assert_int_equal(calls[k]->ended, 0);
        }
        assert_int_equal(let_go(f, calls[i]->lock), REDLOCK_OK);
    }
    wait_all_over(f);
}

static void that_was_canceled_leaves_no_entry(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_of(f->row);
    redlock_lock *lock = hold_kind(f, f->row);
    struct call *call = begin_acquire(f, connect_client(f), &request);

    wait_for_entries(f, 1);
    assert_int_equal(redlock_cancel(call->lock), REDLOCK_OK);
    assert_int_equal(await(f, call), REDLOCK_ECANCELED);
    wait_for_entries(f, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_over(f);
}

static void whose_client_closes_leaves_no_entry(void **state) {
    struct fixture *f = *state;
    const struct kind *kind = f->row;
    redlock_request request = request_of(kind);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_kind(f, kind);
    struct call *one = begin_acquire(f, client, &request);
    struct call *two = begin_acquire(f, client, &request);

    wait_for_entries(f, kind->both_queue ? 2 : 1);
    close_client(f, client);
    assert_int_equal(one->status, REDLOCK_ECLOSED);
    assert_int_equal(two->status, REDLOCK_ECLOSED);
    wait_for_entries(f, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_over(f);
}

static void whose_wait_is_over_leaves_no_entry(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_of(f->row);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_kind(f, f->row);

    request.wait_ms = PATIENT_MS;
    struct call *call = begin_acquire(f, client, &request);
    wait_for_entries(f, 1);
    wait_all_answered(f, client);
    pass_time(PATIENT_MS);
    assert_int_equal(await(f, call), REDLOCK_EHELD);
    wait_for_entries(f, 0);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_over(f);
}

static bool has_all_keys(void *arg) {
    struct fixture *f = arg;
    const struct kind *kind = f->row;
    const char *lost = value_at(f, 0, kind->key);

    return lost != NULL && strcmp(lost, value_at(f, 1, kind->key)) == 0;
}

/* The holder's next extension brings the key back to a master that has lost it. */
static void does_not_keep_a_lost_key_from_its_holder(void **state) {
    struct fixture *f = *state;
    const struct kind *kind = f->row;
    redlock_request request = request_of(kind);
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_kind(f, kind);
    struct call *call = begin_acquire(f, client, &request);

    wait_for_entries(f, 1);
    wait_all_answered(f, client);
    rival_frees(f, 0, 1, kind->key);
    pass_polls(f, client);
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    run_until(f, has_all_keys, f, "the holder has the key at each master");
    assert_int_equal(call->ended, 0);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    take_turn(f, call);
    wait_all_over(f);
}

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define SCENARIOS 5

int main(void) {
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } scenarios[SCENARIOS] = {
        {"is had in the order of requests", is_had_in_the_order_of_requests},
        {"that was canceled leaves no entry", that_was_canceled_leaves_no_entry},
        {"whose client closes leaves no entry", whose_client_closes_leaves_no_entry},
        {"whose wait is over leaves no entry", whose_wait_is_over_leaves_no_entry},
        {"that waits keeps no key from its holder", does_not_keep_a_lost_key_from_its_holder},
    };
    static char names[KINDS * SCENARIOS][64];
    struct CMUnitTest tests[KINDS * SCENARIOS];

    for (size_t i = 0; i < KINDS * SCENARIOS; i++) {
        const struct kind *kind = &kinds[i / SCENARIOS];

        snprintf(names[i], sizeof(names[i]), "%s %s", kind->name, scenarios[i % SCENARIOS].name);
        tests[i] =
            (struct CMUnitTest)ON_ROW(names[i], scenarios[i % SCENARIOS].run, five_masters, kind);
    }
    return cmocka_run_group_tests_name("waiting_kinds", tests, NULL, NULL);
}
