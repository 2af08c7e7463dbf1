/* Keys in paths: any bytes, percent-encoded as one segment. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes a segment of a path into at most `capacity` bytes. Returns false where a "%" is not
 * followed by two hexadecimal digits, or a byte stands there that must be encoded. Sets *length to
 * that of the whole key, which may be more than `capacity`.
 */
bool escape_decode(const char *segment, size_t segment_length, char *bytes, size_t capacity,
                   size_t *length);

/*
 * Encodes bytes as a segment in one way only, so that equal keys have equal texts. `text` has room
 * for 3 * length + 1.
 */
void escape_encode(const char *bytes, size_t length, char *text);

#endif
