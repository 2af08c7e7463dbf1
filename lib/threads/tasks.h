/*
 * The tasks of all threads, on their way to the library's thread: a stack without a lock. Any
 * thread, and a signal handler, may push; one thread takes all at once.
 */
#ifndef REDLOCK_THREADS_TASKS_H
#define REDLOCK_THREADS_TASKS_H

#include <redlock.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * A call that one thread makes and another carries out; embedded in what it needs. Once pushed, it
 * belongs to the thread that takes it.
 */
struct task {
    struct task *next;
    /* Carries the task out, on the library's thread. `client` NULL: the client has closed. */
    void (*begin)(struct task *task, redlock_client *client);
};

/* All zeros: empty. */
struct tasks {
    _Atomic(struct task *) latest;
};

/* Whether a task was pushed, and whether it is the first since tasks_take. */
enum tasks_pushed { TASKS_FIRST, TASKS_FURTHER, TASKS_ENDED };

/* Pushes a task, unless tasks_end has been called (TASKS_ENDED). */
enum tasks_pushed tasks_push(struct tasks *tasks, struct task *task);

/* Returns whether there is a task to take. */
bool tasks_have_any(struct tasks *tasks);

/* Takes all tasks, and returns them in the order in which they were pushed, linked by `next`. */
struct task *tasks_take(struct tasks *tasks);

/* Takes all tasks like tasks_take. No task can be pushed any more. */
struct task *tasks_end(struct tasks *tasks);

#endif
