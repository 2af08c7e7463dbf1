/*
 * Tests the library's thread, with a loop that only waits to be woken, and a client that closes at
 * once: a wake that is missing is a test that hangs.
 */
#include "threads/worker.h"

#include "io/fork.h"
#include "unit.h"

#include <semaphore.h>
#include <stdlib.h>

/* ---- a loop without timers ---- */

/* In place of the library's struct. */
struct test_loop {
    sem_t wakes;
};

static sem_t *wakes_of(redlock_loop *loop) {
    return &((struct test_loop *)(void *)loop)->wakes;
}

redlock_loop *redlock_loop_pollable(void) {
    struct test_loop *loop = malloc(sizeof(*loop));
    assert_non_null(loop);
    assert_int_equal(sem_init(&loop->wakes, 0, 0), 0);
    return (redlock_loop *)(void *)loop;
}

void redlock_loop_free(redlock_loop *loop) {
    sem_destroy(wakes_of(loop));
    free(loop);
}

int redlock_loop_run(redlock_loop *loop, int timeout_ms) {
    while (timeout_ms != 0 && sem_wait(wakes_of(loop)) != 0) {
    }
    return 0;
}

void redlock_loop_wake(redlock_loop *loop) {
    sem_post(wakes_of(loop));
}

/* ---- a process ---- */

static unsigned process; /* the number of forks before it */

unsigned fork_generation(void) {
    return process;
}

/* ---- a client ---- */

redlock_status redlock_client_create_on(redlock_loop *loop, const redlock_options *options,
                                        redlock_client **client, redlock_error *error) {
    (void)options;
    (void)error;
    *client = (redlock_client *)(void *)loop; /* any address */
    return REDLOCK_OK;
}

void client_mirror(redlock_client *client, const struct mirror *mirror) {
    (void)client;
    (void)mirror;
}

void redlock_client_drain(redlock_client *client, redlock_drained_cb *on_drained, void *arg) {
    (void)client;
    on_drained(0, arg);
}

/* ---- tests ---- */

static void do_nothing(void *arg) {
    (void)arg;
}

static void start(struct worker *worker) {
    const redlock_options options = REDLOCK_OPTIONS_INIT;
    *worker = (struct worker){.client = NULL};
    assert_int_equal(worker_start(worker, &options, NULL, do_nothing, NULL, NULL), REDLOCK_OK);
}

/* A task that posts another one, to a worker. */
struct post {
    struct task task; /* first */
    struct worker *worker;
    struct post *next;
    pthread_t thread; /* on which it was begun */
    bool was_current, was_current_in_child;
    struct latch begun;
};

static void begin(struct task *task, redlock_client *client) {
    struct post *post = (struct post *)(void *)task;
    (void)client;
    post->thread = pthread_self();
    post->was_current = worker_is_current();
    process++;
    post->was_current_in_child = worker_is_current();
    process--;
    if (post->next != NULL) {
        worker_post(post->next->worker, &post->next->task);
    }
    latch_open(&post->begun);
}

static void test_a_task_wakes_the_thread(void **state) {
    (void)state;
    struct worker worker;
    struct post post = {.task = {.begin = begin}, .worker = &worker};
    start(&worker);
    assert_true(worker_post(&worker, &post.task));
    latch_wait(&post.begun);
    assert_true(pthread_equal(post.thread, worker.thread));
    assert_true(post.was_current);
    assert_false(post.was_current_in_child);
    assert_false(worker_is_current());
    worker_end(&worker);
    assert_false(worker_post(&worker, &post.task));
}

/* The thread looks for tasks before it waits, so its own wake nobody. */
static void test_a_task_may_post_to_its_own_thread(void **state) {
    (void)state;
    struct worker worker;
    struct post second = {.task = {.begin = begin}, .worker = &worker};
    struct post first = {.task = {.begin = begin}, .worker = &worker, .next = &second};
    start(&worker);
    assert_true(worker_post(&worker, &first.task));
    latch_wait(&second.begun);
    assert_true(pthread_equal(second.thread, worker.thread));
    worker_end(&worker);
}

static void test_a_task_may_post_to_another_thread(void **state) {
    (void)state;
    struct worker workers[2];
    struct post second = {.task = {.begin = begin}, .worker = &workers[1]};
    struct post first = {.task = {.begin = begin}, .worker = &workers[0], .next = &second};
    start(&workers[0]);
    start(&workers[1]);
    assert_true(worker_post(&workers[0], &first.task));
    latch_wait(&second.begun);
    assert_true(pthread_equal(second.thread, workers[1].thread));
    worker_end(&workers[0]);
    worker_end(&workers[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_wakes_the_thread),
        cmocka_unit_test(test_a_task_may_post_to_its_own_thread),
        cmocka_unit_test(test_a_task_may_post_to_another_thread),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
