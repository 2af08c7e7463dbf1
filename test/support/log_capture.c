#include "log_capture.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN_DIGITS 40
#define SHOWN_LINES 80

/*
 * Returns whether the 40 digits at `at` are a script's name, as in servers' errors: "script: <40
 * digits>".
 */
static bool is_script_name(const char *text, const char *at) {
    const char before[] = "script: ";
    size_t length = sizeof(before) - 1;

    return (size_t)(at - text) >= length && memcmp(at - length, before, length) == 0;
}

bool holds_token(const char *text) {
    size_t digits = 0;

    for (const char *at = text; *at != '\0'; at++) {
        digits = isxdigit((unsigned char)*at) ? digits + 1 : 0;
        if (digits == TOKEN_DIGITS && !is_script_name(text, at + 1 - TOKEN_DIGITS)) {
            return true;
        }
    }
    return false;
}

void log_capture_write(redlock_log_level level, const char *line, void *arg) {
    struct log_capture *capture = arg;

    snprintf(capture->lines[capture->count++ % LOG_CAPTURE_LINES], LOG_CAPTURE_LINE_SIZE, "%s",
             line);
    assert_int_in_range(level, REDLOCK_LOG_DEBUG, REDLOCK_LOG_ERROR);
    capture->levels[level]++;
    assert_null(strchr(line, '\n'));
    assert_true(strlen(line) < 1024);
    assert_false(holds_token(line));
    if (capture->secret != NULL) {
        assert_null(strstr(line, capture->secret));
    }
}

static size_t kept(const struct log_capture *capture) {
    return capture->count < LOG_CAPTURE_LINES ? capture->count : LOG_CAPTURE_LINES;
}

size_t log_capture_count(const struct log_capture *capture, const char *text) {
    size_t found = 0;

    for (size_t i = 0; i < kept(capture); i++) {
        found += strstr(capture->lines[i], text) != NULL;
    }
    return found;
}

bool log_capture_has(const struct log_capture *capture, const char *text) {
    return log_capture_count(capture, text) > 0;
}

void log_capture_show(const struct log_capture *capture) {
    size_t shown = kept(capture) < SHOWN_LINES ? kept(capture) : SHOWN_LINES;

    fprintf(stderr, "# the library's last %zu log lines, of %zu:\n", shown, capture->count);
    for (size_t i = capture->count - shown; i < capture->count; i++) {
        fprintf(stderr, "#   %s\n", capture->lines[i % LOG_CAPTURE_LINES]);
    }
}
