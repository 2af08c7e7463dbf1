/*
 * A single timer walks through the phases. The CPU time is read before the masters are queried at
 * the end of a span, and after that at its start, so that neither queries nor stops count in a
 * span.
 */
#include "outage.h"

#include "clock.h"
#include "loop_lag.h"
#include "masters.h"
#include "memory.h"
#include "tally.h"

#include <event2/event.h>
#include <stdlib.h>

enum phase { WAITING, BEFORE, STOPPED, OVER };

struct outage {
    struct outage_settings settings;
    enum phase phase;
    struct event *timer;
    struct clock_mark mark; /* start of the current span */
    uint64_t calls;         /* number of script calls at the start of the span */
    struct outage_result result;
};

static uint64_t calls_of_survivor(const struct outage *outage) {
    struct masters *masters = outage->settings.masters;

    return tally_read(masters, masters_count(masters) - 1).script_calls;
}

static void begin_span(struct outage *outage, enum phase phase) {
    outage->phase = phase;
    outage->calls = calls_of_survivor(outage);
    outage->mark = clock_mark();
    clock_arm(outage->timer, outage->settings.span_s);
}

static void end_span(const struct outage *outage, double *cores, double *calls_per_s) {
    struct clock_mark now = clock_mark();

    *cores = clock_cores(outage->mark, now);
    *calls_per_s =
        (double)(calls_of_survivor(outage) - outage->calls) / clock_seconds(outage->mark, now);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct outage *outage = arg;
    struct outage_result *result = &outage->result;

    (void)fd;
    (void)what;
    switch (outage->phase) {
    case WAITING:
        begin_span(outage, BEFORE);
        break;
    case BEFORE:
        end_span(outage, &result->cores_before, &result->script_calls_before);
        masters_stop_range(outage->settings.masters, 0, outage->settings.stop);
        begin_span(outage, STOPPED);
        break;
    case STOPPED:
        end_span(outage, &result->cores_stopped, &result->script_calls_stopped);
        outage->phase = OVER;
        break;
    case OVER:
        break;
    }
    loop_lag_exclude(outage->settings.lag);
}

struct outage *outage_create(struct event_base *base, const struct outage_settings *settings) {
    struct outage *outage = memory_take(1, sizeof(*outage));

    outage->settings = *settings;
    outage->timer = clock_timer(base, on_timer, outage);
    return outage;
}

void outage_destroy(struct outage *outage) {
    if (outage != NULL) {
        event_free(outage->timer);
        free(outage);
    }
}

void outage_start(struct outage *outage) {
    clock_arm(outage->timer, outage->settings.after_s - outage->settings.span_s);
}

bool outage_result(const struct outage *outage, struct outage_result *result) {
    *result = outage->result;
    return outage->phase == OVER;
}
