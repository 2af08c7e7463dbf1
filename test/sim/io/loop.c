/* The loop of a process, as a table for lib/io/loop.c: its wakes are by the process's own clock. */
#include "io/loop.h"

#include "process.h"

#include <stdlib.h>

struct process_loop {
    redlock_loop loop; /* first: the methods get a pointer to it */
    struct event_base *process;
    struct alarm due;
    struct occurrence soon;
    TAILQ_ENTRY(process_loop) link;
};

static struct process_loop *own(redlock_loop *loop) {
    return (struct process_loop *)loop;
}

struct event_base *process_of(redlock_loop *loop) {
    return own(loop)->process;
}

static void on_due(void *owner) {
    loop_fire(owner);
}

static void on_soon(void *owner) {
    loop_fire_soon(owner);
}

/* When the system refuses the wake, the timers are looked at soon, as on libevent. */
static void wake_at(redlock_loop *loop, uint64_t at) {
    struct event_base *process = process_of(loop);
    process->work += WORK_OF_TIMER;
    if (process_is_refused(process)) {
        process_notify(process, &own(loop)->due.occurrence);
        return;
    }
    alarm_set(&own(loop)->due, tempo_true(&process->clock, at));
}

static void wake_soon(redlock_loop *loop) {
    process_notify(process_of(loop), &own(loop)->soon);
}

static void free_loop(struct process_loop *self) {
    alarm_clear(&self->due);
    process_forget(self->process, &self->soon);
    TAILQ_REMOVE(&self->process->loops, self, link);
    free(self);
}

static void end(redlock_loop *loop) {
    free_loop(own(loop));
}

/* Descriptors are not watched: net.c here has none. */
static const struct loop_methods methods = {.wake_at = wake_at, .wake_soon = wake_soon, .end = end};

redlock_loop *loop_on_libevent(struct event_base *process, const redlock_allocator *allocator) {
    (void)allocator;
    struct process_loop *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        abort();
    }
    loop_init(&self->loop, &methods);
    self->process = process;
    alarm_init(&self->due, process, on_due, self);
    occurrence_init(&self->soon, on_soon, self, false);
    TAILQ_INSERT_TAIL(&process->loops, self, link);
    return &self->loop;
}

void loops_set_again(struct event_base *process) {
    struct process_loop *self;
    TAILQ_FOREACH(self, &process->loops, link) {
        if (self->due.due.position != 0) {
            uint64_t at = tempo_true(&process->clock, self->loop.wakes_at);
            alarm_set(&self->due, at > process->world->now ? at : process->world->now);
        }
    }
}

void loops_free(struct event_base *process) {
    while (!TAILQ_EMPTY(&process->loops)) {
        free_loop(TAILQ_FIRST(&process->loops));
    }
}
