/*
 * Each struct has a table of its fields; a setter finds the field in it, reads the value by the
 * field's type, and stores it. Texts, and the arrays of a list, belong to the struct.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <redlock/settings.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum type { NUMBER, REAL, FLAG, WORD, TEXT, KEY, LIST };

/* A field; offsets are those in its struct, sizes in bytes. */
struct field {
    const char *name;
    enum type type;
    size_t offset;
    size_t size;
    const char *const *words; /* WORD: the values; NULL at the end */
    size_t lengths; /* KEY: offset of its length. LIST: of the array of lengths; 0: there is none */
    size_t count;   /* LIST: offset of the number of entries */
};

#define AT(of, name, type)                                                                         \
    { #name, type, offsetof(of, name), sizeof(((of *)0)->name), NULL, 0, 0 }
#define WORD_OF(of, name, words)                                                                   \
    { #name, WORD, offsetof(of, name), sizeof(((of *)0)->name), words, 0, 0 }

static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const guards[] = {"on", "lenient", "off", NULL};
static const char *const handovers[] = {"push", "confirm", NULL};
static const char *const modes[] = {"exclusive", "reader", "writer", NULL};

#define OPTION(name, type) AT(redlock_options, name, type)
static const struct field option_fields[] = {
    {"nodes", LIST, offsetof(redlock_options, nodes), sizeof(char **), NULL, 0,
     offsetof(redlock_options, node_count)},
    OPTION(node_timeout_ms, NUMBER),
    OPTION(stall_timeout_ms, NUMBER),
    OPTION(max_ttl_ms, NUMBER),
    OPTION(drift, REAL),
    OPTION(retry_delay_ms, NUMBER),
    OPTION(retry_delay_max_ms, NUMBER),
    OPTION(reconnect_delay_ms, NUMBER),
    OPTION(reconnect_delay_max_ms, NUMBER),
    OPTION(max_commands, NUMBER),
    OPTION(max_bytes, NUMBER),
    OPTION(name, TEXT),
    WORD_OF(redlock_options, log_level, log_levels),
    WORD_OF(redlock_options, guards, guards),
    OPTION(tls_ca_file, TEXT),
    OPTION(tls_ca_path, TEXT),
    OPTION(tls_cert_file, TEXT),
    OPTION(tls_key_file, TEXT),
    OPTION(fence_idle_ms, NUMBER),
    OPTION(owner, TEXT),
    OPTION(close_timeout_ms, NUMBER),
    WORD_OF(redlock_options, handover, handovers),
    OPTION(max_local_handoffs, NUMBER),
    OPTION(max_unsent, NUMBER),
    OPTION(idle_close_ms, NUMBER),
};

#define TERM(name, type) AT(redlock_request, name, type)
static const struct field request_fields[] = {
    {"key", KEY, offsetof(redlock_request, key), sizeof(char *), NULL,
     offsetof(redlock_request, key_length), 0},
    TERM(ttl_ms, NUMBER),
    TERM(wait_ms, NUMBER),
    TERM(retries, NUMBER),
    TERM(min_validity_ms, NUMBER),
    TERM(watchdog, FLAG),
    TERM(max_hold_ms, NUMBER),
    TERM(fenced, FLAG),
    {"keys", LIST, offsetof(redlock_request, keys), sizeof(char **), NULL,
     offsetof(redlock_request, key_lengths), offsetof(redlock_request, key_count)},
    TERM(min_hold_ms, NUMBER),
    TERM(lock_delay_ms, NUMBER),
    TERM(wait_replicas, NUMBER),
    TERM(permits, NUMBER),
    WORD_OF(redlock_request, mode, modes),
    TERM(watch_key, FLAG),
};

/* ---- the structs ---- */

#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))
#define FIELDS_MAX 32

_Static_assert(COUNT(option_fields) <= FIELDS_MAX && COUNT(request_fields) <= FIELDS_MAX,
               "each field has a place in texts");

/* What the fields of a struct point to. A struct has one list at the most. */
struct owned {
    char *texts[FIELDS_MAX]; /* by field */
    char **entries;          /* of the list */
    size_t *lengths;
    size_t count;
};

/* The application's pointer is that of the first member. */
struct owned_options {
    redlock_options options;
    struct owned owned;
};

struct owned_request {
    redlock_request request;
    struct owned owned;
};

static const redlock_options default_options = REDLOCK_OPTIONS_INIT;
static const redlock_request default_request = REDLOCK_REQUEST_INIT;

redlock_options *redlock_options_new(void) {
    struct owned_options *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return NULL;
    }
    created->options = default_options;
    return &created->options;
}

redlock_request *redlock_request_new(void) {
    struct owned_request *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return NULL;
    }
    created->request = default_request;
    return &created->request;
}

static void empty_list(struct owned *owned) {
    while (owned->count > 0) {
        free(owned->entries[--owned->count]);
    }
}

static void drop(struct owned *owned) {
    for (size_t i = 0; i < FIELDS_MAX; i++) {
        free(owned->texts[i]);
    }
    empty_list(owned);
    free(owned->entries);
    free(owned->lengths);
}

void redlock_options_free(redlock_options *options) {
    if (options != NULL) {
        drop(&((struct owned_options *)options)->owned);
        free(options);
    }
}

void redlock_request_free(redlock_request *request) {
    if (request != NULL) {
        drop(&((struct owned_request *)request)->owned);
        free(request);
    }
}

/* ---- values ---- */

/* Reads decimal digits of at most `most`. Returns the end of the number; NULL if it is none. */
static const char *read_digits(const char *text, uint64_t most, uint64_t *number) {
    const char *p = text;
    for (*number = 0; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*number > (most - digit) / 10) {
            return NULL;
        }
        *number = *number * 10 + digit;
    }
    return p != text ? p : NULL;
}

static bool read_number(const char *text, uint64_t most, uint64_t *number) {
    const char *end = read_digits(text, most, number);
    return end != NULL && *end == '\0';
}

/* Reads digits, a point and digits, as strtod does in the locale C. */
static bool read_real(const char *text, double *real) {
    const uint64_t most = UINT64_C(1000000000000000); /* exact as a double */
    uint64_t whole;
    uint64_t parts = 0;
    double scale = 1;
    const char *end = read_digits(text, most, &whole);
    if (end != NULL && *end == '.') {
        const char *first = end + 1;
        end = read_digits(first, most, &parts);
        for (const char *p = first; end != NULL && p < end; p++) {
            scale *= 10;
        }
    }
    *real = (double)whole + (double)parts / scale;
    return end != NULL && *end == '\0';
}

/* Returns the index of `word` in a list that ends with NULL; that of its end if it is missing. */
static uint64_t find_word(const char *const *words, const char *word) {
    uint64_t i = 0;
    while (words[i] != NULL && strcmp(words[i], word) != 0) {
        i++;
    }
    return i;
}

/* ---- setting a field ---- */

/* A struct with its fields by name, and a field of it. */
struct place {
    char *values; /* the struct */
    struct owned *owned;
    const char *defaults;
    const struct field *fields;
    const struct field *field;
};

static redlock_status refuse(const struct place *place, const char *value, const char *wanted,
                             redlock_error *error) {
    return error_set(error, REDLOCK_EINVAL, "%s: \"%.64s\" is not %s", place->field->name, value,
                     wanted);
}

static void store(const struct place *place, size_t offset, const void *value, size_t size) {
    memcpy(place->values + offset, value, size);
}

static void store_number(const struct place *place, uint64_t number) {
    uint32_t small = (uint32_t)number;
    uint8_t flag = (uint8_t)number;
    size_t size = place->field->size;
    const void *value = size == sizeof(number)  ? (const void *)&number
                        : size == sizeof(small) ? (const void *)&small
                                                : (const void *)&flag;
    store(place, place->field->offset, value, size);
}

static redlock_status set_number(const struct place *place, const char *value,
                                 redlock_error *error) {
    uint64_t most = place->field->size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX;
    uint64_t number = REDLOCK_FOREVER;
    bool is_forever = most == REDLOCK_FOREVER && strcmp(value, "forever") == 0;
    if (!is_forever && !read_number(value, most, &number)) {
        return error_set(error, REDLOCK_EINVAL, "%s: \"%.64s\" is not a number up to %" PRIu64,
                         place->field->name, value, most);
    }
    store_number(place, number);
    return REDLOCK_OK;
}

static redlock_status set_real(const struct place *place, const char *value, redlock_error *error) {
    double real;
    if (!read_real(value, &real)) {
        return refuse(place, value, "a number such as 0.01", error);
    }
    store(place, place->field->offset, &real, sizeof(real));
    return REDLOCK_OK;
}

static const char *const flags[] = {"false", "true", NULL};

static redlock_status set_word(const struct place *place, const char *value, redlock_error *error) {
    const struct field *field = place->field;
    const char *const *words = field->type == FLAG ? flags : field->words;
    uint64_t word = find_word(words, value);
    if (words[word] != NULL) {
        store_number(place, word);
        return REDLOCK_OK;
    }
    char wanted[64];
    struct text text;
    text_init(&text, wanted, sizeof(wanted));
    for (size_t i = 0; words[i] != NULL; i++) {
        text_append(&text, "%s%s", i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ", words[i]);
    }
    return refuse(place, value, wanted, error);
}

/* Copies a value of `length` bytes; 0: a C string. */
static char *copy(const char *value, size_t length) {
    const redlock_allocator libc = memory_allocator(NULL);
    return memory_copy(&libc, value, length != 0 ? length : strlen(value));
}

static redlock_status set_text(const struct place *place, const char *value, size_t length,
                               redlock_error *error) {
    char **owned = &place->owned->texts[place->field - place->fields];
    char *text = copy(value, length);
    if (text == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "%s: out of memory", place->field->name);
    }
    free(*owned);
    *owned = text;
    store(place, place->field->offset, &text, sizeof(text));
    if (place->field->type == KEY) {
        store(place, place->field->lengths, &length, sizeof(length));
    }
    return REDLOCK_OK;
}

/* Makes room for one more entry of the list. */
static bool grow_list(struct owned *owned) {
    char **entries = realloc(owned->entries, (owned->count + 1) * sizeof(*entries));
    if (entries != NULL) {
        owned->entries = entries;
    }
    size_t *lengths = realloc(owned->lengths, (owned->count + 1) * sizeof(*lengths));
    if (lengths != NULL) {
        owned->lengths = lengths;
    }
    return entries != NULL && lengths != NULL;
}

/* Lets the struct's fields follow its list. */
static void store_list(const struct place *place) {
    const struct field *field = place->field;
    const struct owned *owned = place->owned;
    char **entries = owned->count > 0 ? owned->entries : NULL;
    size_t *lengths = owned->count > 0 ? owned->lengths : NULL;
    store(place, field->offset, &entries, sizeof(entries));
    store(place, field->count, &owned->count, sizeof(owned->count));
    if (field->lengths != 0) {
        store(place, field->lengths, &lengths, sizeof(lengths));
    }
}

static redlock_status add_entry(const struct place *place, const char *value, size_t length,
                                redlock_error *error) {
    struct owned *owned = place->owned;
    char *text = copy(value, length);
    /* The struct points to arrays that realloc may have moved, also when the text is missing. */
    bool has_room = grow_list(owned);
    if (text != NULL && has_room) {
        owned->lengths[owned->count] = length;
        owned->entries[owned->count++] = text;
    } else {
        free(text);
    }
    store_list(place);
    return text != NULL && has_room
               ? REDLOCK_OK
               : error_set(error, REDLOCK_ENOMEM, "%s: out of memory", place->field->name);
}

static void set_default(const struct place *place) {
    const struct field *field = place->field;
    const size_t no_length = 0;
    if (field->type == LIST) {
        empty_list(place->owned);
        store_list(place);
        return;
    }
    store(place, field->offset, place->defaults + field->offset, field->size);
    if (field->type == KEY) {
        store(place, field->lengths, &no_length, sizeof(no_length));
    }
    char **owned = &place->owned->texts[field - place->fields];
    free(*owned);
    *owned = NULL;
}

static redlock_status set_value(const struct place *place, const char *value, size_t length,
                                redlock_error *error) {
    switch (place->field->type) {
    case NUMBER:
        return set_number(place, value, error);
    case REAL:
        return set_real(place, value, error);
    case FLAG:
    case WORD:
        return set_word(place, value, error);
    case TEXT:
        return set_text(place, value, 0, error);
    case KEY:
        return set_text(place, value, length, error);
    case LIST:
        return add_entry(place, value, length, error);
    }
    return REDLOCK_EINVAL;
}

/* Sets the field `name` among the `count` fields of `place`; `kind` is for the message. */
static redlock_status set(struct place *place, size_t count, const char *kind, const char *name,
                          const char *value, size_t length, redlock_error *error) {
    if (place->values == NULL || name == NULL) {
        return error_set(error, REDLOCK_EINVAL, "no %s is named, or there is no struct", kind);
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(place->fields[i].name, name) == 0) {
            place->field = &place->fields[i];
        }
    }
    if (place->field == NULL) {
        return error_set(error, REDLOCK_EINVAL, "%.64s: there is no such %s", name, kind);
    }
    if (value == NULL) {
        set_default(place);
        return REDLOCK_OK;
    }
    return set_value(place, value, length, error);
}

redlock_status redlock_options_set(redlock_options *options, const char *field, const char *value,
                                   redlock_error *error) {
    struct owned_options *owner = (struct owned_options *)options;
    struct place place = {(char *)options, owner != NULL ? &owner->owned : NULL,
                          (const char *)&default_options, option_fields, NULL};
    return set(&place, COUNT(option_fields), "option", field, value, 0, error);
}

redlock_status redlock_request_set(redlock_request *request, const char *field, const char *value,
                                   size_t length, redlock_error *error) {
    struct owned_request *owner = (struct owned_request *)request;
    struct place place = {(char *)request, owner != NULL ? &owner->owned : NULL,
                          (const char *)&default_request, request_fields, NULL};
    return set(&place, COUNT(request_fields), "field of a request", field, value, length, error);
}

/* ---- hooks ---- */

void redlock_options_set_log(redlock_options *options, redlock_log_cb *log, void *arg) {
    if (options != NULL) {
        options->log = log;
        options->log_arg = arg;
    }
}

void redlock_options_set_trace(redlock_options *options, redlock_trace_cb *trace, void *arg) {
    if (options != NULL) {
        options->trace = trace;
        options->trace_arg = arg;
    }
}

void redlock_request_set_on_lost(redlock_request *request, redlock_cb *on_lost, void *arg) {
    if (request != NULL) {
        request->on_lost = on_lost;
        request->on_lost_arg = arg;
    }
}
