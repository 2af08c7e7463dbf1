/*
 * The log of the library: the newest lines, to be searched and, when a test fails, shown. Checks
 * each line: it must be one line, short, and without a secret or a whole token.
 */
#ifndef REDLOCK_TEST_DIARY_H
#define REDLOCK_TEST_DIARY_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock.h"

#define DIARY_LINES 4096
#define DIARY_LINE_SIZE 320

struct diary {
    const char *secret; /* must be in no line; NULL: none */
    size_t count;       /* lines so far; the newest DIARY_LINES of them are kept */
    size_t levels[REDLOCK_LOG_ERROR + 1]; /* how many of each */
    char lines[DIARY_LINES][DIARY_LINE_SIZE];
};

/* A redlock_log_cb; its argument is the diary. */
void diary_write(redlock_log_level level, const char *line, void *arg);

/* Whether a line that is still kept holds `text`. */
bool diary_has(const struct diary *diary, const char *text);

/* How many of the kept lines hold `text`. */
size_t diary_count(const struct diary *diary, const char *text);

/* Prints the newest lines to stderr. */
void diary_show(const struct diary *diary);

/* Whether `text` holds 40 hex digits in a row: a whole token. */
bool holds_token(const char *text);

#endif
