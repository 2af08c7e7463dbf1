#include "io/loop.h"

#include "base/nanos.h"
#include "io/clock.h"
#include "io/fork.h"

/* ---- loops ---- */

void loop_init(redlock_loop *loop, const struct loop_methods *methods) {
    *loop = (redlock_loop){
        .methods = methods, .wakes_at = NANOS_NEVER, .users = 1, .generation = fork_generation()};
    TAILQ_INIT(&loop->waiting);
    TAILQ_INIT(&loop->soon);
    TAILQ_INIT(&loop->firing);
}

void loop_hold(redlock_loop *loop) {
    loop->users++;
}

void loop_drop(redlock_loop *loop) {
    if (--loop->users == 0) {
        loop->methods->end(loop);
    }
}

bool loop_is_inherited(const redlock_loop *loop) {
    return loop->generation != fork_generation();
}

/* Requests the wakes that the timers need and that were not requested before. */
static void request_wakes(redlock_loop *loop) {
    const struct timer *first = TAILQ_FIRST(&loop->waiting);
    if (loop->is_firing) {
        return; /* done once, when all have fired */
    }
    if (!TAILQ_EMPTY(&loop->soon) && !loop->wakes_soon) {
        loop->wakes_soon = true;
        loop->methods->wake_soon(loop);
    }
    if (first != NULL && first->filed_at < loop->wakes_at) {
        loop->wakes_at = first->filed_at;
        loop->methods->wake_at(loop, first->filed_at);
    }
}

/* ---- timers ---- */

static struct timers *list_of(const struct timer *timer) {
    redlock_loop *loop = timer->loop;
    return timer->list == TIMER_WAITING ? &loop->waiting
           : timer->list == TIMER_SOON  ? &loop->soon
                                        : &loop->firing;
}

static void unlist(struct timer *timer) {
    if (timer->list != TIMER_IDLE) {
        TAILQ_REMOVE(list_of(timer), timer, link);
        timer->list = TIMER_IDLE;
    }
}

/* Files a timer by its instant, searching from the end: most are later than those before them. */
static void file(struct timer *timer) {
    struct timers *waiting = &timer->loop->waiting;
    struct timer *before = TAILQ_LAST(waiting, timers);
    timer->list = TIMER_WAITING;
    timer->filed_at = timer->at;
    while (before != NULL && before->filed_at > timer->at) {
        before = TAILQ_PREV(before, timers, link);
    }
    if (before != NULL) {
        TAILQ_INSERT_AFTER(waiting, before, timer, link);
    } else {
        TAILQ_INSERT_HEAD(waiting, timer, link);
    }
}

void timer_init(struct timer *timer, redlock_loop *loop, void (*on_time)(void *arg), void *arg) {
    *timer = (struct timer){.on_time = on_time, .arg = arg, .at = NANOS_NEVER, .loop = loop};
}

void timer_finish(struct timer *timer) {
    unlist(timer);
    timer->at = NANOS_NEVER;
}

void timer_set(struct timer *timer, uint64_t at) {
    timer->at = at;
    /* It is looked at early enough where it is, and is filed again then. */
    if (timer->list == TIMER_SOON || (timer->list == TIMER_WAITING && timer->filed_at <= at)) {
        return;
    }
    unlist(timer);
    if (at != NANOS_NEVER) {
        file(timer);
        request_wakes(timer->loop);
    }
}

void timer_clear(struct timer *timer) {
    timer->at = NANOS_NEVER;
}

void timer_soon(struct timer *timer) {
    timer->at = 0;
    if (timer->list != TIMER_SOON) {
        unlist(timer);
        timer->list = TIMER_SOON;
        TAILQ_INSERT_TAIL(&timer->loop->soon, timer, link);
        request_wakes(timer->loop);
    }
}

/* Lists a timer to be fired if it is due by `now`; otherwise files it again, or forgets it. */
static void take(struct timer *timer, uint64_t now) {
    unlist(timer);
    if (timer->at <= now) {
        timer->list = TIMER_FIRING;
        TAILQ_INSERT_TAIL(&timer->loop->firing, timer, link);
    } else if (timer->at != NANOS_NEVER) {
        file(timer);
    }
}

/* Fires the listed timers. Timers that they set, even for now, wait for the loop's next wake. */
static void fire_listed(redlock_loop *loop) {
    struct timer *timer;
    while ((timer = TAILQ_FIRST(&loop->firing)) != NULL) {
        unlist(timer);
        if (timer->at != NANOS_NEVER) { /* not cleared by one that fired before */
            timer->at = NANOS_NEVER;
            timer->on_time(timer->arg);
        }
    }
}

/* Fires timers that `list_due` lists. Ends the loop if a callback of the application frees it. */
static void fire(redlock_loop *loop, void (*list_due)(redlock_loop *loop)) {
    if (loop->is_firing) {
        return; /* the application runs its loop inside a callback */
    }
    loop_hold(loop);
    loop->is_firing = true;
    list_due(loop);
    fire_listed(loop);
    loop->is_firing = false;
    request_wakes(loop);
    loop_drop(loop);
}

static void list_waiting(redlock_loop *loop) {
    uint64_t now = clock_now();
    struct timer *timer;
    while ((timer = TAILQ_FIRST(&loop->waiting)) != NULL && timer->filed_at <= now) {
        take(timer, now);
    }
}

/* Lists the timers of timer_soon; one may have been set to another instant, or cleared, since. */
static void list_soon(redlock_loop *loop) {
    struct timer *timer;
    while ((timer = TAILQ_FIRST(&loop->soon)) != NULL) {
        take(timer, timer->at == 0 ? 0 : clock_now());
    }
}

void loop_fire(redlock_loop *loop) {
    loop->wakes_at = NANOS_NEVER;
    fire(loop, list_waiting);
}

void loop_fire_soon(redlock_loop *loop) {
    loop->wakes_soon = false;
    fire(loop, list_soon);
}

/* ---- descriptors ---- */

void fd_watch_init(struct fd_watch *watch, redlock_loop *loop, int fd,
                   void (*on_ready)(void *arg, unsigned events), void *arg) {
    *watch = (struct fd_watch){.on_ready = on_ready, .arg = arg, .loop = loop, .fd = fd};
}

bool fd_watch_set(struct fd_watch *watch, unsigned events) {
    if (watch->events == events) {
        return true;
    }
    if (!watch->loop->methods->watch(watch, events)) {
        return false;
    }
    watch->events = events;
    return true;
}

void fd_watch_finish(struct fd_watch *watch) {
    if (watch->events != 0) {
        watch->loop->methods->watch(watch, 0);
        watch->events = 0;
    }
}

void loop_ready(struct fd_watch *watch, unsigned events) {
    events &= watch->events;
    if (events != 0) {
        watch->on_ready(watch->arg, events);
    }
}
