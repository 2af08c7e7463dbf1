/* Keys in paths: any bytes, percent-encoded as one path segment. */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes a path segment into at most `capacity` bytes. Returns false if a "%" is not followed by
 * two hexadecimal digits, or a byte is not encoded that must be. Sets *length to the length of the
 * whole key, which may exceed `capacity`.
 */
bool escape_decode(const char *segment, size_t segment_length, char *bytes, size_t capacity,
                   size_t *length);

/*
 * Encodes bytes as a segment, in a canonical form: equal keys have equal texts. `text` has room for
 * 3 * length + 1 bytes.
 */
void escape_encode(const char *bytes, size_t length, char *text);

#endif
