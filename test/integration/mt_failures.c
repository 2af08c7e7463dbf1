/*
 * redlock_mt without memory, threads or descriptors: each request for one fails in turn, in the
 * creation and in the calls, on the caller's thread and on the library's. A refusal has a status
 * and a sentence that names the cause, and leaves nothing; calls that must not fail succeed; all
 * works again afterwards.
 */
#include "harness.h"
#include "master_data.h"
#include "refusals.h"

#include <redlock/mt.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEY "orders:42"
#define OTHER_KEY "orders:43"
#define LOOP_DESCRIPTORS 3 /* epoll, timerfd, eventfd */
#define SITES_MAX 1000     /* a number of allocations that no call reaches */

/* Without the hooks of the harness, which may not fail: all memory is of malloc. */
static redlock_options quiet_options(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);

    options.log = NULL;
    options.allocator = NULL;
    return options;
}

static redlock_mt *create(struct fixture *f) {
    redlock_options options = quiet_options(f);
    redlock_error error;
    redlock_mt *mt;

    if (redlock_mt_create(&options, &mt, &error) != REDLOCK_OK) {
        fail_msg("%s", error.message);
    }
    return mt;
}

static void count_connected(redlock_client *client, void *arg) {
    redlock_node_info infos[5];
    size_t *count = arg;

    *count = 0;
    for (size_t i = redlock_client_nodes(client, infos, 5); i-- > 0;) {
        *count += infos[i].connected;
    }
}

static void wait_ready(redlock_mt *mt) {
    size_t connected = 0;

    while (connected < 5) {
        assert_int_equal(redlock_mt_run(mt, count_connected, &connected, NULL), REDLOCK_OK);
    }
}

static void take_and_release(redlock_mt *mt, const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);
    redlock_mt_lock *lock;
    redlock_error error;

    request.wait_ms = REDLOCK_FOREVER;
    if (redlock_mt_acquire(mt, &request, &lock, &error) != REDLOCK_OK ||
        redlock_mt_release(lock, &error) != REDLOCK_OK) {
        fail_msg("%s", error.message);
    }
}

/*
 * Closes a client that works, and checks that nothing is left of it. Returns the number of releases
 * that were not confirmed.
 */
static uint64_t end(redlock_mt *mt) {
    uint64_t unreleased = UINT64_MAX;

    take_and_release(mt, "afterwards");
    wait_ready(mt); /* a close does not wait for nodes that are down */
    assert_int_equal(redlock_mt_close(mt, &unreleased), REDLOCK_OK);
    redlock_mt_free(mt);
    assert_int_equal(refusals_threads(), 0);
    assert_int_equal(refusals_memory_left(), 0);
    return unreleased;
}

/* ---- creation ---- */

/* Asserts that a creation was refused so, and has left nothing. */
static void create_in_vain(struct fixture *f, redlock_status expected, const char *why) {
    redlock_options options = quiet_options(f);
    redlock_mt *mt = (void *)&options;
    redlock_error error = {.message = ""};

    assert_int_equal(redlock_mt_create(&options, &mt, &error), expected);
    assert_null(mt);
    assert_int_equal(error.status, expected);
    assert_string_equal(error.message, why);
    assert_int_equal(refusals_threads(), 0);
}

static void a_refused_creation_names_the_cause(void **state) {
    static const struct {
        enum refusable what;
        unsigned requests; /* of a creation */
        int error;
        redlock_status status;
        const char *why;
    } rows[] = {
        {REFUSABLE_THREAD, 1, EAGAIN, REDLOCK_ESYSTEM,
         "there is no thread: Resource temporarily unavailable"},
        {REFUSABLE_EPOLL, 1, EMFILE, REDLOCK_ESYSTEM,
         "there is no event loop: Too many open files"},
        {REFUSABLE_EPOLL, 1, ENOMEM, REDLOCK_ENOMEM, "out of memory"},
        {REFUSABLE_TIMER, 1, ENFILE, REDLOCK_ESYSTEM,
         "there is no event loop: Too many open files in system"},
        {REFUSABLE_WAKER, 1, ENOMEM, REDLOCK_ENOMEM, "out of memory"},
        {REFUSABLE_WATCH, 2, ENOSPC, REDLOCK_ESYSTEM,
         "there is no event loop: no epoll watch is left (fs.epoll.max_user_watches)"},
        {REFUSABLE_RANDOM, 1, ENOSYS, REDLOCK_ESYSTEM, "libsodium cannot be initialised"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned n = 1; n <= rows[i].requests; n++) {
            refusals_watch_memory();
            refusals_begin(rows[i].what, n, 1, rows[i].error);
            create_in_vain(f, rows[i].status, rows[i].why);
            assert_int_equal(refusals_end(), 1);
            assert_int_equal(refusals_memory_left(), 0);
        }
    }
    refusals_watch_memory();
    assert_int_equal(end(create(f)), 0);
}

/* Opens descriptors until none is left. Returns their number. */
static size_t use_up_descriptors(int *used, size_t size) {
    size_t count = 0;
    int fd;

    while ((fd = dup(STDIN_FILENO)) >= 0) {
        assert_true(count < size);
        used[count++] = fd;
    }
    assert_int_equal(errno, EMFILE);
    return count;
}

static void a_process_without_descriptors_gets_no_client(void **state) {
    struct fixture *f = *state;
    struct rlimit before, limit;
    int used[256];

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = (struct rlimit){sizeof(used) / sizeof(used[0]), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    size_t count = use_up_descriptors(used, limit.rlim_cur);
    refusals_watch_memory();
    for (size_t left = 0; left < LOOP_DESCRIPTORS; left++) {
        create_in_vain(f, REDLOCK_ESYSTEM, "there is no event loop: Too many open files");
        close(used[--count]);
    }
    redlock_mt *mt = create(f); /* connects as soon as there are descriptors */
    while (count > 0) {
        close(used[--count]);
    }
    assert_int_equal(end(mt), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Each allocation of a creation fails once, on both threads. */
static void memory_runs_out_in_a_creation(void **state) {
    struct fixture *f = *state;
    redlock_options options = quiet_options(f);
    unsigned refused = 1, refusals = 0;

    for (unsigned n = 1; refused > 0; n++) {
        redlock_mt *mt = (void *)&options;
        redlock_error error;

        assert_true(n < SITES_MAX);
        refusals_watch_memory();
        refusals_begin(REFUSABLE_MEMORY, n, 1, ENOMEM);
        redlock_status status = redlock_mt_create(&options, &mt, &error);
        refused = refusals_end();
        if (status == REDLOCK_OK) { /* a connection, which is tried again */
            assert_int_equal(end(mt), 0);
            continue;
        }
        refusals++;
        assert_int_equal(refused, 1);
        assert_int_equal(status, REDLOCK_ENOMEM);
        assert_null(mt);
        assert_string_equal(error.message, "out of memory");
        assert_int_equal(refusals_threads(), 0);
        assert_int_equal(refusals_memory_left(), 0);
    }
    assert_true(refusals > 2);
}

/* ---- calls ---- */

static void on_no_end(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    (void)lock;
    (void)status;
    (void)why;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    (void)status;
    (void)view;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static redlock_mt_lock *take(redlock_mt *mt, const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);
    redlock_mt_lock *lock;

    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, NULL), REDLOCK_OK);
    return lock;
}

static void assert_refused_once(redlock_status status, const redlock_error *error) {
    assert_int_equal(refusals_end(), 1);
    assert_int_equal(status, REDLOCK_ENOMEM);
    assert_int_equal(error->status, REDLOCK_ENOMEM);
    assert_string_equal(error->message, "out of memory");
}

/* The memory of a call itself: nothing is posted, and no callback is called. */
static void a_call_without_memory_is_refused_at_once(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_mt_lock *other = (void *)&request;
    atomic_uint calls = 0;
    redlock_error error;

    refusals_watch_memory();
    redlock_mt *mt = create(f);
    wait_ready(mt);
    redlock_mt_lock *lock = take(mt, KEY);

    refusals_begin_here(); /* the library's thread may still read answers */
    assert_refused_once(redlock_mt_acquire(mt, &request, &other, &error), &error);
    assert_null(other);
    other = (void *)&request;
    refusals_begin_here();
    assert_refused_once(redlock_mt_begin_acquire(mt, &request, on_no_end, &calls, &other, &error),
                        &error);
    assert_null(other);
    refusals_begin_here();
    assert_refused_once(redlock_mt_begin_extend(lock, 0, on_no_end, &calls, &error), &error);
    refusals_begin_here();
    assert_refused_once(redlock_mt_begin_inspect(mt, KEY, 0, on_view, &calls, &error), &error);

    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    assert_int_equal(end(mt), 0);
    assert_int_equal(atomic_load(&calls), 0);
    wait_released(f, KEY);
}

/* A call with a new client, whose pools are empty. Returns its status. */
struct trial {
    redlock_mt *mt;
    redlock_mt_lock *lock; /* held before; NULL: lost or released */
    redlock_error error;
};

static redlock_status try_to_acquire(struct trial *trial) {
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_mt_lock *lock;
    redlock_status status = redlock_mt_acquire(trial->mt, &request, &lock, &trial->error);

    assert_true((status == REDLOCK_OK) == (lock != NULL));
    if (status == REDLOCK_OK) {
        assert_int_equal(redlock_mt_begin_release(lock, NULL, NULL), REDLOCK_OK);
    }
    return status;
}

static redlock_status try_to_acquire_several(struct trial *trial) {
    redlock_request request = request_for(NULL, LONG_TTL_MS);
    redlock_mt_lock *lock;

    request.key = NULL;
    request.keys = (const char *const[]){"a", "b"};
    request.key_count = 2;
    request.fenced = true;
    redlock_status status = redlock_mt_acquire(trial->mt, &request, &lock, &trial->error);
    if (status == REDLOCK_OK) {
        assert_int_equal(redlock_mt_begin_release(lock, NULL, NULL), REDLOCK_OK);
    }
    return status;
}

static redlock_status try_to_extend(struct trial *trial) {
    return redlock_mt_extend(trial->lock, 0, &trial->error);
}

static redlock_status try_to_inspect(struct trial *trial) {
    atomic_uint views = 0;
    redlock_status status = redlock_mt_inspect(trial->mt, KEY, 0, on_view, &views, &trial->error);

    assert_true(atomic_load(&views) == (status == REDLOCK_OK));
    return status;
}

/* The outcome of a call that the work makes on the client. */
struct work {
    atomic_bool has_ended;
    redlock_status status;
};

static void on_ready(redlock_status status, void *arg) {
    struct work *work = arg;

    work->status = status;
    atomic_store(&work->has_ended, true);
}

static void ask_ready(redlock_client *client, void *arg) {
    redlock_status status = redlock_client_ready(client, PATIENT_MS, on_ready, arg);

    if (status != REDLOCK_OK) { /* refused: no callback */
        on_ready(status, arg);
    }
}

static redlock_status try_to_run(struct trial *trial) {
    struct work work = {.has_ended = false};

    assert_int_equal(redlock_mt_run(trial->mt, ask_ready, &work, &trial->error), REDLOCK_OK);
    while (!atomic_load(&work.has_ended)) {
        sched_yield();
    }
    assert_true(work.status == REDLOCK_OK || work.status == REDLOCK_ENOMEM);
    return REDLOCK_OK;
}

/* Lets the n-th allocation fail in a call. Returns whether it was made. */
static bool fail_in(struct fixture *f, redlock_status (*call)(struct trial *trial), unsigned n) {
    struct trial trial;

    refusals_watch_memory();
    trial.mt = create(f);
    wait_ready(trial.mt);
    trial.lock = take(trial.mt, KEY);
    refusals_begin(REFUSABLE_MEMORY, n, 1, ENOMEM);
    redlock_status status = call(&trial);
    unsigned refused = refusals_end();
    if (status != REDLOCK_OK) {
        assert_int_equal(refused, 1);
        /* ENOQUORUM: the nodes' commands had no memory */
        assert_true(status == REDLOCK_ENOMEM || status == REDLOCK_ENOQUORUM);
        assert_int_equal(trial.error.status, status);
        assert_non_null(strstr(trial.error.message, "memory"));
    }
    assert_int_equal(redlock_mt_state(trial.lock), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(trial.lock, NULL), REDLOCK_OK);
    assert_int_equal(end(trial.mt), 0);
    return refused > 0;
}

static void memory_runs_out_in_a_call(void **state) {
    static redlock_status (*const calls[])(struct trial * trial) = {
        try_to_acquire, try_to_acquire_several, try_to_extend, try_to_inspect, try_to_run,
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (unsigned n = 1; fail_in(f, calls[i], n); n++) {
            assert_true(n < SITES_MAX);
        }
    }
    wait_released(f, KEY);
}

/* ---- calls that must not fail ---- */

static void releases_cancels_and_losses_need_no_memory(void **state) {
    struct fixture *f = *state;
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    atomic_uint released = 0, lost = 0;
    redlock_mt_lock *pending;
    redlock_error error;

    refusals_watch_memory();
    redlock_mt *mt = create(f);
    wait_ready(mt);
    rival_takes(f, 0, 5, OTHER_KEY, LONG_TTL_MS);
    request.wait_ms = REDLOCK_FOREVER;
    redlock_mt_lock *lock = take(mt, KEY);
    redlock_mt_lock *second = take(mt, "orders:44");
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &pending, NULL),
                     REDLOCK_OK);

    refusals_begin(REFUSABLE_MEMORY, 1, UINT_MAX, ENOMEM);
    assert_int_equal(redlock_mt_on_lost(lock, on_no_end, &lost), REDLOCK_OK);
    assert_int_equal(redlock_mt_cancel(pending), REDLOCK_OK);
    redlock_status ended = redlock_mt_wait(pending, &error);
    assert_true(ended == REDLOCK_ECANCELED || ended == REDLOCK_ENOMEM); /* of a further try */
    assert_int_equal(redlock_mt_release(pending, NULL), ended);
    assert_int_equal(redlock_mt_begin_release(second, on_no_end, &released), REDLOCK_OK);
    redlock_status status = redlock_mt_release(lock, &error);
    assert_true(status == REDLOCK_OK || status == REDLOCK_ENOMEM || status == REDLOCK_ENOQUORUM);
    while (atomic_load(&released) == 0) {
        sched_yield();
    }
    refusals_end();
    assert_int_equal(atomic_load(&released), 1);
    assert_int_equal(atomic_load(&lost), 0);
    end(mt); /* without memory to send them, releases are left to the TTL */
}

static void a_close_needs_no_memory(void **state) {
    struct fixture *f = *state;

    refusals_watch_memory();
    redlock_mt *mt = create(f);
    wait_ready(mt);
    redlock_mt_lock *lock = take(mt, KEY);
    refusals_begin(REFUSABLE_MEMORY, 1, UINT_MAX, ENOMEM);
    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    redlock_mt_free(mt);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ECLOSED);
    refusals_end();
    assert_int_equal(refusals_threads(), 0);
    assert_int_equal(refusals_memory_left(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_refused_creation_names_the_cause),
        ON_FIVE_MASTERS(a_process_without_descriptors_gets_no_client),
        ON_FIVE_MASTERS(memory_runs_out_in_a_creation),
        ON_FIVE_MASTERS(a_call_without_memory_is_refused_at_once),
        ON_FIVE_MASTERS(memory_runs_out_in_a_call),
        ON_FIVE_MASTERS(releases_cancels_and_losses_need_no_memory),
        ON_FIVE_MASTERS(a_close_needs_no_memory),
    };

    return cmocka_run_group_tests_name("mt_failures", tests, NULL, NULL);
}
