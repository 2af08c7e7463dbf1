#include "io/loop.h"

#include "base/memory.h"
#include "base/nanos.h"
#include "io/clock.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#define NANOS_PER_SECOND UINT64_C(1000000000)

/* Maximum delay, 1 year: libevent adds the delay to its own clock, which must not overflow. */
#define LONGEST_DELAY (UINT64_C(31536000) * NANOS_PER_SECOND)

static bool arm(struct timer *timer) {
    uint64_t delay = nanos_min(nanos_sub(timer->at, clock_now()), LONGEST_DELAY);
    uint64_t micros = delay / 1000 + (delay % 1000 != 0); /* rounded up: never early */
    struct timeval tv = {.tv_sec = (time_t)(micros / 1000000),
                         .tv_usec = (suseconds_t)(micros % 1000000)};
    if (event_add(timer->event, &tv) != 0) {
        timer->at = timer->armed_at = NANOS_NEVER;
        return false;
    }
    timer->armed_at = timer->at;
    return true;
}

static void on_libevent(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    struct timer *timer = arg;
    timer->armed_at = NANOS_NEVER;
    if (timer->at == NANOS_NEVER) {
        return;
    }
    /* libevent counts from its last reading of the clock, so it may fire early. */
    if (clock_now() < timer->at && arm(timer)) {
        return;
    }
    timer->at = NANOS_NEVER;
    timer->on_time(timer->arg);
}

bool timer_init(struct timer *timer, const struct loop *loop, void (*on_time)(void *arg),
                void *arg) {
    *timer = (struct timer){
        .on_time = on_time, .arg = arg, .at = NANOS_NEVER, .armed_at = NANOS_NEVER, .loop = loop};
    timer->event = memory_alloc(loop->allocator, sizeof(struct event));
    if (timer->event == NULL) {
        return false;
    }
    event_assign(timer->event, loop->base, -1, 0, on_libevent, timer);
    return true;
}

void timer_finish(struct timer *timer) {
    if (timer->event != NULL) {
        event_del(timer->event);
        memory_free(timer->loop->allocator, timer->event);
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
    timer->at = 0;
    event_active(timer->event, EV_TIMEOUT, 0);
}
