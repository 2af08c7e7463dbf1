#include "escape.h"

#include <string.h>

/* Returns whether the byte needs no encoding in a segment (pchar of RFC 3986). */
static bool is_plain(unsigned char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || (byte != '\0' && strchr("-._~!$&'()*+,;=:@", byte));
}

static int digit_of(char text) {
    if (text >= '0' && text <= '9') {
        return text - '0';
    }
    if (text >= 'a' && text <= 'f') {
        return text - 'a' + 10;
    }
    if (text >= 'A' && text <= 'F') {
        return text - 'A' + 10;
    }
    return -1;
}

/* Returns the byte that "%XX" stands for, or -1. */
static int escaped(const char *text, size_t length) {
    int high = length >= 3 ? digit_of(text[1]) : -1;
    int low = length >= 3 ? digit_of(text[2]) : -1;

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool escape_decode(const char *segment, size_t segment_length, char *bytes, size_t capacity,
                   size_t *length) {
    *length = 0;
    for (size_t i = 0; i < segment_length; i++) {
        int byte = (unsigned char)segment[i];

        if (byte == '%') {
            byte = escaped(segment + i, segment_length - i);
            i += 2;
        } else if (!is_plain((unsigned char)byte)) {
            byte = -1;
        }
        if (byte < 0) {
            return false;
        }
        if (*length < capacity) {
            bytes[*length] = (char)byte;
        }
        (*length)++;
    }
    return true;
}

void escape_encode(const char *bytes, size_t length, char *text) {
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (is_plain(byte)) {
            *text++ = bytes[i];
        } else {
            *text++ = '%';
            *text++ = digits[byte >> 4];
            *text++ = digits[byte & 15];
        }
    }
    *text = '\0';
}
