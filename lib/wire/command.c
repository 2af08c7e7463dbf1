#include "wire/command.h"

#include "wire/key.h"

#include <string.h>

/* Maximum number of digits of a uint64_t. */
#define DECIMAL_MAX 20

/* Maximum size of a header: its type, a number, "\r\n". */
#define HEADER_MAX (1 + DECIMAL_MAX + 2)

/* Maximum size of a bulk string of `length` bytes. */
#define BULK_MAX(length) (HEADER_MAX + (length) + 2)

/* Writes `value` at `out` and returns the end. */
static char *decimal(char *out, uint64_t value) {
    if (value < 100) { /* fast path: most numbers are lengths */
        if (value >= 10) {
            *out++ = (char)('0' + value / 10);
        }
        *out++ = (char)('0' + value % 10);
        return out;
    }
    char digits[DECIMAL_MAX];
    char *first = digits + sizeof(digits);
    while (value >= 10) {
        *--first = (char)('0' + value % 10);
        value /= 10;
    }
    *out++ = (char)('0' + value);
    while (first < digits + sizeof(digits)) {
        *out++ = *first++;
    }
    return out;
}

/* Writes `length` bytes at `out` and returns the end. */
static inline char *put_bytes(char *out, const char *data, size_t length) {
    memcpy(out, data, length);
    return out + length;
}

/* Writes "*count\r\n" or "$length\r\n" at `out` and returns the end. */
static char *put_header(char *out, char kind, uint64_t value) {
    *out++ = kind;
    out = decimal(out, value);
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

static void header(struct bytes *out, char kind, uint64_t value) {
    char *start = bytes_reserve(out, HEADER_MAX);
    if (start != NULL) {
        out->length += (size_t)(put_header(start, kind, value) - start);
    }
}

/* Writes "$length\r\n", the bytes, and "\r\n" at `out` and returns the end. */
static inline char *put_bulk(char *out, const char *data, size_t length) {
    out = put_header(out, '$', length);
    out = put_bytes(out, data, length);
    return put_bytes(out, "\r\n", 2);
}

static void bulk(struct bytes *out, const char *data, size_t length) {
    char *start = bytes_reserve(out, BULK_MAX(length));
    if (start != NULL) {
        out->length += (size_t)(put_bulk(start, data, length) - start);
    }
}

static void bulk_number(struct bytes *out, uint64_t value) {
    char digits[DECIMAL_MAX];
    bulk(out, digits, (size_t)(decimal(digits, value) - digits));
}

void command_words(struct bytes *out, unsigned count, const char *const *words) {
    header(out, '*', count);
    for (unsigned i = 0; i < count; i++) {
        bulk(out, words[i], strlen(words[i]));
    }
}

/* Appends one bulk string: a text, then another. */
static void bulk_joined(struct bytes *out, const char *first, size_t first_length,
                        const char *second) {
    size_t second_length = strlen(second);
    char *start = bytes_reserve(out, BULK_MAX(first_length + second_length));
    if (start != NULL) {
        char *end = put_header(start, '$', first_length + second_length);
        end = put_bytes(end, first, first_length);
        end = put_bytes(end, second, second_length);
        end = put_bytes(end, "\r\n", 2);
        out->length += (size_t)(end - start);
    }
}

/*
 * Writes the value, a token with "/" and the owner after it, as a bulk string at `out` and returns
 * the end. `owner_length`: of the owner.
 */
static char *put_value(char *out, const struct lock_arguments *lock, size_t owner_length) {
    out = put_header(out, '$', TOKEN_LENGTH + (owner_length > 0 ? 1 + owner_length : 0));
    out = put_bytes(out, lock->value, TOKEN_LENGTH);
    if (owner_length > 0) {
        *out++ = '/';
        out = put_bytes(out, lock->owner, owner_length);
    }
    return put_bytes(out, "\r\n", 2);
}

/* Maximum size of a value as a bulk string, with an owner of `length` bytes. */
#define VALUE_MAX(length) BULK_MAX(TOKEN_LENGTH + 1 + (length))

static void bulk_value(struct bytes *out, const struct lock_arguments *lock) {
    size_t owner_length = strlen(lock->owner);
    char *start = bytes_reserve(out, VALUE_MAX(owner_length));
    if (start != NULL) {
        out->length += (size_t)(put_value(start, lock, owner_length) - start);
    }
}

/* Reserves space once for the whole command: SET is on the critical path of most acquisitions. */
void command_set(struct bytes *out, const struct lock_arguments *lock) {
    static const char before[] = "*6\r\n$3\r\nSET\r\n";
    static const char after[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    char digits[DECIMAL_MAX];
    const struct key *key = lock->key;
    size_t owner_length = strlen(lock->owner);
    char *start =
        bytes_reserve(out, sizeof(before) + BULK_MAX(key->length) + VALUE_MAX(owner_length) +
                               sizeof(after) + BULK_MAX(DECIMAL_MAX));
    if (start == NULL) {
        return;
    }
    char *end = put_bytes(start, before, sizeof(before) - 1);
    end = put_bulk(end, key->bytes, key->length);
    end = put_value(end, lock, owner_length);
    end = put_bytes(end, after, sizeof(after) - 1);
    end = put_bulk(end, digits, (size_t)(decimal(digits, lock->ttl_ms) - digits));
    out->length += (size_t)(end - start);
}

void command_wait(struct bytes *out, uint32_t replicas, uint64_t timeout_ms) {
    header(out, '*', 3);
    bulk(out, "WAIT", 4);
    bulk_number(out, replicas);
    bulk_number(out, timeout_ms);
}

void command_look(struct bytes *out, const char *key, size_t key_length) {
    header(out, '*', 4);
    bulk(out, "GETRANGE", 8);
    bulk(out, key, key_length);
    bulk_number(out, 0);
    bulk_number(out, TOKEN_LENGTH - 1);
}

/* ---- scripts ---- */

void script_call_init(struct script_call *call, const redlock_allocator *allocator) {
    bytes_init(&call->keys, allocator);
    bytes_init(&call->arguments, allocator);
    call->channel = "";
    call->key_count = call->argument_count = 0;
}

void script_call_finish(struct script_call *call) {
    bytes_finish(&call->keys);
    bytes_finish(&call->arguments);
}

void script_call_clear(struct script_call *call) {
    bytes_clear(&call->keys);
    bytes_clear(&call->arguments);
    call->key_count = call->argument_count = 0;
}

static void add_key(struct script_call *call, const struct key *key) {
    bulk(&call->keys, key->bytes, key->length);
    call->key_count++;
}

/* Adds a key whose name is that of a lock's key and a suffix. */
static void add_derived_key(struct script_call *call, const struct key *key, const char *suffix) {
    bulk_joined(&call->keys, key->bytes, key->length, suffix);
    call->key_count++;
}

/* Adds the keys of a lock that the script takes for one of them. */
static void add_keys(struct script_call *call, enum script script, const struct key *key) {
    add_key(call, key);
    for (const char *p = script_infos[script].keys; *p != '\0'; p++) {
        const char *suffix = *p == 'c'   ? COUNTER_SUFFIX
                             : *p == 'r' ? READERS_SUFFIX
                                         : WRITER_SUFFIX;
        add_derived_key(call, key, suffix);
    }
}

/* Adds all keys of a lock, then their counters: the order that scripts called per lock expect. */
static void add_keys_together(struct script_call *call, const struct lock_arguments *lock) {
    for (const struct key *key = lock->key; key != NULL; key = key->next) {
        add_key(call, key);
    }
    for (const struct key *key = lock->key; key != NULL && lock->is_fenced; key = key->next) {
        add_derived_key(call, key, COUNTER_SUFFIX);
    }
}

static void add_arguments(struct script_call *call, enum script script,
                          const struct lock_arguments *lock) {
    const uint8_t *argument = script_sources[script].arguments;
    for (; *argument != 0; argument++) {
        if (*argument == offsetof(struct lock_arguments, value)) {
            bulk_value(&call->arguments, lock);
        } else if (*argument == offsetof(struct lock_arguments, form)) {
            bulk(&call->arguments, &lock->form, 1);
        } else {
            const void *number = (const char *)lock + *argument;
            bulk_number(&call->arguments, *(const uint64_t *)number);
        }
        call->argument_count++;
    }
}

void script_call_add(struct script_call *call, enum script script,
                     const struct lock_arguments *lock) {
    if (script_infos[script].by_lock) {
        add_keys_together(call, lock);
        add_arguments(call, script, lock);
        return;
    }
    for (const struct key *key = lock->key; key != NULL; key = key->next) {
        add_keys(call, script, key);
        add_arguments(call, script, lock);
    }
}

void command_script(struct bytes *out, enum script script, bool with_text,
                    const struct script_call *call) {
    bool has_channel = script_sources[script].has_channel;
    header(out, '*', 3 + call->key_count + has_channel + call->argument_count);
    if (with_text) {
        bulk(out, "EVAL", 4);
        bulk(out, script_text(script), strlen(script_text(script)));
    } else {
        bulk(out, "EVALSHA", 7);
        bulk(out, script_sha(script), SCRIPT_SHA_LENGTH);
    }
    bulk_number(out, call->key_count);
    bytes_append(out, call->keys.data, call->keys.length);
    if (has_channel) {
        bulk(out, call->channel, strlen(call->channel));
    }
    bytes_append(out, call->arguments.data, call->arguments.length);
    out->failed = out->failed || call->keys.failed || call->arguments.failed;
}
