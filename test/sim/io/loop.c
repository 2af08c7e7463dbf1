/*
 * Timers of a process, due by its own clock, and fired by its loop, which may be late. They take
 * the place of those of lib/io/loop.c, because here each timer has a place of its own in the order
 * of the loop's occurrences.
 */
#include "io/loop.h"

#include "process.h"

#include "base/nanos.h"

#include <stddef.h>
#include <stdlib.h>

struct process_timer {
    TAILQ_ENTRY(process_timer) link;
    const struct timer *timer;
    struct alarm alarm;
};

/* ---- loops ---- */

redlock_loop *loop_on_libevent(struct event_base *process, const redlock_allocator *allocator) {
    (void)allocator;
    return &process->loop;
}

void loop_hold(redlock_loop *loop) {
    (void)loop;
}

void loop_drop(redlock_loop *loop) {
    (void)loop;
}

bool loop_is_inherited(const redlock_loop *loop) {
    (void)loop;
    return false;
}

/* ---- timers ---- */

static struct process_timer *process_timer_of(const struct timer *timer) {
    struct process_timer *found;
    TAILQ_FOREACH(found, &process_of(timer->loop)->timers, link) {
        if (found->timer == timer) {
            return found;
        }
    }
    abort(); /* a bug of the library: the timer was not initialized, or has been finished */
}

static void arm(struct timer *timer) {
    alarm_set(&process_timer_of(timer)->alarm,
              tempo_true(&process_of(timer->loop)->clock, timer->at));
}

/* The clock may have been set since the timer was armed. */
static void fire(void *owner) {
    struct timer *timer = owner;
    const struct event_base *process = process_of(timer->loop);
    if (timer->at == NANOS_NEVER) {
        return;
    }
    if (tempo_read(&process->clock, process->world->now) < timer->at) {
        arm(timer);
        return;
    }
    timer->at = NANOS_NEVER;
    timer->on_time(timer->arg);
}

void timer_init(struct timer *timer, redlock_loop *loop, void (*on_time)(void *arg), void *arg) {
    struct event_base *process = process_of(loop);
    struct process_timer *own = calloc(1, sizeof(*own));
    if (own == NULL) {
        abort();
    }
    *timer = (struct timer){.on_time = on_time, .arg = arg, .at = NANOS_NEVER, .loop = loop};
    own->timer = timer;
    alarm_init(&own->alarm, process, fire, timer);
    TAILQ_INSERT_TAIL(&process->timers, own, link);
}

static void free_timer(struct event_base *process, struct process_timer *own) {
    alarm_clear(&own->alarm);
    TAILQ_REMOVE(&process->timers, own, link);
    free(own);
}

void timer_finish(struct timer *timer) {
    if (timer->loop != NULL) {
        free_timer(process_of(timer->loop), process_timer_of(timer));
        timer->loop = NULL;
    }
}

void timers_free(struct event_base *process) {
    while (!TAILQ_EMPTY(&process->timers)) {
        free_timer(process, TAILQ_FIRST(&process->timers));
    }
}

/* When the system refuses the wake, the loop looks at the timer in each of its iterations. */
void timer_set(struct timer *timer, uint64_t at) {
    struct event_base *process = process_of(timer->loop);
    process->work += WORK_OF_TIMER;
    timer->at = at;
    if (at == NANOS_NEVER) {
        return;
    }
    if (process_is_refused(process)) {
        process_notify(process, &process_timer_of(timer)->alarm.occurrence);
        return;
    }
    arm(timer);
}

void timer_clear(struct timer *timer) {
    timer->at = NANOS_NEVER;
}

void timer_soon(struct timer *timer) {
    timer->at = 0;
    process_notify(process_of(timer->loop), &process_timer_of(timer)->alarm.occurrence);
}
