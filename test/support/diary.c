#include "diary.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN_DIGITS 40
#define SHOWN_LINES 80

/* Returns whether 40 digits are a script's name, as in servers' errors: "script: <40 digits>". */
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

void diary_write(redlock_log_level level, const char *line, void *arg) {
    struct diary *diary = arg;

    snprintf(diary->lines[diary->count++ % DIARY_LINES], DIARY_LINE_SIZE, "%s", line);
    assert_int_in_range(level, REDLOCK_LOG_DEBUG, REDLOCK_LOG_ERROR);
    diary->levels[level]++;
    assert_null(strchr(line, '\n'));
    assert_true(strlen(line) < 1024);
    assert_false(holds_token(line));
    if (diary->secret != NULL) {
        assert_null(strstr(line, diary->secret));
    }
}

static size_t kept(const struct diary *diary) {
    return diary->count < DIARY_LINES ? diary->count : DIARY_LINES;
}

size_t diary_count(const struct diary *diary, const char *text) {
    size_t found = 0;

    for (size_t i = 0; i < kept(diary); i++) {
        found += strstr(diary->lines[i], text) != NULL;
    }
    return found;
}

bool diary_has(const struct diary *diary, const char *text) {
    return diary_count(diary, text) > 0;
}

void diary_show(const struct diary *diary) {
    size_t shown = kept(diary) < SHOWN_LINES ? kept(diary) : SHOWN_LINES;

    fprintf(stderr, "# the library's last %zu log lines, of %zu:\n", shown, diary->count);
    for (size_t i = diary->count - shown; i < diary->count; i++) {
        fprintf(stderr, "#   %s\n", diary->lines[i % DIARY_LINES]);
    }
}
