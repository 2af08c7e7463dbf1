#include "naming.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 1024
#define DIGITS "0123456789"

static const struct {
    const char *field;
    const char *option;
} names[] = {
    {"fenced", "--fence"},
    {"keys", "key"},
    {"max_ttl_ms", "--max-ttl"},
    {"min_hold_ms", "--min-hold"},
    {"min_validity_ms", "the validity that is needed"},
    {"mode", "--shared, --writer"},
    {"node_timeout_ms", "--node-timeout"},
    {"nodes", "node"},
    {"owner", "--owner"},
    {"permits", "--permits"},
    {"tls_cert_file", "REDLOCK_TLS_CERT_FILE"},
    {"tls_key_file", "REDLOCK_TLS_KEY_FILE"},
    {"ttl_ms", "--ttl"},
    {"watch_key", "--watch-key"},
};

/* Returns the length of the word: letters and underscores, as in names of fields. */
static size_t word_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_");
}

/*
 * Returns the option for the word, or NULL. Ordinary words are fields only at the beginning, before
 * a colon, or before an index.
 */
static const char *option_of(const char *word, size_t length, bool is_first) {
    bool is_field = memchr(word, '_', length) != NULL || word[length] == '[' ||
                    (is_first && word[length] == ':');

    for (size_t i = 0; is_field && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i].field) == length && memcmp(names[i].field, word, length) == 0) {
            return names[i].option;
        }
    }
    return NULL;
}

/*
 * Writes what follows a field: an index, counted from 1, or the value of a time with its unit.
 * Returns the length that was read.
 */
static size_t write_rest(FILE *stream, const char *rest, bool is_time) {
    size_t lead = strspn(rest, ":, ");
    size_t digits = strspn(rest + lead, DIGITS);

    if (rest[0] == '[') {
        fprintf(stream, " %lu", strtoul(rest + 1, NULL, 10) + 1);
        return strcspn(rest, "]") + 1;
    }
    if (is_time && digits > 0) {
        fprintf(stream, "%.*s ms", (int)(lead + digits), rest);
        return lead + digits;
    }
    return 0;
}

const char *naming_by_options(const char *message) {
    static _Thread_local char text[ROOM];
    FILE *stream = fmemopen(text, sizeof(text), "w");
    const char *position = message;

    if (stream == NULL) {
        return message;
    }
    while (*position != '\0') {
        size_t length = word_length(position);
        const char *option = option_of(position, length, position == message);

        if (option != NULL) {
            bool is_time = length > 3 && strncmp(position + length - 3, "_ms", 3) == 0;

            fputs(option, stream);
            position += length;
            position += write_rest(stream, position, is_time);
        } else {
            length = length > 0 ? length : 1;
            fprintf(stream, "%.*s", (int)length, position);
            position += length;
        }
    }
    fclose(stream);
    text[sizeof(text) - 1] = '\0';
    return text;
}
