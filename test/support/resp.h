/*
 * RESP2 as a server reads it: "*3\r\n", then bulk strings, "$3\r\nSET\r\n". Bytes that a Redis
 * server would not accept are refused.
 */
#ifndef REDLOCK_TEST_RESP_H
#define REDLOCK_TEST_RESP_H

#include <stddef.h>

/* The unread bytes. */
struct resp_cursor {
    const char *at, *end;
};

/*
 * Read one item and advance the cursor past it. Return 1; 0: the item is incomplete; -1: the bytes
 * are no such item. After 0 and -1 the cursor must not be used.
 */
int resp_read_header(struct resp_cursor *cursor, char kind, size_t *number);
int resp_read_bulk(struct resp_cursor *cursor, const char **bytes, size_t *length);

#endif
