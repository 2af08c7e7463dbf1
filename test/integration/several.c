/* Several keys in one lock: all or none at each master, and plain keys to other clients. */
#include "harness.h"
#include "master_data.h"

#include <event2/event.h>

#define FIVE 5

static const char *const abc[] = {"a", "b", "c"};
static const char *const cba[] = {"c", "b", "a"};
#define THREE 3

static redlock_request request_for_keys(const char *const *keys, size_t count, uint64_t ttl_ms) {
    redlock_request request = request_for(NULL, ttl_ms);
    request.keys = keys;
    request.key_count = count;
    return request;
}

static redlock_lock *hold_abc(struct fixture *f, redlock_client *client) {
    redlock_request request = request_for_keys(abc, THREE, LONG_TTL_MS);
    return hold_for(f, client, &request);
}

static void assert_all_ours(struct fixture *f) {
    for (size_t master = 0; master < FIVE; master++) {
        const char *value = value_at(f, master, "a");
        assert_non_null(value);
        assert_string_equal(value_at(f, master, "b"), value);
        assert_string_equal(value_at(f, master, "c"), value);
    }
}

static void one_token_holds_all_of_them(void **state) {
    struct fixture *f = *state;
    redlock_lock *lock = hold_abc(f, connect_client(f));

    wait_holders(f, "c", FIVE);
    assert_all_ours(f);
    size_t length;
    for (size_t i = 0; i < THREE; i++) {
        assert_string_equal(redlock_key_at(lock, i, &length), abc[i]);
        assert_int_equal(length, 1);
    }
    assert_null(redlock_key_at(lock, THREE, &length));
    assert_int_equal(length, 0);
    assert_string_equal(redlock_key(lock, NULL), "a");
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    for (size_t i = 0; i < THREE; i++) {
        wait_released(f, abc[i]);
    }
}

/* One command takes all keys: no client ever sees only some of them. */
static void it_takes_one_command(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_abc(f, client);

    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_released(f, "a");
    size_t before = executed(f, 0, "eval") + executed(f, 0, "evalsha");
    lock = hold_abc(f, client);
    wait_holders(f, "a", FIVE);
    assert_int_equal(executed(f, 0, "eval") + executed(f, 0, "evalsha"), before + 1);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

static void a_key_of_another_is_in_the_way_of_all(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_keys(abc, THREE, LONG_TTL_MS);

    rival_takes(f, 0, FIVE, "b", 40000);
    rival_takes(f, 0, FIVE, "c", 70000);
    struct call *call = acquire(f, client, &request);
    assert_ended(call, REDLOCK_EHELD);
    size_t deniers = 0; /* other nodes may not have reported the rest of the TTL yet */
    for (size_t i = 0; i < FIVE; i++) {
        if (call->opinions[i].ttl_ms > 0) { /* the TTL of the key that is held longest */
            assert_int_in_range(call->opinions[i].ttl_ms, 40001, 70000);
            deniers++;
        }
    }
    assert_true(deniers >= 3);
    wait_holders(f, "a", 0);
    rival_frees(f, 0, FIVE, "b");
    rival_frees(f, 0, FIVE, "c");
    assert_int_equal(let_go(f, hold_abc(f, client)), REDLOCK_OK);
}

static void plain_locks_are_excluded_by_each_of_them(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_lock *lock = hold_abc(f, client);

    wait_holders(f, "a", FIVE);
    for (size_t i = 0; i < THREE; i++) {
        assert_int_equal(try_lock(f, client, abc[i], 1000), REDLOCK_EHELD);
    }
    redlock_lock *other = hold(f, client, "d", LONG_TTL_MS);
    assert_int_equal(let_go(f, other), REDLOCK_OK);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
}

/* A master that lost one key has lost the lock; a renewal tops up a minority of such masters. */
static void each_of_them_counts(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for_keys(abc, THREE, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);

    wait_holders(f, "a", FIVE);
    rival_frees(f, 0, 1, "b");
    rival_frees(f, 1, 2, "c");
    assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
    wait_holders(f, "b", FIVE);
    wait_holders(f, "c", FIVE);
    assert_all_ours(f);

    rival_frees(f, 0, 2, "a");
    rival_frees(f, 2, 3, "c");
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    for (size_t i = 0; i < THREE; i++) {
        wait_released(f, abc[i]);
    }
}

static void the_fence_is_above_those_of_all(void **state) {
    struct fixture *f = *state;
    redlock_client *client = connect_client(f);
    redlock_request request = request_for("b", LONG_TTL_MS);
    request.fenced = true;
    uint64_t fence = 0;

    for (unsigned i = 0; i < 3; i++) {
        redlock_lock *lock = hold_for(f, client, &request);
        assert_true(redlock_fence(lock) > fence);
        fence = redlock_fence(lock);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
        redlock_request all = request_for_keys(cba, THREE, LONG_TTL_MS);
        all.fenced = true;
        lock = hold_for(f, client, &all);
        assert_true(redlock_fence(lock) > fence);
        fence = redlock_fence(lock);
        assert_int_equal(extend(f, lock, 0), REDLOCK_OK);
        assert_int_equal(redlock_fence(lock), fence);
        assert_int_equal(let_go(f, lock), REDLOCK_OK);
    }
    wait_holders(f, "a::fence", FIVE);
    assert_string_equal(value_at(f, 0, "a::fence"), value_at(f, 0, "b::fence"));
}

/* ----------------------------------------------------------------------- overlapping, at once */

#define MEALS 20

struct philosopher {
    struct fixture *f;
    redlock_client *client;
    const char *forks[2]; /* two of "a", "b", "c" */
    bool *is_taken;       /* for each fork of all */
    redlock_lock *lock;
    unsigned meals;
};

static bool *fork_of(struct philosopher *philosopher, unsigned i) {
    return &philosopher->is_taken[philosopher->forks[i][0] - 'a'];
}

static void sit_down(struct philosopher *philosopher);

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct philosopher *philosopher = arg;

    (void)lock;
    assert_int_equal(status, REDLOCK_OK);
    philosopher->meals++;
    if (philosopher->meals < MEALS) {
        sit_down(philosopher);
    }
}

static void on_eaten(evutil_socket_t none, short what, void *arg) {
    struct philosopher *philosopher = arg;

    (void)none;
    (void)what;
    *fork_of(philosopher, 0) = *fork_of(philosopher, 1) = false;
    assert_int_equal(redlock_release(philosopher->lock, on_released, philosopher), REDLOCK_OK);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct philosopher *philosopher = arg;

    assert_int_equal(status, REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(*fork_of(philosopher, i));
        *fork_of(philosopher, i) = true;
    }
    philosopher->lock = lock;
    event_base_once(philosopher->f->base, -1, EV_TIMEOUT, on_eaten, philosopher, NULL);
}

static void sit_down(struct philosopher *philosopher) {
    redlock_request request = request_for_keys(philosopher->forks, 2, LONG_TTL_MS);

    request.wait_ms = REDLOCK_FOREVER;
    assert_int_equal(redlock_acquire(philosopher->client, &request, on_acquired, philosopher, NULL),
                     REDLOCK_OK);
}

static bool have_eaten(void *arg) {
    const struct philosopher *philosophers = arg;

    return philosophers[0].meals == MEALS && philosophers[1].meals == MEALS &&
           philosophers[2].meals == MEALS;
}

/* Each philosopher names the left fork first: taken one by one, all would wait forever. */
static void philosophers_do_not_starve(void **state) {
    struct fixture *f = *state;
    bool is_taken[THREE] = {false};
    struct philosopher philosophers[THREE];
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    options.retry_delay_ms = 2;
    options.retry_delay_max_ms = 20;
    for (unsigned i = 0; i < THREE; i++) {
        philosophers[i] = (struct philosopher){.f = f,
                                               .client = create_client(f, &options),
                                               .forks = {abc[i], abc[(i + 1) % THREE]},
                                               .is_taken = is_taken};
        wait_connected(f, philosophers[i].client, FIVE);
    }
    for (unsigned i = 0; i < THREE; i++) {
        sit_down(&philosophers[i]);
    }
    run_until(f, have_eaten, philosophers, "everybody had eaten");
    for (unsigned i = 0; i < THREE; i++) {
        wait_released(f, abc[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(one_token_holds_all_of_them),
        ON_FIVE_MASTERS(it_takes_one_command),
        ON_FIVE_MASTERS(a_key_of_another_is_in_the_way_of_all),
        ON_FIVE_MASTERS(plain_locks_are_excluded_by_each_of_them),
        ON_FIVE_MASTERS(each_of_them_counts),
        ON_FIVE_MASTERS(the_fence_is_above_those_of_all),
        ON_FIVE_MASTERS(philosophers_do_not_starve),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}
