/*
 * Makes untrusted text (keys, answers of servers, names) safe for a terminal: a byte that is not
 * printable ASCII is written as \xHH, so that escape sequences do nothing and a line stays a line.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <stddef.h>
#include <stdio.h>

/* Maximum length of a byte's text. */
#define PLAIN_ROOM 4

/* Writes bytes to a stream. */
void plain_print(FILE *stream, const char *bytes, size_t length);

/* Copies a string into `out`, truncated to `size` bytes including the NUL. */
void plain_copy(char *out, size_t size, const char *text);

#endif
