/*
 * A page in the text format of Prometheus, checked strictly against the grammar of the format and
 * against the conventions of `promtool check metrics`.
 */
#ifndef REDLOCK_TEST_EXPOSITION_H
#define REDLOCK_TEST_EXPOSITION_H

#include <stddef.h>

struct exposition {
    char *bytes; /* followed by a NUL; NULL: empty */
    size_t length;
};

/* Appends a piece of text: a redlock_write_cb. `arg` is the struct exposition. */
void exposition_add(const char *text, size_t length, void *arg);

/* Frees the text. `arg` is the struct exposition. */
void exposition_finish(void *arg);

/*
 * Asserts that each line is well-formed; that each metric has one help and one type line before its
 * series, which are contiguous and distinct; that names and units follow the conventions; that the
 * buckets of histograms ascend, and end with +Inf and the count.
 */
void exposition_check(const struct exposition *text);

/*
 * Returns the value of a series, which is named with its labels; asserts that it occurs exactly
 * once.
 */
double exposition_value(const struct exposition *text, const char *series);

#endif
