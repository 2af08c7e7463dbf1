#include "base/log.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

/* Lines are truncated to this length, without the number of lines left out. */
#define LINE_MAX_LENGTH 512
#define LEFT_OUT_MAX_LENGTH 64

void log_line(const struct log *log, redlock_log_level level, uint64_t left_out, const char *format,
              va_list arguments) {
    char raw[LINE_MAX_LENGTH];
    char line[LINE_MAX_LENGTH + LEFT_OUT_MAX_LENGTH];
    int length = vsnprintf(raw, sizeof(raw), format, arguments);
    struct text text;
    text_init(&text, line, LINE_MAX_LENGTH);
    text_append_foreign(&text, raw, length < 0 ? 0 : sizeof(raw));
    if (left_out > 0) {
        snprintf(line + text.length, LEFT_OUT_MAX_LENGTH, " (%" PRIu64 " such line%s left out)",
                 left_out, left_out == 1 ? " was" : "s were");
    }
    log->write(level, line, log->arg);
}
