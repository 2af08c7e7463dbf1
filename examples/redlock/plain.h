/*
 * Makes text from outside (keys, answers of servers, names) fit for a terminal: a byte that is not
 * printable ASCII is written as \xHH, so that escape sequences do nothing, and a line stays one.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <stddef.h>
#include <stdio.h>

/* Room for each byte. */
#define PLAIN_ROOM 4

/* Writes bytes to a stream. */
void plain_print(FILE *stream, const char *bytes, size_t length);

/* Copies a string into `out`, which has room for `size` bytes with the NUL, and cuts the rest. */
void plain_copy(char *out, size_t size, const char *text);

#endif
