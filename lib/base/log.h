/* The application's log hook. */
#ifndef REDLOCK_LOG_H
#define REDLOCK_LOG_H

#include <redlock.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct log {
    redlock_log_cb *write; /* NULL: no log */
    void *arg;
    redlock_log_level level;
};

static inline bool log_wants(const struct log *log, redlock_log_level level) {
    return log->write != NULL && level >= log->level;
}

/*
 * Writes a line; log_wants must be true for the level. `left_out` is the number of similar lines
 * that were suppressed before this one, which the end of the line reports.
 */
__attribute__((format(printf, 4, 0))) void log_line(const struct log *log, redlock_log_level level,
                                                    uint64_t left_out, const char *format,
                                                    va_list arguments);

#endif
