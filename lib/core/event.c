#include "core/event.h"

#include <stddef.h>

void events_emit(const struct events *events, const struct event *event) {
    for (struct event_sink *sink = events->first; sink != NULL; sink = sink->next) {
        if (sink->wanted >> event->kind & 1) {
            sink->on_event(sink, event);
        }
    }
}
