/* The application's log hook. */
#ifndef REDLOCK_LOG_H
#define REDLOCK_LOG_H

#include <redlock.h>
#include <stddef.h>

struct log {
    redlock_log_cb *write; /* NULL: nobody listens */
    void *arg;
    redlock_log_level level;
};

static inline bool log_wants(const struct log *log, redlock_log_level level) {
    return log->write != NULL && level >= log->level;
}

__attribute__((format(printf, 3, 4))) void log_line(const struct log *log, redlock_log_level level,
                                                    const char *format, ...);

#endif
