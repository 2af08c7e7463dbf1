/*
 * A bounded string that is built piece by piece in memory of the caller's. What does not fit is
 * cut, and the cut is shown by "..." at the end.
 */
#ifndef REDLOCK_BASE_TEXT_H
#define REDLOCK_BASE_TEXT_H

#include <stddef.h>

struct text {
    char *start;
    size_t length;
    size_t capacity; /* with the NUL */
};

/* An empty text in `start`, which has room for `capacity` bytes, at least 4. */
void text_init(struct text *text, char *start, size_t capacity);

__attribute__((format(printf, 2, 3))) void text_append(struct text *text, const char *format, ...);

/*
 * Appends bytes that came from outside: at most `length` of them, up to the first NUL, with
 * everything that is not printable ASCII replaced by '?', so that a log line stays one line.
 */
void text_append_foreign(struct text *text, const char *bytes, size_t length);

#endif
