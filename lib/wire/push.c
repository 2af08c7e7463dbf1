#include "wire/push.h"

/* The most digits of a number: those of 2^53. */
#define DIGITS_MAX 16

/* Reads a number and the blank behind it. */
static bool read_number(const char **p, const char *end, uint64_t *number) {
    const char *start = *p;
    *number = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && *p - start < DIGITS_MAX; ++*p) {
        *number = *number * 10 + (uint64_t)(**p - '0');
    }
    return *p > start && *p < end && *(*p)++ == ' ' && *number < UINT64_C(1) << 53;
}

static bool is_token(const char *text) {
    bool is_hex = true;
    for (unsigned i = 0; i < TOKEN_LENGTH; i++) {
        is_hex &= (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    }
    return is_hex;
}

bool push_read(const char *text, size_t length, struct push *push) {
    const char *p = text;
    const char *end = text + length;
    if (!read_number(&p, end, &push->expires_ms) || !read_number(&p, end, &push->time_us) ||
        !read_number(&p, end, &push->fence) || end - p < TOKEN_LENGTH + 2 || !is_token(p) ||
        p[TOKEN_LENGTH] != ' ') {
        return false;
    }
    bool is_given = push->expires_ms > 0;
    push->open_ms = is_given ? 0 : push->fence;
    push->fence = is_given ? push->fence : 0;
    push->token = p;
    push->key = p + TOKEN_LENGTH + 1;
    push->key_length = (size_t)(end - push->key);
    return true;
}
