/*
 * The log of the library: its newest lines, which tests search, and print when they fail. Each
 * entry is checked to be one short line without a secret or a whole token.
 */
#ifndef REDLOCK_TEST_LOG_CAPTURE_H
#define REDLOCK_TEST_LOG_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define LOG_CAPTURE_LINES 4096
#define LOG_CAPTURE_LINE_SIZE 320

struct log_capture {
    const char *secret; /* a text that no line may contain; NULL: none */
    size_t count;       /* number of lines so far; the newest LOG_CAPTURE_LINES are kept */
    size_t levels[REDLOCK_LOG_ERROR + 1]; /* number of lines of each level */
    char lines[LOG_CAPTURE_LINES][LOG_CAPTURE_LINE_SIZE];
};

/* Adds a line. A redlock_log_cb whose argument is the log capture. */
void log_capture_write(redlock_log_level level, const char *line, void *arg);

/* Returns whether a kept line contains `text`. */
bool log_capture_has(const struct log_capture *capture, const char *text);

/* Returns the number of kept lines that contain `text`. */
size_t log_capture_count(const struct log_capture *capture, const char *text);

/* Prints the newest lines to stderr. */
void log_capture_show(const struct log_capture *capture);

/* Returns whether `text` contains 40 hex digits in a row: a whole token. */
bool holds_token(const char *text);

#endif
