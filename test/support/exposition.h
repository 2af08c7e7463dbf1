/*
 * A page in the text format of Prometheus, checked strictly: by the grammar of the format, and by
 * the conventions that `promtool check metrics` asks for.
 */
#ifndef REDLOCK_TEST_EXPOSITION_H
#define REDLOCK_TEST_EXPOSITION_H

#include <stddef.h>

struct exposition {
    char *bytes; /* with a NUL behind the text; NULL: empty */
    size_t length;
};

/* Adds a piece of text: a redlock_write_cb. `arg` is the struct exposition. */
void exposition_add(const char *text, size_t length, void *arg);

/* Frees the text; the argument is the struct exposition. */
void exposition_finish(void *arg);

/*
 * Asserts that each line is well-formed; that each metric has a help and a type, once, before its
 * series, which follow each other, and are all different; that names and units are as the
 * conventions ask; that the buckets of histograms ascend, and end with +Inf and the count.
 */
void exposition_check(const struct exposition *text);

/* Returns the value of a series, written with its labels; asserts that there is just one. */
double exposition_value(const struct exposition *text, const char *series);

#endif
