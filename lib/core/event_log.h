/* The log as a sink of events: one line for each, within limits (core/event_limits.h). */
#ifndef REDLOCK_CORE_EVENT_LOG_H
#define REDLOCK_CORE_EVENT_LOG_H

#include "base/log.h"
#include "core/event.h"
#include "core/event_limits.h"

#include <stdint.h>

struct event_log {
    struct event_sink sink; /* the first member */
    const struct log *log;
    uint64_t (*now)(void); /* the clock; read only for lines that are limited */
    struct event_limits limits;
};

/*
 * Initializes a sink that wants the events of the log's level and above. `log` must outlive it.
 * `now` returns nanoseconds since an arbitrary instant.
 */
void event_log_init(struct event_log *event_log, const struct log *log, uint64_t (*now)(void));

#endif
