#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

/* Lines are cut at this length. */
#define LINE_MAX_LENGTH 512

void log_line(const struct log *log, redlock_log_level level, const char *format, ...) {
    if (!log_wants(log, level)) {
        return;
    }
    char raw[LINE_MAX_LENGTH];
    char line[LINE_MAX_LENGTH];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(raw, sizeof(raw), format, arguments);
    va_end(arguments);
    struct text text;
    text_init(&text, line, sizeof(line));
    text_append_foreign(&text, raw, length < 0 ? 0 : sizeof(raw));
    log->write(level, line, log->arg);
}
