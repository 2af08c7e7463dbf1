/*
 * Answers commands like a Redis master that grants everything: a table has the answer to each
 * command, and nothing is stored. This is enough for plain locks of libredlock, and for both
 * floors.
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

/* Makes room for `more` bytes after the data. Returns false when out of memory. */
bool null_bytes_reserve(struct null_bytes *bytes, size_t more);

/* Removes bytes at the beginning. */
void null_bytes_drop(struct null_bytes *bytes, size_t length);

/*
 * Removes all complete commands from `input`, and appends their answers to `output`. `identity` is
 * different for each master. Returns false when the input is not RESP, or when out of memory.
 */
bool null_answer(struct null_bytes *input, struct null_bytes *output, int identity);

#endif
