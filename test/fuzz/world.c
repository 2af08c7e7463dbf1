#include "world.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "check.h"
#include "io/clock.h"
#include "io/loop.h"

#include <sys/queue.h>

/* The event of a timer, instead of libevent's. */
struct alarm {
    TAILQ_ENTRY(alarm) link;
    struct timer *timer;
    bool is_due;
};

static TAILQ_HEAD(, alarm) alarms = TAILQ_HEAD_INITIALIZER(alarms);
static uint64_t now;
static unsigned refuse_after, refuse_count;

void world_begin(void) {
    now = 1000 * NANOS_PER_MS;
    refuse_after = refuse_count = 0;
    random_begin();
    world_has_random(true);
}

void world_end(void) {
    CHECK(TAILQ_EMPTY(&alarms));
    names_end();
}

void world_refuse_timers(unsigned after, unsigned count) {
    refuse_after = after;
    refuse_count = count;
}

/* ---- the clock ---- */

uint64_t clock_now(void) {
    return now;
}

uint64_t clock_glance(void) {
    return clock_now();
}

uint64_t clock_wall_us(void) {
    return clock_now() / 1000;
}

int64_t clock_wall_ahead(void) {
    return 0;
}

/* Lets time pass, but never beyond the range of the clock. */
void world_pass(uint64_t nanos) {
    now = nanos_min(nanos_add(now, nanos), UINT64_MAX - 1000 * NANOS_PER_MS);
}

/* ---- timers ---- */

static bool refused(void) {
    if (refuse_count == 0) {
        return false;
    }
    if (refuse_after > 0) {
        refuse_after--;
        return false;
    }
    refuse_count--;
    return true;
}

static bool arm(struct timer *timer) {
    if (refused()) {
        timer->at = timer->armed_at = NANOS_NEVER;
        return false;
    }
    timer->armed_at = timer->at;
    return true;
}

bool timer_init(struct timer *timer, const struct loop *loop, void (*on_time)(void *arg),
                void *arg) {
    *timer = (struct timer){
        .on_time = on_time, .arg = arg, .at = NANOS_NEVER, .armed_at = NANOS_NEVER, .loop = loop};
    struct alarm *alarm = memory_zalloc(loop->allocator, sizeof(*alarm));
    if (alarm == NULL) {
        return false;
    }
    alarm->timer = timer;
    TAILQ_INSERT_TAIL(&alarms, alarm, link);
    timer->event = (void *)alarm;
    return true;
}

void timer_finish(struct timer *timer) {
    if (timer->event != NULL) {
        struct alarm *alarm = (void *)timer->event;
        TAILQ_REMOVE(&alarms, alarm, link);
        memory_free(timer->loop->allocator, alarm);
        timer->event = NULL;
    }
}

bool timer_set(struct timer *timer, uint64_t at) {
    timer->at = at;
    return timer->armed_at <= at || arm(timer);
}

void timer_clear(struct timer *timer) {
    timer->at = NANOS_NEVER;
}

void timer_soon(struct timer *timer) {
    timer->at = timer->armed_at = 0;
}

static void fire(struct timer *timer) {
    timer->armed_at = NANOS_NEVER;
    if (timer->at == NANOS_NEVER || (now < timer->at && arm(timer))) {
        return;
    }
    timer->at = NANOS_NEVER;
    timer->on_time(timer->arg);
}

static struct alarm *next_due(void) {
    struct alarm *alarm;
    TAILQ_FOREACH(alarm, &alarms, link) {
        if (alarm->is_due) {
            return alarm;
        }
    }
    return NULL;
}

/* ---- the loop ---- */

void world_turn(struct event_base *base) {
    struct alarm *alarm;
    event_base_loop(base, EVLOOP_NONBLOCK);
    names_turn();
    TAILQ_FOREACH(alarm, &alarms, link) {
        alarm->is_due = alarm->timer->armed_at <= now;
    }
    while ((alarm = next_due()) != NULL) { /* timers armed meanwhile wait */
        alarm->is_due = false;
        fire(alarm->timer);
    }
}
