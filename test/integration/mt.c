/*
 * redlock_mt: a client for all threads of a program. Each call in both of its forms, from threads
 * that are not the library's. The test mt_race has many threads.
 */
#include "clocks.h"
#include "harness.h"
#include "master_data.h"
#include "poll_timeout.h"
#include "seclusion.h"

#include <redlock/mt.h>
#include <redlock/statistics.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEY "orders:42"
#define OTHER_KEY "orders:43"
#define BEATS 3
#define BEAT_MS 1000

/* The end of a call that was made with a callback. */
struct outcome {
    atomic_uint count; /* calls of the callback; the other fields are set before it counts */
    redlock_status status;
    redlock_mt_lock *lock;
    char why[256];
    pthread_t thread;
};

static void on_end(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct outcome *outcome = arg;

    outcome->lock = lock;
    outcome->status = status;
    snprintf(outcome->why, sizeof(outcome->why), "%s", why);
    outcome->thread = pthread_self();
    atomic_fetch_add(&outcome->count, 1);
}

/* Waits until the callback has been called. */
static redlock_status ended(struct outcome *outcome) {
    while (atomic_load(&outcome->count) == 0) {
        sched_yield();
    }
    return outcome->status;
}

static redlock_mt *create_with(const redlock_options *options) {
    redlock_error error;
    redlock_mt *mt;
    redlock_status status = redlock_mt_create(options, &mt, &error);

    if (status != REDLOCK_OK) {
        fail_msg("%s", error.message);
    }
    return mt;
}

static redlock_mt *create(struct fixture *f) {
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);

    return create_with(&options);
}

static void end(redlock_mt *mt) {
    uint64_t unreleased = 1;

    assert_int_equal(redlock_mt_close(mt, &unreleased), REDLOCK_OK);
    assert_int_equal(unreleased, 0);
    redlock_mt_free(mt);
}

static redlock_mt_lock *take(redlock_mt *mt, const redlock_request *request) {
    redlock_mt_lock *lock = NULL;
    redlock_error error;
    redlock_status status = redlock_mt_acquire(mt, request, &lock, &error);

    if (status != REDLOCK_OK) {
        fail_msg("%s: %s", redlock_status_name(status), error.message);
    }
    assert_non_null(lock);
    return lock;
}

static redlock_request waiting_request(const char *key) {
    redlock_request request = request_for(key, LONG_TTL_MS);

    request.wait_ms = REDLOCK_FOREVER;
    return request;
}

/* ---- blocking calls ---- */

static void a_thread_takes_a_lock_and_releases_it(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock = take(mt, &request);

    assert_int_equal(redlock_mt_state(lock), REDLOCK_OK);
    assert_true(redlock_mt_validity_ms(lock) > LONG_TTL_MS / 2);
    assert_int_equal(redlock_mt_fence(lock), 0);
    wait_holders(f, KEY, 5);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    wait_released(f, KEY);
    end(mt);
}

static void a_denied_request_leaves_no_handle_and_says_why(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock = (void *)&request;
    redlock_error error;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, &error), REDLOCK_EHELD);
    assert_null(lock);
    assert_int_equal(error.status, REDLOCK_EHELD);
    assert_non_null(strstr(error.message, "held"));
    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, NULL), REDLOCK_EHELD);
    end(mt);
}

static void an_extension_lengthens_the_validity(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS / 2);
    redlock_mt_lock *lock = take(mt, &request);

    assert_true(redlock_mt_validity_ms(lock) <= LONG_TTL_MS / 2);
    assert_int_equal(redlock_mt_extend(lock, LONG_TTL_MS, NULL), REDLOCK_OK);
    assert_true(redlock_mt_validity_ms(lock) > LONG_TTL_MS / 2);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(mt);
}

static void an_extension_of_a_lost_lock_fails(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock = take(mt, &request);
    redlock_error error;

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_int_equal(redlock_mt_extend(lock, 0, &error), REDLOCK_ELOST);
    assert_int_equal(redlock_mt_validity_ms(lock), 0);
    assert_int_equal(redlock_mt_extend(lock, 0, &error), REDLOCK_ELOST);
    assert_string_equal(error.message, "the lock is lost");
    assert_int_equal(redlock_mt_state(lock), REDLOCK_ELOST);
    assert_int_equal(redlock_mt_release(lock, &error), REDLOCK_ELOST);
    assert_true(error.message[0] != '\0');
    end(mt);
}

static void on_view(redlock_status status, const redlock_view *view, void *arg) {
    struct outcome *outcome = arg;

    outcome->status = status;
    snprintf(outcome->why, sizeof(outcome->why), "%s %s %zu", view->held ? "held" : "free",
             view->owner, view->node_count);
    atomic_fetch_add(&outcome->count, 1);
}

static void an_inspection_shows_the_holder(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    struct outcome seen = {0}, seen_later = {0};

    options.owner = "billing";
    redlock_mt *mt = create_with(&options);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock = take(mt, &request);
    assert_int_equal(redlock_mt_inspect(mt, KEY, 0, on_view, &seen, NULL), REDLOCK_OK);
    assert_int_equal(atomic_load(&seen.count), 1);
    assert_string_equal(seen.why, "held billing 5");
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_inspect(mt, KEY, 0, on_view, &seen_later, NULL), REDLOCK_OK);
    assert_int_equal(ended(&seen_later), REDLOCK_OK);
    assert_string_equal(seen_later.why, "free  5");
    end(mt);
}

static void read_stats(redlock_client *client, void *arg) {
    assert_int_equal(redlock_client_stats(client, arg), REDLOCK_OK);
}

static void work_runs_on_the_client(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_stats stats = {.size = sizeof(stats)};

    redlock_mt_release(take(mt, &request), NULL);
    assert_int_equal(redlock_mt_run(mt, read_stats, &stats, NULL), REDLOCK_OK);
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.released, 1);
    end(mt);
}

/* ---- calls with callbacks ---- */

static void callbacks_come_from_the_librarys_thread(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome acquired = {0}, extended = {0}, released = {0};
    redlock_mt_lock *lock;

    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, &lock, NULL),
                     REDLOCK_OK);
    assert_int_equal(ended(&acquired), REDLOCK_OK);
    assert_ptr_equal(acquired.lock, lock);
    assert_string_equal(acquired.why, "");
    assert_false(pthread_equal(acquired.thread, pthread_self()));
    assert_int_equal(redlock_mt_begin_extend(lock, 0, on_end, &extended, NULL), REDLOCK_OK);
    assert_int_equal(ended(&extended), REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_release(lock, on_end, &released), REDLOCK_OK);
    assert_int_equal(ended(&released), REDLOCK_OK);
    assert_true(pthread_equal(acquired.thread, released.thread));
    wait_released(f, KEY);
    end(mt);
}

static void a_failed_request_keeps_its_handle_until_it_is_released(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome acquired = {0}, extended = {0}, released = {0};
    redlock_error error;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, NULL, NULL),
                     REDLOCK_OK);
    assert_int_equal(ended(&acquired), REDLOCK_EHELD);
    assert_non_null(strstr(acquired.why, "held"));
    redlock_mt_lock *lock = acquired.lock;
    assert_int_equal(redlock_mt_wait(lock, &error), REDLOCK_EHELD);
    assert_string_equal(error.message, acquired.why);
    assert_int_equal(redlock_mt_state(lock), REDLOCK_EHELD);
    assert_int_equal(redlock_mt_validity_ms(lock), 0);
    assert_string_equal(redlock_mt_key(lock, NULL), KEY);
    assert_int_equal(redlock_mt_cancel(lock), REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_extend(lock, 0, on_end, &extended, NULL), REDLOCK_OK);
    assert_int_equal(ended(&extended), REDLOCK_EINVAL);
    assert_string_equal(extended.why, "the lock was not acquired");
    assert_int_equal(redlock_mt_begin_release(lock, on_end, &released), REDLOCK_OK);
    assert_int_equal(ended(&released), REDLOCK_EHELD);
    assert_string_equal(released.why, acquired.why);
    end(mt);
}

static void a_refusal_of_the_client_is_reported(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_error error;

    options.max_unsent = 1;
    freeze_masters(f, 0, 5); /* so that the first request waits to be sent */
    redlock_mt *mt = create_with(&options);
    redlock_mt_lock *first, *second;
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &first, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_acquire(mt, &request, &second, &error), REDLOCK_EBUSY);
    assert_non_null(strstr(error.message, "max_unsent"));
    thaw_masters(f, 0, 5);
    assert_int_equal(redlock_mt_wait(first, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(first, NULL), REDLOCK_OK);
    end(mt);
}

/* Takes and releases a lock over and over, in callbacks only. */
struct chain {
    redlock_mt *mt;
    unsigned left;
    atomic_bool is_over;
    redlock_status unexpected; /* the first status other than REDLOCK_OK */
};

static void on_link_acquired(redlock_mt_lock *lock, redlock_status status, const char *why,
                             void *arg);

static void begin_link(struct chain *chain) {
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_status status =
        redlock_mt_begin_acquire(chain->mt, &request, on_link_acquired, chain, NULL, NULL);

    if (status != REDLOCK_OK) { /* otherwise the chain is the callback's by now */
        chain->unexpected = status;
        atomic_store(&chain->is_over, true);
    }
}

static void on_link_released(redlock_mt_lock *lock, redlock_status status, const char *why,
                             void *arg) {
    struct chain *chain = arg;
    (void)lock;
    (void)why;

    chain->unexpected = chain->unexpected != REDLOCK_OK ? chain->unexpected : status;
    if (--chain->left > 0 && chain->unexpected == REDLOCK_OK) {
        begin_link(chain);
    } else {
        atomic_store(&chain->is_over, true);
    }
}

static void on_link_extended(redlock_mt_lock *lock, redlock_status status, const char *why,
                             void *arg) {
    struct chain *chain = arg;
    (void)why;

    chain->unexpected = chain->unexpected != REDLOCK_OK ? chain->unexpected : status;
    redlock_mt_begin_release(lock, on_link_released, arg);
}

static void on_link_acquired(redlock_mt_lock *lock, redlock_status status, const char *why,
                             void *arg) {
    struct chain *chain = arg;
    (void)why;

    chain->unexpected = chain->unexpected != REDLOCK_OK ? chain->unexpected : status;
    redlock_mt_begin_extend(lock, 0, on_link_extended, arg, NULL);
}

static void callbacks_may_make_calls(void **state) {
    struct fixture *f = *state;
    struct chain chain = {.mt = create(f), .left = 50};

    begin_link(&chain);
    while (!atomic_load(&chain.is_over)) {
        sched_yield();
    }
    assert_int_equal(chain.unexpected, REDLOCK_OK);
    assert_int_equal(chain.left, 0);
    end(chain.mt);
}

/* Keeps the library's thread in a callback for as long as the test wants. */
struct hindrance {
    atomic_bool is_inside, may_end;
};

static void hinder(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct hindrance *hindrance = arg;
    (void)status;
    (void)why;

    atomic_store(&hindrance->is_inside, true);
    while (!atomic_load(&hindrance->may_end)) {
        sched_yield();
    }
    redlock_mt_begin_release(lock, NULL, NULL);
}

/* If it did not, the second request would wait for LONG_TTL_MS. */
static void the_time_to_wait_counts_from_the_call(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    struct hindrance hindrance = {0};
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_mt_lock *lock;

    rival_takes(f, 0, 5, KEY, 10 * LONG_TTL_MS);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, hinder, &hindrance, NULL, NULL),
                     REDLOCK_OK);
    while (!atomic_load(&hindrance.is_inside)) {
        sched_yield();
    }
    request.key = KEY;
    request.wait_ms = LONG_TTL_MS;
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &lock, NULL), REDLOCK_OK);
    pass_time(2 * LONG_TTL_MS);
    atomic_store(&hindrance.may_end, true);
    redlock_status status = redlock_mt_wait(lock, NULL);
    assert_true(status == REDLOCK_EHELD || status == REDLOCK_ENOQUORUM);
    assert_int_equal(redlock_mt_release(lock, NULL), status);
    end(mt);
}

struct refusals {
    redlock_mt *mt;
    redlock_status statuses[7];
    redlock_error error;
};

static void do_nothing(redlock_client *client, void *arg) {
    (void)client;
    (void)arg;
}

static void try_to_block(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct refusals *refusals = arg;
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    redlock_mt_lock *other;
    (void)status;
    (void)why;

    refusals->statuses[0] = redlock_mt_acquire(refusals->mt, &request, &other, &refusals->error);
    refusals->statuses[1] = redlock_mt_extend(lock, 0, NULL);
    refusals->statuses[2] = redlock_mt_release(lock, NULL);
    refusals->statuses[3] = redlock_mt_wait(lock, NULL);
    refusals->statuses[4] = redlock_mt_inspect(refusals->mt, KEY, 0, on_view, NULL, NULL);
    refusals->statuses[5] = redlock_mt_run(refusals->mt, do_nothing, NULL, NULL);
    refusals->statuses[6] = redlock_mt_close(refusals->mt, NULL);
    redlock_mt_free(refusals->mt); /* does nothing either */
}

static void callbacks_may_not_wait(void **state) {
    struct fixture *f = *state;
    struct refusals refusals = {.mt = create(f)};
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock;

    assert_int_equal(
        redlock_mt_begin_acquire(refusals.mt, &request, try_to_block, &refusals, &lock, NULL),
        REDLOCK_OK);
    assert_int_equal(redlock_mt_wait(lock, NULL), REDLOCK_OK);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(refusals.statuses[i], REDLOCK_EINVAL);
    }
    assert_non_null(strstr(refusals.error.message, "callback"));
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(refusals.mt);
}

/* ---- cancels ---- */

/* Waits until the client has a request under way. */
static void wait_pending(redlock_mt *mt) {
    redlock_stats stats = {.size = sizeof(stats)};

    while (stats.pending == 0) {
        assert_int_equal(redlock_mt_run(mt, read_stats, &stats, NULL), REDLOCK_OK);
    }
}

static void a_cancel_ends_an_acquisition(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);
    struct outcome acquired = {0};
    redlock_mt_lock *lock;
    redlock_error error;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, &lock, NULL),
                     REDLOCK_OK);
    wait_pending(mt);
    assert_int_equal(redlock_mt_state(lock), REDLOCK_EBUSY);
    assert_int_equal(redlock_mt_cancel(lock), REDLOCK_OK);
    assert_int_equal(redlock_mt_cancel(lock), REDLOCK_OK);
    assert_int_equal(redlock_mt_wait(lock, &error), REDLOCK_ECANCELED);
    assert_int_equal(acquired.status, REDLOCK_ECANCELED);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ECANCELED);
    assert_int_equal(atomic_load(&acquired.count), 1);
    end(mt);
}

static void a_release_ends_an_acquisition(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);
    struct outcome acquired = {0}, extended = {0}, released = {0};
    redlock_mt_lock *lock;

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, &lock, NULL),
                     REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_extend(lock, 0, on_end, &extended, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_release(lock, on_end, &released), REDLOCK_OK);
    assert_int_equal(ended(&extended), REDLOCK_EINVAL);
    assert_string_equal(extended.why, "the lock is not held");
    assert_int_equal(ended(&released), REDLOCK_ECANCELED);
    assert_int_equal(acquired.status, REDLOCK_ECANCELED);
    assert_int_equal(atomic_load(&acquired.count), 1);
    end(mt);
}

static redlock_mt_lock *to_cancel;

static void on_signal(int number) {
    (void)number;
    redlock_mt_cancel(to_cancel);
}

static void a_signal_handler_may_cancel(void **state) {
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &to_cancel, NULL),
                         REDLOCK_OK);
        raise(SIGUSR1);
        assert_int_equal(redlock_mt_wait(to_cancel, NULL), REDLOCK_ECANCELED);
        assert_int_equal(redlock_mt_release(to_cancel, NULL), REDLOCK_ECANCELED);
    }
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    end(mt);
}

/* A thread that waits for a lock, until another ends the wait. */
struct waiter {
    pthread_t thread;
    redlock_mt *mt;
    redlock_mt_lock *lock; /* NULL: acquire; otherwise wait for it */
    redlock_status status;
    redlock_error error;
};

static void *wait_for_lock(void *arg) {
    struct waiter *waiter = arg;
    redlock_request request = waiting_request(KEY);
    redlock_mt_lock *lock;

    waiter->status = waiter->lock != NULL
                         ? redlock_mt_wait(waiter->lock, &waiter->error)
                         : redlock_mt_acquire(waiter->mt, &request, &lock, &waiter->error);
    return NULL;
}

static void begin_waiting(struct waiter *waiter) {
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_lock, waiter), 0);
}

static redlock_status end_waiting(struct waiter *waiter) {
    void *result;

    assert_int_equal(pthread_join(waiter->thread, &result), 0);
    assert_null(result); /* otherwise PTHREAD_CANCELED */
    return waiter->status;
}

/* A signal interrupts the wait, and a pthread_cancel stays pending: both go on waiting. */
static void a_wait_goes_on_after_signals_and_is_no_cancellation_point(void **state) {
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);
    struct waiter waiter = {.mt = mt};

    rival_takes(f, 0, 5, KEY, LONG_TTL_MS);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &waiter.lock, NULL),
                     REDLOCK_OK);
    to_cancel = NULL; /* the handler only interrupts */
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    begin_waiting(&waiter);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
        sched_yield();
    }
    assert_int_equal(pthread_cancel(waiter.thread), 0);
    rival_frees(f, 0, 5, KEY);
    assert_int_equal(redlock_mt_cancel(waiter.lock), REDLOCK_OK);
    redlock_status status = end_waiting(&waiter);
    assert_true(status == REDLOCK_ECANCELED || status == REDLOCK_OK);
    assert_int_equal(redlock_mt_wait(waiter.lock, NULL), status);
    assert_int_equal(redlock_mt_release(waiter.lock, NULL), status);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    end(mt);
}

static void *make_all_calls(void *arg) {
    redlock_mt *mt = arg;
    redlock_request request = waiting_request(KEY);
    struct outcome seen = {0};

    assert_int_equal(pthread_cancel(pthread_self()), 0);
    redlock_mt_lock *lock = take(mt, &request);
    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_inspect(mt, KEY, 0, on_view, &seen, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_cancel(lock), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(mt);
    return NULL;
}

/* Nor is any other call: the thread ends where it wants to. */
static void a_canceled_thread_goes_on(void **state) {
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, make_all_calls, create(*state)), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result); /* otherwise PTHREAD_CANCELED */
}

/* ---- losses ---- */

static void a_loss_is_reported_once(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome lost = {0};
    redlock_mt_lock *lock = take(mt, &request);

    assert_int_equal(redlock_mt_on_lost(lock, on_end, &lost), REDLOCK_OK);
    assert_int_equal(redlock_mt_on_lost(lock, on_end, &lost), REDLOCK_EBUSY);
    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_ELOST);
    assert_int_equal(ended(&lost), REDLOCK_ELOST);
    assert_non_null(strstr(lost.why, "lost"));
    assert_int_equal(redlock_mt_validity_ms(lock), 0);
    assert_int_equal(redlock_mt_state(lock), REDLOCK_ELOST);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ELOST);
    assert_int_equal(atomic_load(&lost.count), 1);
    end(mt);
}

static void an_earlier_loss_is_reported_too(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome lost = {0};
    redlock_mt_lock *lock = take(mt, &request);

    wait_holders(f, KEY, 5);
    rival_frees(f, 0, 5, KEY);
    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_ELOST);
    while (redlock_mt_state(lock) == REDLOCK_OK) {
        sched_yield();
    }
    assert_int_equal(redlock_mt_on_lost(lock, on_end, &lost), REDLOCK_OK);
    assert_int_equal(ended(&lost), REDLOCK_ELOST);
    assert_non_null(strstr(lost.why, "lost"));
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ELOST);
    end(mt);
}

static void renewals_reach_the_validity(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_stats stats = {.size = sizeof(stats)};

    request.watchdog = true;
    redlock_mt_lock *lock = take(mt, &request);
    pass_time(LONG_TTL_MS / 2);
    assert_true(redlock_mt_validity_ms(lock) < LONG_TTL_MS / 2);
    while (stats.renewed == 0) { /* each run of the loop looks at the time */
        assert_int_equal(redlock_mt_run(mt, read_stats, &stats, NULL), REDLOCK_OK);
    }
    assert_true(redlock_mt_validity_ms(lock) > LONG_TTL_MS / 2);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(mt);
}

/* ---- an idle client ---- */

struct traffic {
    pid_t thread;     /* the library's */
    uint64_t answers; /* of all nodes */
};

static void read_traffic(redlock_client *client, void *arg) {
    struct traffic *traffic = arg;
    redlock_node_stats stats = {.size = sizeof(stats)};

    traffic->thread = (pid_t)syscall(SYS_gettid);
    traffic->answers = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(redlock_client_node_stats(client, i, &stats), REDLOCK_OK);
        traffic->answers += stats.replies;
    }
}

/* Returns how often a thread has gone to sleep. */
static uint64_t sleeps_of(pid_t thread) {
    static const char field[] = "\nvoluntary_ctxt_switches:";
    char path[64], text[4096];

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *found = strstr(text, field);
    assert_non_null(found);
    return strtoull(found + strlen(field), NULL, 10);
}

static uint64_t now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Each wake is that of a heartbeat, if no answer has come. */
static void an_idle_client_wakes_its_thread_at_heartbeats_only(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct traffic before, after;
    struct poll_timeout timeout = {0};

    assert_int_equal(redlock_mt_release(take(mt, &request), NULL), REDLOCK_OK);
    wait_released(f, KEY);
    assert_int_equal(redlock_mt_run(mt, read_traffic, &before, NULL), REDLOCK_OK);
    uint64_t begun = now_ms();
    uint64_t sleeps = sleeps_of(before.thread);
    /* One may still follow the call, and one the heartbeat that begins the first period. */
    while (sleeps_of(before.thread) < sleeps + BEATS + 2) {
        assert_true(poll_timeout_wait(&timeout, PATIENT_MS));
    }
    uint64_t passed_ms = now_ms() - begun;
    assert_int_equal(redlock_mt_run(mt, read_traffic, &after, NULL), REDLOCK_OK);
    assert_true(passed_ms + 1 + (after.answers - before.answers) * BEAT_MS >= BEATS * BEAT_MS);
    end(mt);
}

/* ---- the end ---- */

static void a_close_wakes_those_who_wait(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);
    struct waiter waiters[4] = {{.mt = mt}, {.mt = mt}, {.mt = mt}, {.mt = mt}};
    redlock_mt_lock *pending;
    struct outcome acquired = {0}, lost = {0}, released = {0};

    redlock_mt_lock *lock = take(mt, &request);
    assert_int_equal(redlock_mt_on_lost(lock, on_end, &lost), REDLOCK_OK);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, &pending, NULL),
                     REDLOCK_OK);
    waiters[0].lock = waiters[1].lock = pending;
    for (size_t i = 0; i < 4; i++) {
        begin_waiting(&waiters[i]);
    }
    wait_pending(mt);
    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(end_waiting(&waiters[i]), REDLOCK_ECLOSED);
        assert_true(waiters[i].error.message[0] != '\0');
    }
    assert_int_equal(acquired.status, REDLOCK_ECLOSED);
    assert_int_equal(atomic_load(&acquired.count), 1);
    assert_int_equal(lost.status, REDLOCK_ECLOSED);
    wait_released(f, KEY);

    /* Handles live on, and say what has become of their locks. */
    assert_int_equal(redlock_mt_state(lock), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_validity_ms(lock), 0);
    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    redlock_mt_free(mt);
    assert_string_equal(redlock_mt_key(lock, NULL), KEY);
    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_begin_extend(lock, 0, on_end, &released, NULL), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_cancel(pending), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_on_lost(pending, on_end, &released), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_wait(pending, NULL), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_begin_release(pending, on_end, &released), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ECLOSED);
    assert_int_equal(atomic_load(&released.count), 0);
}

/* A callback that asks for the loss of another lock, which the close reports after all else. */
struct late_loss {
    redlock_mt *mt;
    redlock_mt_lock *lock;
    atomic_bool is_inside, is_released;
    bool is_late; /* the release of `lock` returned while the callback ran */
};

static void on_late_loss(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct late_loss *loss = arg;
    (void)lock;
    (void)status;
    (void)why;

    atomic_store(&loss->is_inside, true);
    for (int i = 0; i < 1000 && !loss->is_late; i++) { /* turns for the thread that releases */
        sched_yield();
        loss->is_late = atomic_load(&loss->is_released);
    }
}

static void ask_for_loss(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct late_loss *loss = arg;
    (void)lock;
    (void)status;
    (void)why;

    redlock_mt_on_lost(loss->lock, on_late_loss, loss);
}

static void *close_mt(void *arg) {
    struct late_loss *loss = arg;

    redlock_mt_close(loss->mt, NULL);
    return NULL;
}

static void a_release_waits_for_the_callback_of_a_loss(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 1);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_request other = request_for(OTHER_KEY, LONG_TTL_MS);
    struct late_loss loss = {.mt = create_with(&options)};
    pthread_t thread;

    loss.lock = take(loss.mt, &other);
    redlock_mt_lock *lock = take(loss.mt, &request);
    freeze(f, 0);
    assert_int_equal(redlock_mt_begin_release(lock, ask_for_loss, &loss), REDLOCK_OK);
    assert_int_equal(pthread_create(&thread, NULL, close_mt, &loss), 0);
    while (redlock_mt_state(loss.lock) == REDLOCK_OK) {
        sched_yield();
    }
    thaw(f, 0);
    while (!atomic_load(&loss.is_inside)) {
        sched_yield();
    }
    redlock_mt_release(loss.lock, NULL); /* after the client has closed, or shortly before */
    atomic_store(&loss.is_released, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(loss.is_late);
    redlock_mt_free(loss.mt);
}

static void calls_after_a_close_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct outcome outcome = {0};
    redlock_mt_lock *lock = (void *)&request;
    redlock_error error;

    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, &error), REDLOCK_ECLOSED);
    assert_null(lock);
    assert_string_equal(error.message, "the client is closed");
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &outcome, &lock, NULL),
                     REDLOCK_ECLOSED);
    assert_null(lock);
    assert_int_equal(redlock_mt_inspect(mt, KEY, 0, on_view, &outcome, NULL), REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_begin_inspect(mt, KEY, 0, on_view, &outcome, NULL),
                     REDLOCK_ECLOSED);
    assert_int_equal(redlock_mt_run(mt, do_nothing, NULL, NULL), REDLOCK_ECLOSED);
    assert_int_equal(atomic_load(&outcome.count), 0);
    redlock_mt_free(mt);
}

static void a_close_reports_releases_that_were_not_confirmed(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    uint64_t unreleased = 0;

    options.close_timeout_ms = 1;
    redlock_mt *mt = create_with(&options);
    redlock_mt_lock *lock = take(mt, &request);
    wait_holders(f, KEY, 5);
    freeze_masters(f, 0, 5);
    assert_int_equal(redlock_mt_close(mt, &unreleased), REDLOCK_OK);
    assert_int_equal(unreleased, 5);
    thaw_masters(f, 0, 5);
    redlock_mt_free(mt);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_ECLOSED);
}

/* ---- children ---- */

static bool is_powerless(redlock_mt *mt, redlock_mt_lock *lock) {
    redlock_request request = request_for(OTHER_KEY, LONG_TTL_MS);
    struct outcome outcome = {0};
    redlock_mt_lock *other;
    redlock_error error;
    bool is_refused =
        seclude(false) && /* it touches no descriptor either */
        redlock_mt_acquire(mt, &request, &other, &error) == REDLOCK_EINVAL &&
        strstr(error.message, "child (fork)") != NULL &&
        redlock_mt_begin_acquire(mt, &request, on_end, &outcome, &other, NULL) == REDLOCK_EINVAL &&
        redlock_mt_extend(lock, 0, NULL) == REDLOCK_EINVAL &&
        redlock_mt_release(lock, NULL) == REDLOCK_EINVAL &&
        redlock_mt_begin_release(lock, on_end, &outcome) == REDLOCK_EINVAL &&
        redlock_mt_cancel(lock) == REDLOCK_EINVAL &&
        redlock_mt_wait(lock, NULL) == REDLOCK_EINVAL &&
        redlock_mt_on_lost(lock, on_end, &outcome) == REDLOCK_EINVAL &&
        redlock_mt_begin_extend(lock, 0, on_end, &outcome, NULL) == REDLOCK_EINVAL &&
        redlock_mt_inspect(mt, KEY, 0, on_view, &outcome, NULL) == REDLOCK_EINVAL &&
        redlock_mt_begin_inspect(mt, KEY, 0, on_view, &outcome, NULL) == REDLOCK_EINVAL &&
        redlock_mt_run(mt, do_nothing, NULL, NULL) == REDLOCK_EINVAL &&
        redlock_mt_close(mt, NULL) == REDLOCK_EINVAL;

    redlock_mt_free(mt);
    return is_refused && redlock_mt_validity_ms(lock) == 0 &&
           redlock_mt_state(lock) == REDLOCK_EINVAL &&
           strcmp(redlock_mt_key(lock, NULL), KEY) == 0 && atomic_load(&outcome.count) == 0;
}

static void a_child_can_do_nothing_with_its_parents_locks(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt_lock *lock = take(mt, &request);
    int result;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(is_powerless(mt, lock) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), EXIT_SUCCESS);
    assert_true(redlock_mt_validity_ms(lock) > 0);
    assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(mt);
}

/* ---- kinds of locks ---- */

static void several_keys_are_copied(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for(NULL, LONG_TTL_MS);
    char first[] = KEY, second[] = OTHER_KEY "+";
    const char *keys[] = {first, second};
    size_t lengths[] = {0, strlen(OTHER_KEY)};
    struct outcome acquired = {0};
    redlock_mt_lock *lock;
    size_t length;

    request.key = NULL;
    request.keys = keys;
    request.key_lengths = lengths;
    request.key_count = 2;
    request.fenced = true;
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, on_end, &acquired, &lock, NULL),
                     REDLOCK_OK);
    memset(first, 'x', strlen(first));
    memset(second, 'x', strlen(second));
    memset(keys, 0, sizeof(keys));
    memset(lengths, 0, sizeof(lengths));
    assert_int_equal(redlock_mt_wait(lock, NULL), REDLOCK_OK);
    assert_true(redlock_mt_fence(lock) > 0);
    assert_string_equal(redlock_mt_key(lock, &length), KEY);
    assert_int_equal(length, strlen(KEY));
    wait_holders(f, KEY, 5);
    wait_holders(f, OTHER_KEY, 5);
    assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    end(mt);
}

static void permits_have_their_own_keys(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = request_for("pool", LONG_TTL_MS);
    redlock_mt_lock *locks[3];
    bool is_taken[3] = {false};

    request.permits = 3;
    for (size_t i = 0; i < 3; i++) {
        size_t length;
        locks[i] = take(mt, &request);
        const char *key = redlock_mt_key(locks[i], &length);
        assert_int_equal(length, 6);
        assert_memory_equal(key, "pool:", 5);
        assert_int_in_range(key[5], '0', '2');
        assert_false(is_taken[key[5] - '0']);
        is_taken[key[5] - '0'] = true;
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(redlock_mt_release(locks[i], NULL), REDLOCK_OK);
    }
    end(mt);
}

static void readers_share_a_key(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request reader = request_for(KEY, LONG_TTL_MS);
    redlock_request writer = waiting_request(KEY);
    redlock_mt_lock *pending;

    reader.mode = REDLOCK_READER;
    writer.mode = REDLOCK_WRITER;
    redlock_mt_lock *first = take(mt, &reader), *second = take(mt, &reader);
    assert_int_equal(redlock_mt_begin_acquire(mt, &writer, NULL, NULL, &pending, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(first, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_state(pending), REDLOCK_EBUSY);
    assert_int_equal(redlock_mt_release(second, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_wait(pending, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_release(pending, NULL), REDLOCK_OK);
    end(mt);
}

static void fences_grow_from_holder_to_holder(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);

    request.fenced = true;
    redlock_mt_lock *first = take(mt, &request), *second;
    uint64_t fence = redlock_mt_fence(first);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, &second, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_fence(second), 0);
    assert_int_equal(redlock_mt_release(first, NULL), REDLOCK_OK);
    assert_int_equal(redlock_mt_wait(second, NULL), REDLOCK_OK);
    assert_true(redlock_mt_fence(second) > fence);
    assert_true(redlock_mt_validity_ms(second) > 0);
    assert_int_equal(redlock_mt_release(second, NULL), REDLOCK_OK);
    end(mt);
}

/* ---- refusals ---- */

static void bad_arguments_are_refused(void **state) {
    struct fixture *f = *state;
    redlock_options options = patient_options(f, masters_uris(f->masters), 5);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    redlock_mt *mt, *none = (void *)&options;
    redlock_mt_lock *lock;
    redlock_error error;

    assert_int_equal(redlock_mt_create(&options, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_create(NULL, &none, &error), REDLOCK_EINVAL);
    assert_null(none);
    options.nodes = (const char *const[]){"redis://", "http://x", "", "", ""};
    assert_int_equal(redlock_mt_create(&options, &none, &error), REDLOCK_EINVAL);
    assert_non_null(strstr(error.message, "nodes[0]"));
    options.node_count = 0;
    assert_int_equal(redlock_mt_create(&options, &none, &error), REDLOCK_EINVAL);
    assert_non_null(strstr(error.message, "node_count"));
    mt = create(f);
    assert_int_equal(redlock_mt_acquire(NULL, &request, &lock, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_acquire(mt, NULL, &lock, &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, "request must not be NULL");
    assert_int_equal(redlock_mt_acquire(mt, &request, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_begin_acquire(mt, &request, NULL, NULL, NULL, &error),
                     REDLOCK_EINVAL);
    request.on_lost = (redlock_cb *)(uintptr_t)1;
    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, "on_lost: set it with redlock_mt_on_lost");
    request.on_lost = NULL;
    request.key = "";
    assert_int_equal(redlock_mt_acquire(mt, &request, &lock, &error), REDLOCK_EINVAL);
    assert_non_null(strstr(error.message, "key"));
    assert_int_equal(redlock_mt_extend(NULL, 0, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_begin_extend(NULL, 0, NULL, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_release(NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_begin_release(NULL, NULL, NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_wait(NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_cancel(NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_on_lost(NULL, on_end, NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_validity_ms(NULL), 0);
    assert_int_equal(redlock_mt_state(NULL), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_fence(NULL), 0);
    assert_string_equal(redlock_mt_key(NULL, NULL), "");
    assert_int_equal(redlock_mt_inspect(mt, "", 0, on_view, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_inspect(mt, KEY, 0, NULL, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_begin_inspect(mt, "", 0, on_view, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_begin_inspect(mt, KEY, 0, NULL, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_run(mt, NULL, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_run(NULL, do_nothing, NULL, &error), REDLOCK_EINVAL);
    assert_int_equal(redlock_mt_close(NULL, NULL), REDLOCK_EINVAL);
    redlock_mt_free(NULL);
    end(mt);
}

/* ---- masters that fail ---- */

static void locks_survive_masters_that_are_killed_and_restarted(void **state) {
    struct fixture *f = *state;
    redlock_mt *mt = create(f);
    redlock_request request = waiting_request(KEY);

    for (size_t i = 0; i < 6; i++) {
        masters_kill(f->masters, i % 5);
        redlock_mt_lock *lock = take(mt, &request);
        assert_int_equal(redlock_mt_extend(lock, 0, NULL), REDLOCK_OK);
        masters_restart(f->masters, i % 5);
        assert_int_equal(redlock_mt_release(lock, NULL), REDLOCK_OK);
    }
    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    redlock_mt_free(mt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_thread_takes_a_lock_and_releases_it),
        ON_FIVE_MASTERS(a_denied_request_leaves_no_handle_and_says_why),
        ON_FIVE_MASTERS(an_extension_lengthens_the_validity),
        ON_FIVE_MASTERS(an_extension_of_a_lost_lock_fails),
        ON_FIVE_MASTERS(an_inspection_shows_the_holder),
        ON_FIVE_MASTERS(work_runs_on_the_client),
        ON_FIVE_MASTERS(callbacks_come_from_the_librarys_thread),
        ON_FIVE_MASTERS(a_failed_request_keeps_its_handle_until_it_is_released),
        ON_FIVE_MASTERS(a_refusal_of_the_client_is_reported),
        ON_FIVE_MASTERS(callbacks_may_make_calls),
        ON_FIVE_MASTERS(callbacks_may_not_wait),
        ON_FIVE_MASTERS(the_time_to_wait_counts_from_the_call),
        ON_FIVE_MASTERS(a_cancel_ends_an_acquisition),
        ON_FIVE_MASTERS(a_release_ends_an_acquisition),
        ON_FIVE_MASTERS(a_signal_handler_may_cancel),
        ON_FIVE_MASTERS(a_wait_goes_on_after_signals_and_is_no_cancellation_point),
        ON_FIVE_MASTERS(a_canceled_thread_goes_on),
        ON_FIVE_MASTERS(a_loss_is_reported_once),
        ON_FIVE_MASTERS(an_earlier_loss_is_reported_too),
        ON_FIVE_MASTERS(renewals_reach_the_validity),
        ON_FIVE_MASTERS(an_idle_client_wakes_its_thread_at_heartbeats_only),
        ON_FIVE_MASTERS(a_close_wakes_those_who_wait),
        ON_FIVE_MASTERS(a_release_waits_for_the_callback_of_a_loss),
        ON_FIVE_MASTERS(calls_after_a_close_are_refused),
        ON_FIVE_MASTERS(a_close_reports_releases_that_were_not_confirmed),
        ON_FIVE_MASTERS(a_child_can_do_nothing_with_its_parents_locks),
        ON_FIVE_MASTERS(several_keys_are_copied),
        ON_FIVE_MASTERS(permits_have_their_own_keys),
        ON_FIVE_MASTERS(readers_share_a_key),
        ON_FIVE_MASTERS(fences_grow_from_holder_to_holder),
        ON_FIVE_MASTERS(bad_arguments_are_refused),
        ON_FIVE_MASTERS(locks_survive_masters_that_are_killed_and_restarted),
    };

    return cmocka_run_group_tests_name("mt", tests, NULL, NULL);
}
