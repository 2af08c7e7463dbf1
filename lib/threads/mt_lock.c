/*
 * The happy path: a thread makes a handle and posts its `acquire`. The worker begins it, with a
 * lock of the client (`inner`), and stores the outcome in the handle. Later the application's one
 * release is posted, and ends both.
 *
 * Calls that must not fail for want of memory (acquire, cancel, on_lost, release) are part of the
 * handle, since each is posted once; an extension is on the stack of the thread that waits for it,
 * or of malloc.
 *
 * The worker alone looks at `inner` and at the callbacks. Other threads read fields that are
 * atomic, or written before `settled` opens. The queue keeps the order of calls, so the release is
 * the last call of a handle, but for the cancels and extensions that other threads post at the same
 * time: these hold a reference of their own.
 */
#include "threads/mt_lock.h"

#include "base/error.h"
#include "base/nanos.h"
#include "core/options.h"
#include "io/clock.h"
#include "threads/copy.h"
#include "threads/listener.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Longest suffix of a permit's key, ":255", and a NUL. */
#define PERMIT_SUFFIX_SIZE 5

struct redlock_mt_lock {
    struct redlock_mt *mt;
    _Atomic unsigned references;
    _Atomic uint64_t valid_until; /* 0: not held */
    _Atomic uint64_t fence;
    atomic_int state; /* redlock_status; REDLOCK_EBUSY until the acquisition has ended */
    atomic_bool is_canceled, has_on_lost; /* the call was posted */

    /* The name of the key: `name` until a permit is acquired, then `permit`. */
    _Atomic(const char *) key;
    const char *name;
    char *permit; /* NULL: the lock is no permit */
    size_t name_length, permit_length;

    struct latch settled; /* opened when the acquisition has ended */
    redlock_error outcome;

    /* The worker's own. */
    redlock_lock *inner;              /* NULL: the client does not know it yet, or no more */
    LIST_ENTRY(redlock_mt_lock) link; /* in mt->locks while inner is not NULL */
    struct listener acquired, lost, released;
    struct listener watcher; /* the next `lost`, until begin_watch */
    bool was_acquired;
    bool is_released;   /* `released` is due */
    uint64_t called_at; /* the instant from which wait_ms counts */
    struct task acquire, cancel, watch, release;
    redlock_request request; /* with copies of its keys, in `room` */
    max_align_t room[];
};

/* Returns the handle that a task is part of. */
#define HANDLE_OF(task, field)                                                                     \
    ((redlock_mt_lock *)(void *)((char *)(task)-offsetof(redlock_mt_lock, field)))

/* ---- references ---- */

static void hold(redlock_mt_lock *lock) {
    atomic_fetch_add_explicit(&lock->references, 1, memory_order_relaxed);
}

static void drop(redlock_mt_lock *lock) {
    if (atomic_fetch_sub_explicit(&lock->references, 1, memory_order_acq_rel) == 1) {
        mt_drop(lock->mt);
        free(lock);
    }
}

static redlock_status state_of(const redlock_mt_lock *lock) {
    return (redlock_status)atomic_load_explicit(&lock->state, memory_order_acquire);
}

/* ---- on the worker: acquisitions and losses ---- */

static void know(redlock_mt_lock *lock) {
    LIST_INSERT_HEAD(&lock->mt->locks, lock, link);
}

/* Drops the library's reference, because the client no longer knows the lock. */
static void forget(redlock_mt_lock *lock) {
    LIST_REMOVE(lock, link);
    lock->inner = NULL;
    drop(lock);
}

static void set_end(void *arg, uint64_t end) {
    redlock_mt_lock *lock = arg;
    atomic_store_explicit(&lock->valid_until, end, memory_order_release);
}

/* Reports the end of the acquisition: first to the callback, then to threads that wait. */
static void settle(redlock_mt_lock *lock, redlock_status status, const char *why) {
    error_set(&lock->outcome, status, "%s", why);
    atomic_store_explicit(&lock->state, (int)status, memory_order_release);
    listener_report(&lock->acquired, lock, status, why);
    latch_open(&lock->settled);
}

/* Reports the release, and drops the application's reference. */
static void end_release(redlock_mt_lock *lock, redlock_status status, const char *why) {
    lock->is_released = false;
    listener_report(&lock->released, lock, status, why);
    drop(lock);
}

static void on_released(redlock_lock *inner, redlock_status status, void *arg) {
    redlock_mt_lock *lock = arg;
    end_release(lock, status, status == REDLOCK_OK ? "" : redlock_explain(inner));
    forget(lock);
}

static void copy_outcome(redlock_mt_lock *lock, const redlock_lock *inner) {
    atomic_store_explicit(&lock->fence, redlock_fence(inner), memory_order_release);
    if (lock->permit != NULL) {
        size_t length;
        const char *key = redlock_key(inner, &length);
        memcpy(lock->permit, key, length);
        lock->permit[length] = '\0';
        lock->permit_length = length;
        atomic_store_explicit(&lock->key, lock->permit, memory_order_release);
    }
}

static void on_acquired(redlock_lock *inner, redlock_status status, void *arg) {
    redlock_mt_lock *lock = arg;
    bool is_released = lock->is_released;
    if (status == REDLOCK_OK && is_released) { /* it was acquired before the cancel came */
        settle(lock, REDLOCK_ECANCELED, redlock_strerror(REDLOCK_ECANCELED));
        redlock_release(inner, on_released, lock);
        return;
    }
    if (status == REDLOCK_OK) {
        lock->was_acquired = true;
        copy_outcome(lock, inner);
        settle(lock, status, "");
        return;
    }
    const char *why = redlock_explain(inner);
    settle(lock, status, why);
    if (is_released) {
        end_release(lock, status, why);
    }
    forget(lock);
}

/* Reports a loss to the application's on_lost, unless there is none yet. */
static void report_loss(redlock_mt_lock *lock, redlock_status status) {
    const struct listener due = lock->lost;
    const char *why = lock->inner != NULL ? redlock_explain(lock->inner) : redlock_strerror(status);
    lock->lost = (struct listener){0};
    listener_report(&due, lock, status, why);
}

static void on_lost(redlock_lock *inner, redlock_status status, void *arg) {
    redlock_mt_lock *lock = arg;
    (void)inner;
    atomic_store_explicit(&lock->valid_until, 0, memory_order_release);
    atomic_store_explicit(&lock->state, (int)status, memory_order_release);
    report_loss(lock, status);
}

const struct mirror mt_lock_mirror = {.on_lost = on_lost, .set_end = set_end};

void mt_lock_forget_all(struct redlock_mt *mt) {
    redlock_mt_lock *lock;
    while ((lock = LIST_FIRST(&mt->locks)) != NULL) {
        forget(lock);
    }
}

/* ---- on the worker: the calls ---- */

/*
 * Takes the time since the call from that of the request, which the client counts from now on. A
 * request that comes here too late has the one try that each request has.
 */
static void count_from_call(redlock_mt_lock *lock) {
    uint64_t *wait_ms = &lock->request.wait_ms;
    if (*wait_ms != 0 && *wait_ms != REDLOCK_FOREVER) {
        uint64_t passed_ms = nanos_to_ms(nanos_sub(clock_now(), lock->called_at));
        *wait_ms = passed_ms < *wait_ms ? *wait_ms - passed_ms : 1;
    }
}

/* Begins the acquisition. A refusal is reported like any other end. */
static void begin_acquire(struct task *task, redlock_client *client) {
    redlock_mt_lock *lock = HANDLE_OF(task, acquire);
    redlock_status status = REDLOCK_ECLOSED;
    if (client != NULL) {
        count_from_call(lock);
        status = redlock_acquire(client, &lock->request, on_acquired, lock, &lock->inner);
    }
    if (status == REDLOCK_OK) {
        know(lock);
        return;
    }
    settle(lock, status,
           client != NULL ? redlock_client_error(client) : redlock_strerror(REDLOCK_ECLOSED));
    drop(lock); /* the library's reference */
}

static void begin_cancel(struct task *task, redlock_client *client) {
    redlock_mt_lock *lock = HANDLE_OF(task, cancel);
    (void)client;
    if (lock->inner != NULL) {
        redlock_cancel(lock->inner); /* refused, without effect, if the acquisition has ended */
    }
    drop(lock);
}

static void begin_watch(struct task *task, redlock_client *client) {
    redlock_mt_lock *lock = HANDLE_OF(task, watch);
    redlock_status state = state_of(lock);
    (void)client;
    lock->lost = lock->is_released ? (struct listener){0} : lock->watcher;
    if (lock->was_acquired && state != REDLOCK_OK) {
        report_loss(lock, state);
    }
    drop(lock);
}

static void begin_release(struct task *task, redlock_client *client) {
    redlock_mt_lock *lock = HANDLE_OF(task, release);
    (void)client;
    lock->is_released = true;
    lock->lost = (struct listener){0};
    atomic_store_explicit(&lock->valid_until, 0, memory_order_release);
    if (lock->inner == NULL) { /* a request that failed, or a client that has closed */
        redlock_status state = state_of(lock);
        end_release(lock, state,
                    state == lock->outcome.status ? lock->outcome.message
                                                  : redlock_strerror(state));
    } else if (state_of(lock) == REDLOCK_EBUSY) {
        redlock_cancel(lock->inner); /* on_acquired goes on */
    } else {
        redlock_status status = redlock_release(lock->inner, on_released, lock);
        assert(status == REDLOCK_OK); /* held or lost, and not released before */
        (void)status;
    }
}

/* An extension, on the stack of a thread that waits for it, or of malloc. */
struct extension {
    struct task task; /* first */
    redlock_mt_lock *lock;
    uint64_t ttl_ms;
    struct listener listener;
};

static void end_extension(struct extension *extension, redlock_status status, const char *why) {
    redlock_mt_lock *lock = extension->lock;
    bool is_ours = extension->listener.answer == NULL;
    listener_report(&extension->listener, lock, status, why);
    if (is_ours) { /* otherwise it has gone with the thread that waited */
        free(extension);
    }
    drop(lock);
}

static void on_extended(redlock_lock *inner, redlock_status status, void *arg) {
    /* Other failures have no votes to explain: the latest ones are those of the acquisition. */
    bool has_votes =
        status == REDLOCK_ELOST || status == REDLOCK_ENOQUORUM || status == REDLOCK_EEXPIRED;
    const char *why = status == REDLOCK_OK ? ""
                      : has_votes          ? redlock_explain(inner)
                                           : redlock_strerror(status);
    end_extension(arg, status, why);
}

static void begin_extend(struct task *task, redlock_client *client) {
    struct extension *extension = (struct extension *)(void *)task;
    redlock_lock *inner = extension->lock->inner;
    if (client == NULL) {
        end_extension(extension, REDLOCK_ECLOSED, redlock_strerror(REDLOCK_ECLOSED));
        return;
    }
    if (inner == NULL) { /* a request that failed */
        end_extension(extension, REDLOCK_EINVAL, "the lock was not acquired");
        return;
    }
    redlock_status status = redlock_extend(inner, extension->ttl_ms, on_extended, extension);
    if (status != REDLOCK_OK) {
        end_extension(extension, status, redlock_client_error(client));
    }
}

/* ---- on any thread: handles ---- */

/* Reads the application's request, with words for what is different here. */
static redlock_status read_request(const redlock_mt *mt, const redlock_request *given,
                                   redlock_request *request, redlock_error *error) {
    if (given == NULL) {
        return error_set(error, REDLOCK_EINVAL, "request must not be NULL");
    }
    redlock_status status = options_read_request(given, &mt->options, request, error);
    return status == REDLOCK_OK && request->on_lost != NULL
               ? error_set(error, REDLOCK_EINVAL, "on_lost: set it with redlock_mt_on_lost")
               : status;
}

/* Sets the names of the handle's keys; `room` is for the name of a permit. */
static void set_names(redlock_mt_lock *lock, char *room) {
    lock->name = options_key(&lock->request, 0, &lock->name_length);
    lock->permit = lock->request.permits != 0 ? room : NULL;
    atomic_init(&lock->key, lock->name);
}

/* Makes a handle with both references. Returns NULL when out of memory. */
static redlock_mt_lock *make(redlock_mt *mt, const redlock_request *request,
                             const struct listener *acquired) {
    size_t keys_size = copy_size(request);
    size_t permit_size = request->permits != 0 ? request->key_length + PERMIT_SUFFIX_SIZE : 0;
    redlock_mt_lock *lock = calloc(1, sizeof(*lock) + keys_size + permit_size);
    if (lock == NULL) {
        return NULL;
    }
    lock->mt = mt;
    atomic_fetch_add_explicit(&mt->users, 1, memory_order_relaxed);
    atomic_init(&lock->references, 2);
    atomic_init(&lock->state, REDLOCK_EBUSY);
    lock->acquired = *acquired;
    lock->acquire.begin = begin_acquire;
    lock->cancel.begin = begin_cancel;
    lock->watch.begin = begin_watch;
    lock->release.begin = begin_release;
    lock->called_at = clock_now();
    lock->request = *request;
    copy_keys(&lock->request, lock->room);
    lock->request.on_lost = on_lost;
    lock->request.on_lost_arg = lock;
    set_names(lock, (char *)lock->room + keys_size);
    return lock;
}

/* Makes a handle and posts its acquisition. *lock is set before the callback can run. */
static redlock_status begin(redlock_mt *mt, const redlock_request *given,
                            const struct listener *acquired, redlock_mt_lock **lock,
                            redlock_error *error) {
    redlock_request request;
    redlock_status status = read_request(mt, given, &request, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    redlock_mt_lock *made = make(mt, &request, acquired);
    if (made == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    *lock = made;
    if (!worker_post(&mt->worker, &made->acquire)) {
        *lock = NULL;
        drop(made);
        drop(made);
        return mt_refuse_closed(error);
    }
    return REDLOCK_OK;
}

redlock_status redlock_mt_begin_acquire(redlock_mt *mt, const redlock_request *request,
                                        redlock_mt_cb *on_acquired_cb, void *arg,
                                        redlock_mt_lock **lock, redlock_error *error) {
    redlock_mt_lock *unwanted;
    if (lock == NULL && on_acquired_cb == NULL) {
        return error_set(error, REDLOCK_EINVAL, "lock and on_acquired must not both be NULL");
    }
    redlock_mt_lock **handle = lock != NULL ? lock : &unwanted;
    *handle = NULL;
    redlock_status status = mt_check(mt, error);
    const struct listener acquired = {.call = on_acquired_cb, .arg = arg};
    return status == REDLOCK_OK ? begin(mt, request, &acquired, handle, error) : status;
}

/* Waits for the end of the acquisition, and returns its status. */
static redlock_status await(redlock_mt_lock *lock, redlock_error *error) {
    latch_wait(&lock->settled);
    if (lock->outcome.status != REDLOCK_OK && error != NULL) {
        *error = lock->outcome;
    }
    return lock->outcome.status;
}

redlock_status redlock_mt_acquire(redlock_mt *mt, const redlock_request *request,
                                  redlock_mt_lock **lock, redlock_error *error) {
    redlock_mt_lock *made;
    if (lock == NULL) {
        return error_set(error, REDLOCK_EINVAL, "lock: must not be NULL");
    }
    *lock = NULL;
    redlock_status status = mt_check_blocking(mt, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = begin(mt, request, &(struct listener){0}, &made, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    status = await(made, error);
    if (status == REDLOCK_OK) {
        *lock = made;
    } else {
        drop(made);
    }
    return status;
}

/* ---- on any thread: calls on a handle ---- */

static redlock_status check(const redlock_mt_lock *lock, redlock_error *error) {
    return lock != NULL ? mt_check(lock->mt, error)
                        : error_set(error, REDLOCK_EINVAL, "lock: must not be NULL");
}

static redlock_status check_blocking(const redlock_mt_lock *lock, redlock_error *error) {
    return lock != NULL ? mt_check_blocking(lock->mt, error) : check(lock, error);
}

/* Posts a call that holds a reference until it has ended; returns whether it was posted. */
static bool post(redlock_mt_lock *lock, struct task *task) {
    hold(lock);
    bool is_posted = worker_post(&lock->mt->worker, task);
    if (!is_posted) {
        drop(lock);
    }
    return is_posted;
}

redlock_status redlock_mt_wait(redlock_mt_lock *lock, redlock_error *error) {
    redlock_status status = check_blocking(lock, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    hold(lock); /* another thread may release it meanwhile */
    status = await(lock, error);
    drop(lock);
    return status;
}

redlock_status redlock_mt_cancel(redlock_mt_lock *lock) {
    redlock_status status = check(lock, NULL);
    if (status != REDLOCK_OK || atomic_exchange(&lock->is_canceled, true)) {
        return status;
    }
    return post(lock, &lock->cancel) ? REDLOCK_OK : REDLOCK_ECLOSED;
}

redlock_status redlock_mt_on_lost(redlock_mt_lock *lock, redlock_mt_cb *on_lost_cb, void *arg) {
    redlock_status status = check(lock, NULL);
    if (status != REDLOCK_OK || on_lost_cb == NULL) {
        return REDLOCK_EINVAL;
    }
    if (atomic_exchange(&lock->has_on_lost, true)) {
        return REDLOCK_EBUSY;
    }
    lock->watcher = (struct listener){.call = on_lost_cb, .arg = arg};
    return post(lock, &lock->watch) ? REDLOCK_OK : REDLOCK_ECLOSED;
}

redlock_status redlock_mt_begin_extend(redlock_mt_lock *lock, uint64_t ttl_ms,
                                       redlock_mt_cb *on_extended_cb, void *arg,
                                       redlock_error *error) {
    redlock_status status = check(lock, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    struct extension *extension = calloc(1, sizeof(*extension));
    if (extension == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    *extension = (struct extension){.task = {.begin = begin_extend},
                                    .lock = lock,
                                    .ttl_ms = ttl_ms,
                                    .listener = {.call = on_extended_cb, .arg = arg}};
    if (!post(lock, &extension->task)) {
        free(extension);
        return mt_refuse_closed(error);
    }
    return REDLOCK_OK;
}

redlock_status redlock_mt_extend(redlock_mt_lock *lock, uint64_t ttl_ms, redlock_error *error) {
    redlock_status status = check_blocking(lock, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    struct answer answer = {.error = error};
    struct extension extension = {.task = {.begin = begin_extend},
                                  .lock = lock,
                                  .ttl_ms = ttl_ms,
                                  .listener = {.answer = &answer}};
    return post(lock, &extension.task) ? answer_await(&answer) : mt_refuse_closed(error);
}

/* Posts the release; returns whether the worker will end it. */
static bool release(redlock_mt_lock *lock, const struct listener *released) {
    lock->released = *released;
    return worker_post(&lock->mt->worker, &lock->release);
}

redlock_status redlock_mt_begin_release(redlock_mt_lock *lock, redlock_mt_cb *on_released_cb,
                                        void *arg) {
    redlock_status status = check(lock, NULL);
    const struct listener released = {.call = on_released_cb, .arg = arg};
    if (status == REDLOCK_OK && !release(lock, &released)) {
        drop(lock); /* consumed: the library has dropped its own reference */
        return REDLOCK_ECLOSED;
    }
    return status;
}

redlock_status redlock_mt_release(redlock_mt_lock *lock, redlock_error *error) {
    redlock_status status = check_blocking(lock, error);
    if (status != REDLOCK_OK) {
        return status;
    }
    struct answer answer = {.error = error};
    const struct listener released = {.answer = &answer};
    if (release(lock, &released)) {
        return answer_await(&answer);
    }
    latch_wait(&lock->mt->closed); /* the last tasks may still report the loss of this lock */
    drop(lock);                    /* consumed, as above */
    return mt_refuse_closed(error);
}

/* ---- on any thread: reading ---- */

uint64_t redlock_mt_validity_ms(const redlock_mt_lock *lock) {
    if (lock == NULL || mt_is_inherited(lock->mt) ||
        atomic_load_explicit(&lock->mt->is_closing, memory_order_acquire)) {
        return 0;
    }
    uint64_t end = atomic_load_explicit(&lock->valid_until, memory_order_acquire);
    return nanos_to_ms(nanos_sub(end, clock_now()));
}

redlock_status redlock_mt_state(const redlock_mt_lock *lock) {
    return lock != NULL && !mt_is_inherited(lock->mt) ? state_of(lock) : REDLOCK_EINVAL;
}

uint64_t redlock_mt_fence(const redlock_mt_lock *lock) {
    return lock != NULL ? atomic_load_explicit(&lock->fence, memory_order_acquire) : 0;
}

const char *redlock_mt_key(const redlock_mt_lock *lock, size_t *length) {
    const char *key = lock != NULL ? atomic_load_explicit(&lock->key, memory_order_acquire) : "";
    if (length != NULL) {
        *length = lock == NULL ? 0 : key == lock->permit ? lock->permit_length : lock->name_length;
    }
    return key;
}
