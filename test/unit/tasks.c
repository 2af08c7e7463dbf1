/* Tests the queue of tasks between threads: its order, its end, and that it loses none. */
#include "unit.h"

#include "threads/tasks.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define THREADS 16
#define TASKS 20000 /* of each thread */

static void tasks_come_in_the_order_of_their_pushes(void **state) {
    struct tasks tasks = {NULL};
    struct task posted[3];
    (void)state;

    assert_false(tasks_have_any(&tasks));
    assert_null(tasks_take(&tasks));
    assert_int_equal(tasks_push(&tasks, &posted[0]), TASKS_FIRST);
    assert_int_equal(tasks_push(&tasks, &posted[1]), TASKS_FURTHER);
    assert_int_equal(tasks_push(&tasks, &posted[2]), TASKS_FURTHER);
    assert_true(tasks_have_any(&tasks));
    struct task *task = tasks_take(&tasks);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(task, &posted[i]);
        task = task->next;
    }
    assert_null(task);
    assert_int_equal(tasks_push(&tasks, &posted[0]), TASKS_FIRST);
}

static void nothing_is_pushed_after_the_end(void **state) {
    struct tasks tasks = {NULL};
    struct task posted[2];
    (void)state;

    assert_int_equal(tasks_push(&tasks, &posted[0]), TASKS_FIRST);
    struct task *task = tasks_end(&tasks);
    assert_ptr_equal(task, &posted[0]);
    assert_null(task->next);
    assert_int_equal(tasks_push(&tasks, &posted[1]), TASKS_ENDED);
}

/* A task that says which thread pushed it, and how many that one had pushed before. */
struct numbered {
    struct task task; /* first */
    size_t thread, number;
};

struct traffic {
    struct tasks tasks;
    struct numbered *posted;
    atomic_size_t threads;
    atomic_size_t firsts; /* pushes that would have woken the thread that takes */
};

static void *push_all(void *arg) {
    struct traffic *traffic = arg;
    size_t thread = atomic_fetch_add(&traffic->threads, 1);

    for (size_t i = 0; i < TASKS; i++) {
        struct numbered *numbered = &traffic->posted[thread * TASKS + i];
        numbered->thread = thread;
        numbered->number = i;
        if (tasks_push(&traffic->tasks, &numbered->task) == TASKS_FIRST) {
            atomic_fetch_add(&traffic->firsts, 1);
        }
    }
    return NULL;
}

/* Each taking of tasks was announced by exactly one push: so no wake is lost. */
static void no_task_of_many_threads_is_lost(void **state) {
    struct traffic traffic = {.posted = calloc(THREADS * TASKS, sizeof(struct numbered))};
    pthread_t threads[THREADS];
    size_t next[THREADS] = {0}, taken = 0, takings = 0;
    (void)state;

    assert_non_null(traffic.posted);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, push_all, &traffic), 0);
    }
    while (taken < THREADS * TASKS) {
        struct task *task = tasks_take(&traffic.tasks);
        takings += task != NULL;
        for (; task != NULL; task = task->next, taken++) {
            const struct numbered *numbered = (const struct numbered *)(void *)task;
            assert_int_equal(numbered->number, next[numbered->thread]++);
        }
        sched_yield();
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&traffic.firsts), takings);
    free(traffic.posted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_come_in_the_order_of_their_pushes),
        cmocka_unit_test(nothing_is_pushed_after_the_end),
        cmocka_unit_test(no_task_of_many_threads_is_lost),
    };

    return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
