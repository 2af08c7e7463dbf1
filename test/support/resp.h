/*
 * RESP2 as a server reads it: "*3\r\n", then bulk strings, "$3\r\nSET\r\n". Bytes that no Redis
 * server would take are refused.
 */
#ifndef REDLOCK_TEST_RESP_H
#define REDLOCK_TEST_RESP_H

#include <stddef.h>

/* The bytes that are left to be read. */
struct resp_cursor {
    const char *at, *end;
};

/*
 * Read one item and move the cursor behind it. Return 1; 0: the item has not arrived whole; -1: the
 * bytes are no such item. The cursor is of no use after 0 and -1.
 */
int resp_read_header(struct resp_cursor *cursor, char kind, size_t *number);
int resp_read_bulk(struct resp_cursor *cursor, const char **bytes, size_t *length);

#endif
