#include "plain.h"

#include <string.h>

/* Writes a byte as text, with a NUL. Returns the length of the text. */
static size_t write_byte(char out[PLAIN_ROOM + 1], char byte) {
    static const char digits[] = "0123456789abcdef";
    unsigned char value = (unsigned char)byte;

    if (value >= ' ' && value <= '~') {
        out[0] = byte;
        out[1] = '\0';
        return 1;
    }
    memcpy(out, (char[]){'\\', 'x', digits[value >> 4], digits[value & 15], '\0'}, PLAIN_ROOM + 1);
    return PLAIN_ROOM;
}

void plain_print(FILE *stream, const char *bytes, size_t length) {
    char written[PLAIN_ROOM + 1];

    for (size_t i = 0; i < length; i++) {
        fwrite(written, 1, write_byte(written, bytes[i]), stream);
    }
}

void plain_copy(char *out, size_t size, const char *text) {
    char written[PLAIN_ROOM + 1];
    size_t used = 0;

    for (; *text != '\0'; text++) {
        size_t length = write_byte(written, *text);

        if (used + length >= size) {
            break;
        }
        memcpy(out + used, written, length);
        used += length;
    }
    out[used] = '\0';
}
