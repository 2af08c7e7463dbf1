/*
 * A bounded string, built piece by piece in the caller's memory. A string that does not fit is
 * truncated, and ends in "...".
 */
#ifndef REDLOCK_BASE_TEXT_H
#define REDLOCK_BASE_TEXT_H

#include <stddef.h>

struct text {
    char *start;
    size_t length;
    size_t capacity; /* including the NUL */
};

/* Initializes an empty text in `start`, which has room for `capacity` bytes, at least 4. */
void text_init(struct text *text, char *start, size_t capacity);

__attribute__((format(printf, 2, 3))) void text_append(struct text *text, const char *format, ...);

/*
 * Appends untrusted text, up to the first NUL, at most `length` bytes. Replaces bytes that are not
 * printable ASCII by '?', so that a log line stays one line.
 */
void text_append_foreign(struct text *text, const char *bytes, size_t length);

#endif
