#include "threads/tasks.h"

#include <stddef.h>

/* Stands in place of the latest task when none can be pushed any more. */
static struct task ended;

enum tasks_pushed tasks_push(struct tasks *tasks, struct task *task) {
    struct task *latest = atomic_load_explicit(&tasks->latest, memory_order_acquire);
    do {
        if (latest == &ended) {
            return TASKS_ENDED;
        }
        task->next = latest;
        /* If `latest` was taken and pushed again meanwhile, it is the right one to link to. */
    } while (!atomic_compare_exchange_weak_explicit(&tasks->latest, &latest, task,
                                                    memory_order_acq_rel, memory_order_acquire));
    return latest == NULL ? TASKS_FIRST : TASKS_FURTHER;
}

bool tasks_have_any(struct tasks *tasks) {
    return atomic_load_explicit(&tasks->latest, memory_order_relaxed) != NULL;
}

static struct task *in_order(struct task *latest) {
    struct task *first = NULL;
    while (latest != NULL) {
        struct task *earlier = latest->next;
        latest->next = first;
        first = latest;
        latest = earlier;
    }
    return first;
}

struct task *tasks_take(struct tasks *tasks) {
    return in_order(atomic_exchange_explicit(&tasks->latest, NULL, memory_order_acq_rel));
}

struct task *tasks_end(struct tasks *tasks) {
    return in_order(atomic_exchange_explicit(&tasks->latest, &ended, memory_order_acq_rel));
}
