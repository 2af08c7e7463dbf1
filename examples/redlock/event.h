/* An event of `redlock run --json`: one line on stderr. */
#ifndef EVENT_H
#define EVENT_H

#include "json.h"

#include <stddef.h>

struct event {
    struct json json; /* writer of the event's values */
    char *line;
    size_t length;
};

/* Begins an event with its name and the time. */
void event_begin(struct event *event, const char *name);

/* Writes the event in one piece, so that the lines of several processes do not mix. */
void event_end(struct event *event);

#endif
