/*
 * redlock_mt: what many threads do at the same time. With -Db_sanitize=thread these tests search
 * for data races, with -Db_sanitize=address for uses of freed memory and for leaks.
 */
#include "harness.h"

#include <redlock/mt.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16
#define KEYS 64
#define CLOSES 1000

static redlock_mt *create(struct fixture *f, size_t masters) {
    redlock_options options = patient_options(f, masters_uris(f->masters), masters);
    redlock_error error;
    redlock_mt *mt;

    options.log_level = REDLOCK_LOG_WARN;
    if (redlock_mt_create(&options, &mt, &error) != REDLOCK_OK) {
        fail_msg("%s", error.message);
    }
    return mt;
}

static void end(redlock_mt *mt) {
    assert_int_equal(redlock_mt_close(mt, NULL), REDLOCK_OK);
    redlock_mt_free(mt);
}

static void run_threads(size_t count, void *(*work)(void *arg), void *arg) {
    pthread_t threads[THREADS];

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, arg), 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* ---- exclusion ---- */

/* What the lock of one key protects. The counters are not atomic: only the holder touches them. */
struct resource {
    atomic_uint inside; /* threads that believe to hold the lock */
    unsigned taken;
    uint64_t fence; /* of the latest holder */
};

struct contest {
    redlock_mt *mt;
    struct resource resources[KEYS];
    size_t keys;
    size_t turns;        /* of each thread */
    bool has_callbacks;  /* acquire and release by callback instead of blocking */
    atomic_uint numbers; /* of threads */
    atomic_uint overlaps, old_fences, failures;
};

/* Works under the lock of a resource. */
static void use(struct contest *contest, struct resource *resource, redlock_mt_lock *lock) {
    uint64_t fence = redlock_mt_fence(lock);

    atomic_fetch_add(&contest->overlaps, atomic_fetch_add(&resource->inside, 1) != 0);
    atomic_fetch_add(&contest->old_fences, fence <= resource->fence);
    atomic_fetch_add(&contest->failures, redlock_mt_validity_ms(lock) == 0);
    resource->fence = fence;
    resource->taken++;
    atomic_fetch_sub(&resource->inside, 1);
}

static void take_turn(struct contest *contest, size_t key) {
    char name[32] = "";
    redlock_request request = request_for(name, LONG_TTL_MS);
    redlock_mt_lock *lock;
    redlock_error error;

    snprintf(name, sizeof(name), "key:%zu", key);
    request.wait_ms = REDLOCK_FOREVER;
    request.fenced = true;
    redlock_status status = redlock_mt_acquire(contest->mt, &request, &lock, &error);
    if (status == REDLOCK_OK) {
        use(contest, &contest->resources[key], lock);
        status = redlock_mt_release(lock, &error);
    }
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", redlock_status_name(status), error.message);
        atomic_fetch_add(&contest->failures, 1);
    }
}

static void *contend(void *arg) {
    struct contest *contest = arg;
    size_t number = atomic_fetch_add(&contest->numbers, 1);

    for (size_t i = 0; i < contest->turns; i++) {
        take_turn(contest, (number + i) % contest->keys);
    }
    return NULL;
}

static void exclude(struct fixture *f, size_t keys, size_t turns) {
    struct contest contest = {.keys = keys, .turns = cycles_here(turns)};
    unsigned taken = 0;

    contest.mt = create(f, 5);
    run_threads(THREADS, contend, &contest);
    for (size_t i = 0; i < keys; i++) {
        taken += contest.resources[i].taken;
    }
    assert_int_equal(taken, THREADS * contest.turns);
    assert_int_equal(atomic_load(&contest.overlaps), 0);
    assert_int_equal(atomic_load(&contest.old_fences), 0);
    assert_int_equal(atomic_load(&contest.failures), 0);
    end(contest.mt);
}

static void threads_exclude_each_other_from_one_key(void **state) {
    exclude(*state, 1, 200);
}

static void threads_exclude_each_other_from_64_keys(void **state) {
    exclude(*state, KEYS, 200);
}

/* ---- calls with one handle ---- */

/* One handle, on which several threads make calls, until one releases it. */
struct shared {
    redlock_mt *mt;
    size_t turns;
    pthread_barrier_t begun, ended;
    redlock_mt_lock *lock;
    atomic_uint failures;
};

static void expect(struct shared *shared, bool is_so) {
    atomic_fetch_add(&shared->failures, !is_so);
}

/* Makes the calls whose end another thread may bring about. */
static void *extend_and_look(void *arg) {
    struct shared *shared = arg;

    for (size_t i = 0; i < shared->turns; i++) {
        pthread_barrier_wait(&shared->begun);
        redlock_status status = redlock_mt_extend(shared->lock, 0, NULL);
        expect(shared, status == REDLOCK_OK || status == REDLOCK_EBUSY);
        expect(shared, redlock_mt_validity_ms(shared->lock) > 0);
        expect(shared, redlock_mt_state(shared->lock) == REDLOCK_OK);
        expect(shared, redlock_mt_wait(shared->lock, NULL) == REDLOCK_OK);
        expect(shared, redlock_mt_cancel(shared->lock) == REDLOCK_OK);
        expect(shared, strcmp(redlock_mt_key(shared->lock, NULL), "key") == 0);
        pthread_barrier_wait(&shared->ended);
    }
    return NULL;
}

static void threads_share_a_handle(void **state) {
    struct shared shared = {.mt = create(*state, 5), .turns = cycles_here(200)};
    redlock_request request = request_for("key", LONG_TTL_MS);
    pthread_t threads[4];

    assert_int_equal(pthread_barrier_init(&shared.begun, NULL, 5), 0);
    assert_int_equal(pthread_barrier_init(&shared.ended, NULL, 5), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, extend_and_look, &shared), 0);
    }
    for (size_t i = 0; i < shared.turns; i++) {
        assert_int_equal(redlock_mt_acquire(shared.mt, &request, &shared.lock, NULL), REDLOCK_OK);
        pthread_barrier_wait(&shared.begun);
        pthread_barrier_wait(&shared.ended);
        assert_int_equal(redlock_mt_release(shared.lock, NULL), REDLOCK_OK);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&shared.begun);
    pthread_barrier_destroy(&shared.ended);
    assert_int_equal(atomic_load(&shared.failures), 0);
    end(shared.mt);
}

/* ---- calls under way while the handle is released ---- */

static atomic_uint callbacks;

static void on_end(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    (void)lock;
    (void)status;
    (void)why;
    (void)arg;
    atomic_fetch_add(&callbacks, 1);
}

/* Begins a bit of everything, and releases the handle at any point of it. */
static void *release_early(void *arg) {
    struct shared *shared = arg;
    redlock_request request = request_for("key", LONG_TTL_MS);
    unsigned seed = (unsigned)(uintptr_t)&request;

    request.wait_ms = REDLOCK_FOREVER;
    for (size_t i = 0; i < shared->turns; i++) {
        redlock_mt_lock *lock;
        int draw = rand_r(&seed) / 16;
        expect(shared, redlock_mt_begin_acquire(shared->mt, &request, on_end, NULL, &lock, NULL) ==
                           REDLOCK_OK);
        if (draw & 1) {
            expect(shared, redlock_mt_on_lost(lock, on_end, NULL) == REDLOCK_OK);
        }
        if (draw & 2) {
            expect(shared, redlock_mt_cancel(lock) == REDLOCK_OK);
        }
        if (draw & 4) {
            redlock_mt_wait(lock, NULL);
        }
        if (draw & 8) {
            expect(shared, redlock_mt_begin_extend(lock, 0, on_end, NULL, NULL) == REDLOCK_OK);
            atomic_fetch_sub(&callbacks, 1);
        }
        if (draw & 16) {
            redlock_mt_release(lock, NULL);
            atomic_fetch_add(&callbacks, 1);
        } else {
            expect(shared, redlock_mt_begin_release(lock, on_end, NULL) == REDLOCK_OK);
        }
    }
    return NULL;
}

static void handles_are_released_at_any_instant(void **state) {
    struct shared shared = {.mt = create(*state, 5), .turns = cycles_here(500)};

    atomic_store(&callbacks, 0);
    run_threads(THREADS, release_early, &shared);
    end(shared.mt);
    assert_int_equal(atomic_load(&shared.failures), 0);
    assert_int_equal(atomic_load(&callbacks), 2 * THREADS * shared.turns);
}

/* ---- closing ---- */

struct crowd {
    redlock_mt *mt;
    atomic_uint begun, failures;
};

/* Takes and releases locks in all ways, until the client is closed. */
static void *work_until_closed(void *arg) {
    struct crowd *crowd = arg;
    redlock_request request = request_for("key", LONG_TTL_MS);
    size_t number = atomic_fetch_add(&crowd->begun, 1);
    redlock_status status = REDLOCK_OK;

    request.wait_ms = REDLOCK_FOREVER;
    while (status != REDLOCK_ECLOSED) {
        redlock_mt_lock *lock = NULL;
        if (number % 4 == 0) {
            status = redlock_mt_begin_acquire(crowd->mt, &request, on_end, NULL, &lock, NULL);
            status = lock != NULL ? redlock_mt_wait(lock, NULL) : status;
        } else {
            status = redlock_mt_acquire(crowd->mt, &request, &lock, NULL);
        }
        bool is_expected = status == REDLOCK_OK || status == REDLOCK_ECLOSED;
        if (lock != NULL && number % 4 == 1) {
            redlock_mt_begin_release(lock, on_end, NULL);
        } else if (lock != NULL) {
            redlock_mt_release(lock, NULL);
        }
        atomic_fetch_add(&crowd->failures, !is_expected);
    }
    return NULL;
}

static void spin(unsigned turns) {
    for (volatile unsigned i = 0; i < turns; i++) {
    }
}

/* At random instants of the work: while connections are made, requests wait, locks are held. */
static void clients_close_at_any_instant(void **state) {
    struct fixture *f = *state;
    size_t closes = cycles_here(CLOSES);
    unsigned seed = 1;

    for (size_t i = 0; i < closes; i++) {
        struct crowd crowd = {.mt = create(f, 3)};
        pthread_t threads[THREADS];
        size_t count = 1 + i % 8;
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, work_until_closed, &crowd), 0);
        }
        while (i % 2 == 0 && atomic_load(&crowd.begun) < count) {
            sched_yield();
        }
        spin((unsigned)rand_r(&seed) % 2000000);
        assert_int_equal(redlock_mt_close(crowd.mt, NULL), REDLOCK_OK);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(pthread_join(threads[k], NULL), 0);
        }
        assert_int_equal(atomic_load(&crowd.failures), 0);
        redlock_mt_free(crowd.mt);
        assert_int_equal(f->allocator.blocks, 0);
    }
}

static void *close_it(void *arg) {
    struct crowd *crowd = arg;
    uint64_t unreleased = 1;

    atomic_fetch_add(&crowd->failures, redlock_mt_close(crowd->mt, &unreleased) != REDLOCK_OK);
    atomic_fetch_add(&crowd->failures, unreleased != 0);
    return NULL;
}

static void threads_close_at_the_same_time(void **state) {
    struct crowd crowd = {.mt = create(*state, 5)};

    run_threads(8, close_it, &crowd);
    assert_int_equal(atomic_load(&crowd.failures), 0);
    redlock_mt_free(crowd.mt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(threads_exclude_each_other_from_one_key),
        ON_FIVE_MASTERS(threads_exclude_each_other_from_64_keys),
        ON_FIVE_MASTERS(threads_share_a_handle),
        ON_FIVE_MASTERS(handles_are_released_at_any_instant),
        ON_FIVE_MASTERS(clients_close_at_any_instant),
        ON_FIVE_MASTERS(threads_close_at_the_same_time),
    };

    return cmocka_run_group_tests_name("mt_race", tests, NULL, NULL);
}
