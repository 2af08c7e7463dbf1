#include "exposition.h"

#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MAX 128
#define SERIES_MAX 2048
#define NAME_MAX_LENGTH 100

void exposition_add(const char *text, size_t length, void *arg) {
    struct exposition *exposition = arg;

    assert_non_null(memchr(text, '\n', length));
    exposition->bytes = realloc(exposition->bytes, exposition->length + length + 1);
    assert_non_null(exposition->bytes);
    memcpy(exposition->bytes + exposition->length, text, length);
    exposition->length += length;
    exposition->bytes[exposition->length] = '\0';
}

void exposition_finish(void *arg) {
    struct exposition *exposition = arg;

    free(exposition->bytes);
    *exposition = (struct exposition){0};
}

/* ---- the state of a check ---- */

struct checker {
    char names[METRICS_MAX][NAME_MAX_LENGTH]; /* names of all metrics, the latest last */
    size_t count;
    char type[16];  /* type of the latest metric; "": not seen yet */
    size_t samples; /* number of samples of the latest metric */

    const char *series[SERIES_MAX]; /* the starts of all series; a space ends each */
    size_t series_count;

    /* The histogram being read: its buckets so far. */
    double bound, cumulated;
    bool is_open, is_whole;
};

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static bool is_histogram(const struct checker *checker) {
    return strcmp(checker->type, "histogram") == 0;
}

/* ---- heads ---- */

/* Asserts the naming conventions: one application prefix, base units, the type at the end. */
static void check_name(const char *name, const char *type) {
    static const char *const wrong[] = {"_ms", "_us", "_ns", "milliseconds", "_kb", "__"};

    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    assert_int_equal(strncmp(name, "redlock_", 8), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_null(strstr(name, wrong[i]));
    }
    assert_int_equal(ends_in(name, "_total"), strcmp(type, "counter") == 0);
    assert_int_equal(ends_in(name, "_seconds"), strcmp(type, "histogram") == 0);
    assert_false(ends_in(name, "_count") || ends_in(name, "_sum") || ends_in(name, "_bucket"));
}

static void begin_metric(struct checker *checker, const char *line) {
    char *name;
    char help[300];

    assert_true(checker->count < METRICS_MAX);
    assert_true(checker->count == 0 || checker->samples > 0);
    name = checker->names[checker->count];
    assert_int_equal(sscanf(line, "# HELP %99s %299[^\n]", name, help), 2);
    assert_true(ends_in(help, "."));
    for (size_t i = 0; i < checker->count; i++) {
        assert_string_not_equal(checker->names[i], name);
    }
    checker->count++;
    checker->type[0] = '\0';
    checker->samples = 0;
}

static void record_type(struct checker *checker, const char *line) {
    const char *const name = checker->names[checker->count - 1];
    char typed[NAME_MAX_LENGTH];

    assert_true(checker->count > 0 && checker->type[0] == '\0');
    assert_int_equal(sscanf(line, "# TYPE %99s %15s", typed, checker->type), 2);
    assert_string_equal(typed, name);
    assert_true(strcmp(checker->type, "counter") == 0 || strcmp(checker->type, "gauge") == 0 ||
                is_histogram(checker));
    check_name(name, checker->type);
}

/* ---- samples ---- */

/* Returns the end of the labels, after '}'; asserts that they are well-formed. */
static const char *end_of_labels(const char *text) {
    assert_int_equal(*text, '{');
    do {
        text++;
        size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
        assert_true(length > 0);
        text += length;
        assert_int_equal(strncmp(text, "=\"", 2), 0);
        for (text += 2; *text != '"'; text++) {
            text += *text == '\\';
            assert_true(*text != '\0' && *text != '\n');
        }
        text++;
    } while (*text == ',');
    assert_int_equal(*text, '}');
    return text + 1;
}

static void record_series(struct checker *checker, const char *line, size_t length) {
    assert_true(checker->series_count < SERIES_MAX);
    for (size_t i = 0; i < checker->series_count; i++) {
        assert_false(strncmp(checker->series[i], line, length) == 0);
    }
    checker->series[checker->series_count++] = line;
}

static void check_bucket(struct checker *checker, const char *line, double value) {
    double bound = strtod(strstr(line, "le=\"") + 4, NULL);

    assert_false(checker->is_whole);
    assert_true(!checker->is_open || (bound > checker->bound && value >= checker->cumulated));
    checker->is_open = true;
    checker->is_whole = isinf(bound);
    checker->bound = bound;
    checker->cumulated = value;
}

/* Checks a line of a histogram: buckets, sum, count, in this order. */
static void check_part(struct checker *checker, const char *part, const char *line, double value) {
    if (strcmp(part, "_bucket") == 0) {
        check_bucket(checker, line, value);
        return;
    }
    assert_true(checker->is_whole);
    if (strcmp(part, "_count") == 0) {
        assert_true(value == checker->cumulated);
        checker->is_open = checker->is_whole = false;
    } else {
        assert_string_equal(part, "_sum");
    }
}

static void check_sample(struct checker *checker, const char *line) {
    char name[NAME_MAX_LENGTH];
    size_t length = strspn(line, "abcdefghijklmnopqrstuvwxyz_");
    const char *end = line + length;
    char *rest;

    assert_true(checker->count > 0 && checker->type[0] != '\0' && length < sizeof(name));
    const char *metric = checker->names[checker->count - 1];
    snprintf(name, sizeof(name), "%.*s", (int)length, line);
    end = *end == '{' ? end_of_labels(end) : end;
    assert_int_equal(*end, ' ');
    record_series(checker, line, (size_t)(end - line) + 1);
    double value = strtod(end + 1, &rest);
    assert_true(rest > end + 1 && *rest == '\n' && value >= 0);
    assert_int_equal(strncmp(name, metric, strlen(metric)), 0);
    if (is_histogram(checker)) {
        check_part(checker, name + strlen(metric), line, value);
    } else {
        assert_string_equal(name, metric);
    }
    checker->samples++;
}

void exposition_check(const struct exposition *text) {
    static struct checker checker;
    const char *line = text->bytes;

    checker = (struct checker){0};
    assert_true(text->length > 0 && text->bytes[text->length - 1] == '\n');
    assert_int_equal(strlen(text->bytes), text->length);
    for (; *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            begin_metric(&checker, line);
        } else if (*line == '#') {
            record_type(&checker, line);
        } else {
            check_sample(&checker, line);
        }
    }
    assert_true(checker.samples > 0 && !checker.is_open);
}

double exposition_value(const struct exposition *text, const char *series) {
    size_t length = strlen(series);
    const char *found = NULL;

    for (const char *line = text->bytes; *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, series, length) == 0 && line[length] == ' ') {
            assert_null(found);
            found = line;
        }
    }
    if (found == NULL) {
        fail_msg("there is no series %s", series);
    }
    return strtod(found + length + 1, NULL);
}
