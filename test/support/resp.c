#include "resp.h"

#include <stdint.h>

int resp_read_header(struct resp_cursor *cursor, char kind, size_t *number) {
    const char *digit = cursor->at + 1;

    if (cursor->at == cursor->end) {
        return 0;
    }
    if (*cursor->at != kind) {
        return -1;
    }
    *number = 0;
    for (; digit < cursor->end && *digit >= '0' && *digit <= '9'; digit++) {
        if (*number > SIZE_MAX / 100) {
            return -1;
        }
        *number = *number * 10 + (size_t)(*digit - '0');
    }
    if (digit == cursor->end) {
        return 0;
    }
    if (digit == cursor->at + 1 || digit[0] != '\r') {
        return -1;
    }
    if (digit + 1 == cursor->end) {
        return 0;
    }
    cursor->at = digit + 2;
    return digit[1] == '\n' ? 1 : -1;
}

int resp_read_bulk(struct resp_cursor *cursor, const char **bytes, size_t *length) {
    int got = resp_read_header(cursor, '$', length);

    if (got <= 0) {
        return got;
    }
    if ((size_t)(cursor->end - cursor->at) < *length + 2) {
        return 0;
    }
    *bytes = cursor->at;
    cursor->at += *length + 2;
    return cursor->at[-2] == '\r' && cursor->at[-1] == '\n' ? 1 : -1;
}
