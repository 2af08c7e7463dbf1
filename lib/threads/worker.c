/*
 * The happy path: the thread runs the loop, which waits. A thread that posts the first task wakes
 * it, by its eventfd; those that post further ones know that it is awake, or about to be. After
 * each run of the loop the tasks are taken and begun, and the next run sends what they have led to.
 *
 * The end: a task closes the client. When that is done, the thread ends the queue, and begins those
 * that are left without a client. Threads may still be between the post of a task and the wake, so
 * the loop is freed when its last user has left, as counted in loop_users.
 */
#include "threads/worker.h"

#include "base/error.h"
#include "io/fork.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

static _Thread_local const struct worker *current; /* whose thread this is; NULL: of none */
static _Thread_local unsigned generation;          /* of the process in which it is */

bool worker_is_current(void) {
    /* In a child that was forked on it, this is the child's own thread. */
    return current != NULL && generation == fork_generation();
}

/* ---- the users of the loop ---- */

/* Adds a user, unless the last one has left. */
static bool enter_loop(struct worker *worker) {
    unsigned users = atomic_load_explicit(&worker->loop_users, memory_order_relaxed);
    while (users != 0 &&
           !atomic_compare_exchange_weak_explicit(&worker->loop_users, &users, users + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
    }
    return users != 0;
}

/* Opens a latch rather than free the loop: a signal handler may be the last user. */
static void leave_loop(struct worker *worker) {
    if (atomic_fetch_sub_explicit(&worker->loop_users, 1, memory_order_acq_rel) == 1) {
        latch_open(&worker->unused);
    }
}

static void free_loop(struct worker *worker) {
    leave_loop(worker);
    latch_wait(&worker->unused);
    redlock_loop_free(worker->loop);
}

bool worker_post(struct worker *worker, struct task *task) {
    if (!enter_loop(worker)) {
        return false;
    }
    enum tasks_pushed pushed = tasks_push(&worker->tasks, task); /* the task may be gone now */
    if (pushed == TASKS_FIRST && current != worker) { /* its thread looks before it waits */
        redlock_loop_wake(worker->loop);
    }
    leave_loop(worker);
    return pushed != TASKS_ENDED;
}

/* ---- the thread ---- */

/* What the thread that starts a worker passes to it, and gets back. */
struct start {
    struct worker *worker;
    const redlock_options *options;
    const struct mirror *mirror;
    redlock_error *error;
    redlock_status status;
    struct latch done;
};

static void on_drained(uint64_t unreleased, void *arg) {
    struct worker *worker = arg;
    worker->unreleased = unreleased;
    worker->client = NULL;
}

static void begin_close(struct task *task, redlock_client *client) {
    struct worker *worker =
        (struct worker *)(void *)((char *)task - offsetof(struct worker, close));
    redlock_client_drain(client, on_drained, worker);
}

static void begin_all(struct worker *worker, struct task *task) {
    while (task != NULL) {
        struct task *next = task->next;
        task->begin(task, worker->client);
        task = next;
    }
}

static void *work(void *arg) {
    struct start *start = arg;
    struct worker *worker = start->worker;
    current = worker;
    generation = fork_generation();
    pthread_setname_np(pthread_self(), "redlock");
    /* Here, so that the hooks of the options are called on this thread only. */
    redlock_status status =
        redlock_client_create_on(worker->loop, start->options, &worker->client, start->error);
    if (status == REDLOCK_OK) {
        client_mirror(worker->client, start->mirror);
    }
    start->status = status;
    latch_open(&start->done); /* `start` may be gone now */
    if (status != REDLOCK_OK) {
        return NULL;
    }
    while (worker->client != NULL) {
        /* Tasks that callbacks have posted here woke nobody. */
        redlock_loop_run(worker->loop, tasks_have_any(&worker->tasks) ? 0 : -1);
        if (worker->client != NULL) {
            begin_all(worker, tasks_take(&worker->tasks));
        }
    }
    worker->on_closed(worker->arg);
    begin_all(worker, tasks_end(&worker->tasks));
    return NULL;
}

static int create_thread(struct worker *worker, struct start *start) {
    sigset_t all, before;
    sigfillset(&all);
    /* Signals are for the application's threads: one that this thread took could delay renewals. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&worker->thread, NULL, work, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static redlock_status refuse_loop(int problem, redlock_error *error) {
    if (problem == ENOMEM) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    /* strerror names ENOSPC after a full disk. */
    return error_set(error, REDLOCK_ESYSTEM, "there is no event loop: %s",
                     problem == ENOSPC ? "no epoll watch is left (fs.epoll.max_user_watches)"
                                       : strerror(problem));
}

redlock_status worker_start(struct worker *worker, const redlock_options *options,
                            const struct mirror *mirror, void (*on_closed)(void *arg), void *arg,
                            redlock_error *error) {
    struct start start = {.worker = worker, .options = options, .mirror = mirror, .error = error};
    worker->loop = redlock_loop_pollable();
    if (worker->loop == NULL) {
        return refuse_loop(errno, error);
    }
    atomic_store(&worker->loop_users, 1);
    worker->close.begin = begin_close;
    worker->on_closed = on_closed;
    worker->arg = arg;
    int problem = create_thread(worker, &start);
    if (problem != 0) {
        free_loop(worker);
        return error_set(error, REDLOCK_ESYSTEM, "there is no thread: %s", strerror(problem));
    }
    latch_wait(&start.done);
    if (start.status != REDLOCK_OK) {
        pthread_join(worker->thread, NULL);
        free_loop(worker);
    }
    return start.status;
}

void worker_end(struct worker *worker) {
    int before;
    /* pthread_join and close() are cancellation points: a thread that ended there would leak. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    worker_post(worker, &worker->close);
    pthread_join(worker->thread, NULL);
    free_loop(worker);
    pthread_setcancelstate(before, NULL);
}
