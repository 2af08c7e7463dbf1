/*
 * Answers commands as a Redis master would that grants everything: each command has its answer in a
 * table, and nothing is stored. Enough for plain locks of libredlock, and for both floors.
 */
#ifndef BENCH_NULL_ANSWER_H
#define BENCH_NULL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

/* A buffer that grows. */
struct null_bytes {
    char *data;
    size_t length;
    size_t capacity;
};

/* Makes room for `more` bytes behind the data. Returns false when out of memory. */
bool null_bytes_reserve(struct null_bytes *bytes, size_t more);

/* Removes bytes at the beginning. */
void null_bytes_drop(struct null_bytes *bytes, size_t length);

/*
 * Takes all whole commands out of `input`, and appends their answers to `output`. `identity` tells
 * one master from another. Returns false when the input is not RESP, or memory is short.
 */
bool null_answer(struct null_bytes *input, struct null_bytes *output, int identity);

#endif
