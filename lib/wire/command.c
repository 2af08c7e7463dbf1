#include "wire/command.h"

#include <string.h>

/* The longest that decimal() writes. */
#define DECIMAL_MAX 20

/* Arguments of each key of a script's call. */
static const unsigned arguments_per_key[SCRIPT_COUNT] = {[SCRIPT_RELEASE] = 1, [SCRIPT_RENEW] = 2};

/* Writes `value` at `out` and returns its length. */
static size_t decimal(char *out, uint64_t value) {
    char digits[DECIMAL_MAX];
    size_t length = 0;
    do {
        digits[DECIMAL_MAX - ++length] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    memcpy(out, digits + DECIMAL_MAX - length, length);
    return length;
}

/* "*count\r\n" or "$length\r\n". */
static void header(struct bytes *out, char kind, uint64_t value) {
    char *start = bytes_reserve(out, DECIMAL_MAX + 3);
    if (start == NULL) {
        return;
    }
    start[0] = kind;
    size_t length = 1 + decimal(start + 1, value);
    start[length++] = '\r';
    start[length++] = '\n';
    out->length += length;
}

static void bulk(struct bytes *out, const char *data, size_t length) {
    header(out, '$', length);
    char *start = bytes_reserve(out, length + 2);
    if (start == NULL) {
        return;
    }
    memcpy(start, data, length);
    memcpy(start + length, "\r\n", 2);
    out->length += length + 2;
}

static void bulk_number(struct bytes *out, uint64_t value) {
    char digits[DECIMAL_MAX];
    bulk(out, digits, decimal(digits, value));
}

void command_words(struct bytes *out, unsigned count, const char *const *words) {
    header(out, '*', count);
    for (unsigned i = 0; i < count; i++) {
        bulk(out, words[i], strlen(words[i]));
    }
}

void command_set(struct bytes *out, const char *key, size_t key_length, const char *token,
                 uint64_t ttl_ms) {
    static const char start[] = "*6\r\n$3\r\nSET\r\n";
    static const char options[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    bytes_append(out, start, sizeof(start) - 1);
    bulk(out, key, key_length);
    bulk(out, token, TOKEN_LENGTH);
    bytes_append(out, options, sizeof(options) - 1);
    bulk_number(out, ttl_ms);
}

void command_script_key(enum script script, struct bytes *keys, struct bytes *arguments,
                        const char *key, size_t key_length, const char *token, uint64_t ttl_ms) {
    bulk(keys, key, key_length);
    bulk(arguments, token, TOKEN_LENGTH);
    if (script == SCRIPT_RENEW) {
        bulk_number(arguments, ttl_ms);
    }
}

void command_script(struct bytes *out, enum script script, bool with_text, unsigned count,
                    const struct bytes *keys, const struct bytes *arguments) {
    header(out, '*', 3 + count * (1 + arguments_per_key[script]));
    if (with_text) {
        bulk(out, "EVAL", 4);
        bulk(out, script_text(script), strlen(script_text(script)));
    } else {
        bulk(out, "EVALSHA", 7);
        bulk(out, script_sha(script), SCRIPT_SHA_LENGTH);
    }
    bulk_number(out, count);
    bytes_append(out, keys->data, keys->length);
    bytes_append(out, arguments->data, arguments->length);
    out->failed = out->failed || keys->failed || arguments->failed;
}
