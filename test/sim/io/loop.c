/* Timers of a process, due by its own clock, and fired by its loop, which may be late. */
#include "io/loop.h"

#include "process.h"

#include "base/memory.h"
#include "base/nanos.h"

struct event {
    struct alarm alarm;
};

static void arm(struct timer *timer) {
    alarm_set(&timer->event->alarm, tempo_true(&timer->loop->base->clock, timer->at));
}

/* The clock may have been set since the timer was armed. */
static void fire(void *owner) {
    struct timer *timer = owner;
    const struct event_base *process = timer->loop->base;
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

bool timer_init(struct timer *timer, const struct loop *loop, void (*on_time)(void *arg),
                void *arg) {
    *timer = (struct timer){
        .on_time = on_time, .arg = arg, .at = NANOS_NEVER, .armed_at = NANOS_NEVER, .loop = loop};
    timer->event = memory_zalloc(loop->allocator, sizeof(*timer->event));
    if (timer->event == NULL) {
        return false;
    }
    alarm_init(&timer->event->alarm, loop->base, fire, timer);
    return true;
}

void timer_finish(struct timer *timer) {
    if (timer->event != NULL) {
        alarm_clear(&timer->event->alarm);
        memory_free(timer->loop->allocator, timer->event);
        timer->event = NULL;
    }
}

bool timer_set(struct timer *timer, uint64_t at) {
    struct event_base *process = timer->loop->base;
    process->work += WORK_OF_TIMER;
    timer->at = at;
    if (at == NANOS_NEVER) {
        return true;
    }
    if (process_is_refused(process)) {
        timer->at = NANOS_NEVER;
        return false;
    }
    arm(timer);
    return true;
}

void timer_clear(struct timer *timer) {
    timer->at = NANOS_NEVER;
}

void timer_soon(struct timer *timer) {
    timer->at = 0;
    process_notify(timer->loop->base, &timer->event->alarm.occurrence);
}
