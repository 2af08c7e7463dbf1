/* The log as a consumer of events: a line for each. */
#ifndef REDLOCK_CORE_EVENT_LOG_H
#define REDLOCK_CORE_EVENT_LOG_H

#include "base/log.h"
#include "core/event.h"

struct event_log {
    struct event_sink sink; /* the first member */
    const struct log *log;
};

/* Makes a sink that wants the events of the log's level and above. `log` must live as long. */
void event_log_init(struct event_log *event_log, const struct log *log);

#endif
