/* An event as the application's trace hook gets it: its fields as texts and numbers. */
#ifndef REDLOCK_CORE_EVENT_VIEW_H
#define REDLOCK_CORE_EVENT_VIEW_H

#include "core/event.h"

#include <redlock.h>

/* A redlock_event and the fields that it points to. */
struct event_view {
    redlock_event event;
    redlock_event_field fields[EVENT_FIELDS_MAX];
};

/* Fills in the view of an event; the caller sets its client and its time. */
void event_view_init(struct event_view *view, const struct event *event);

#endif
