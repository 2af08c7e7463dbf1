/*
 * A trace hook that writes one line of text for each event:
 *
 *     TIME REQUEST EVENT NODE FIELD=VALUE ...
 *
 * TIME is in nanoseconds; REQUEST is 0 and NODE "-" for an event without them. Bytes that would end
 * a word, or need escapes in JSON, are written as %XX. timeline.awk turns the lines into a
 * timeline.
 */
#ifndef REDLOCK_EXAMPLES_TRACE_LINES_H
#define REDLOCK_EXAMPLES_TRACE_LINES_H

#include <redlock.h>

/* Writes an event to the FILE `arg`: for redlock_options.trace and trace_arg. */
void trace_line(const redlock_event *event, void *arg);

#endif
