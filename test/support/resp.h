/*
 * RESP2 as a server reads it: "*3\r\n", then bulk strings, "$3\r\nSET\r\n". Bytes that no server of
 * Redis would take are none here either.
 */
#ifndef REDLOCK_TEST_RESP_H
#define REDLOCK_TEST_RESP_H

#include <stddef.h>

/* What is left to be read. */
struct resp_cursor {
    const char *at, *end;
};

/*
 * Each reads one item and moves the cursor behind it: 1; 0: the item has not arrived whole; -1: the
 * bytes are no such item. The cursor is of no use after 0 and -1.
 */
int resp_read_header(struct resp_cursor *cursor, char kind, size_t *number);
int resp_read_bulk(struct resp_cursor *cursor, const char **bytes, size_t *length);

#endif
