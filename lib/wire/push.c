#include "wire/push.h"

/* Maximum number of digits of a number: those of 2^53. */
#define DIGITS_MAX 16

/* The number in place of a fence that marks a share: no fence is that small (wire/fence.h). */
#define SHARE_NUMBER 1

/* Reads a number and the blank after it. Returns false when there is none, or it is out of range.
 */
static bool read_push_number(const char **p, const char *end, uint64_t *number) {
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

/* Reads a name, "<length>:<key>", and moves `p` past it. Returns false when it is malformed. */
static bool read_name(const char **p, const char *end, const char **key, size_t *length) {
    const char *digit = *p;
    size_t number = 0;
    for (; digit < end && *digit >= '0' && *digit <= '9' && number < REDLOCK_MAX_KEY; digit++) {
        number = number * 10 + (size_t)(*digit - '0');
    }
    if (digit == end || *digit != ':' || number == 0 || number >= (size_t)(end - digit)) {
        return false;
    }
    *key = digit + 1;
    *length = number;
    *p = *key + number;
    return true;
}

bool push_next_key(struct push *push) {
    const char *end = push->more + push->more_length;
    bool is_read = read_name(&push->more, end, &push->key, &push->key_length);
    push->more_length = (size_t)(end - push->more);
    return is_read;
}

/*
 * Makes the first of several names push->key. Returns false unless all names are well-formed, and
 * at most REDLOCK_MAX_KEYS.
 */
static bool read_names(const char *text, const char *end, struct push *push) {
    unsigned count = 0;
    push->more = text;
    push->more_length = (size_t)(end - text);
    struct push rest = *push;
    while (rest.more_length > 0 && count <= REDLOCK_MAX_KEYS && push_next_key(&rest)) {
        count++;
    }
    return rest.more_length == 0 && count <= REDLOCK_MAX_KEYS && push_next_key(push);
}

bool push_read(const char *text, size_t length, struct push *push) {
    const char *p = text;
    const char *end = text + length;
    if (!read_push_number(&p, end, &push->expires_ms) ||
        !read_push_number(&p, end, &push->time_us) || !read_push_number(&p, end, &push->fence) ||
        end - p < TOKEN_LENGTH + 2 || !is_token(p)) {
        return false;
    }
    /* An expiry of 0 announces an open key: then the third number is a time, and no fence. */
    bool is_given = push->expires_ms > 0;
    push->open_ms = is_given ? 0 : push->fence;
    push->is_share = is_given && push->fence == SHARE_NUMBER;
    push->fence = is_given && !push->is_share ? push->fence : 0;
    push->token = p;
    push->key = p + TOKEN_LENGTH + 1;
    push->key_length = (size_t)(end - push->key);
    push->more = end;
    push->more_length = 0;
    return p[TOKEN_LENGTH] == ' ' || (p[TOKEN_LENGTH] == '+' && read_names(push->key, end, push));
}
