#include "node/trace.h"

#include "core/event_view.h"
#include "io/clock.h"

static void trace_event(struct event_sink *sink, const struct event *event) {
    const struct trace *trace = (const struct trace *)sink;
    struct event_view view;
    event_view_init(&view, event);
    view.event.client = trace->client;
    view.event.time_ns = clock_now();
    trace->take(&view.event, trace->arg);
}

void trace_init(struct trace *trace, const redlock_client *client, redlock_trace_cb *take,
                void *arg) {
    *trace = (struct trace){.client = client, .take = take, .arg = arg};
    trace->sink.on_event = trace_event;
    trace->sink.wanted = take != NULL ? (UINT32_C(1) << EVENT_COUNT) - 1 : 0;
}
