/*
 * The log of the library: the newest lines, to be searched and, when a test fails, shown. Each
 * entry is checked to be one short line, without a secret or a whole token.
 */
#ifndef REDLOCK_TEST_DIARY_H
#define REDLOCK_TEST_DIARY_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define DIARY_LINES 4096
#define DIARY_LINE_SIZE 320

struct diary {
    const char *secret; /* a text that no line may contain; NULL: none */
    size_t count;       /* number of lines so far; the newest DIARY_LINES are kept */
    size_t levels[REDLOCK_LOG_ERROR + 1]; /* number of lines of each level */
    char lines[DIARY_LINES][DIARY_LINE_SIZE];
};

/* Enters a line. A redlock_log_cb, whose argument is the diary. */
void diary_write(redlock_log_level level, const char *line, void *arg);

/* Returns whether a kept line contains `text`. */
bool diary_has(const struct diary *diary, const char *text);

/* Returns the number of kept lines that contain `text`. */
size_t diary_count(const struct diary *diary, const char *text);

/* Prints the newest lines to stderr. */
void diary_show(const struct diary *diary);

/* Returns whether `text` contains 40 hex digits in a row: a whole token. */
bool holds_token(const char *text);

#endif
