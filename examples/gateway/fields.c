#include "fields.h"

#include "answer.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TYPE "application/json"
/* 2^53: doubles are exact up to here. */
#define WHOLE_MAX 9007199254740992.0

/* Answers that a field is invalid. Returns false. */
static bool refuse(const struct exchange *exchange, const char *name, const char *wanted) {
    char where[64];

    snprintf(where, sizeof(where), "body#/%.40s", name);
    answer_problem(exchange->connection, PROBLEM_BAD_FIELD, where, "\"%s\" has to be %s.", name,
                   wanted);
    return false;
}

static struct evbuffer *body_of(const struct exchange *exchange) {
    return evhttp_request_get_input_buffer(exchange->connection->request);
}

bool fields_none(const struct exchange *exchange) {
    if (evbuffer_get_length(body_of(exchange)) == 0) {
        return true;
    }
    answer_problem(exchange->connection, PROBLEM_BAD_REQUEST, "body", "This request has no body.");
    return false;
}

static bool is_json(const struct exchange *exchange) {
    const char *type = evhttp_find_header(
        evhttp_request_get_input_headers(exchange->connection->request), "Content-Type");

    return type != NULL && strncasecmp(type, TYPE, strlen(TYPE)) == 0 &&
           strchr("; \t", type[strlen(TYPE)]) != NULL;
}

/* Returns whether all fields of the object are among the names; if not, answers. */
static bool are_known(const struct exchange *exchange, json_t *body, const char *const *names) {
    const char *name;
    json_t *value;

    json_object_foreach(body, name, value) {
        size_t i = 0;

        while (names[i] != NULL && strcmp(name, names[i]) != 0) {
            i++;
        }
        if (names[i] == NULL) {
            answer_problem(exchange->connection, PROBLEM_BAD_FIELD, "body",
                           "There is no field \"%.40s\" here.", name);
            return false;
        }
    }
    return true;
}

static json_t *parse(const struct exchange *exchange, const char *text, size_t length) {
    json_error_t error;
    json_t *body = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

    if (body == NULL) {
        answer_problem(exchange->connection, PROBLEM_BAD_JSON, "body", "Line %d, column %d: %s",
                       error.line, error.column, error.text);
    } else if (!json_is_object(body)) {
        answer_problem(exchange->connection, PROBLEM_BAD_JSON, "body",
                       "The body has to be an object.");
        json_decref(body);
        body = NULL;
    }
    return body;
}

json_t *fields_read(const struct exchange *exchange, const char *const *names) {
    struct evbuffer *input = body_of(exchange);
    size_t length = evbuffer_get_length(input);
    json_t *body;

    if (length > GATEWAY_BODY_MAX) {
        answer_problem(exchange->connection, PROBLEM_TOO_LARGE, "body",
                       "A body has at most %d bytes.", GATEWAY_BODY_MAX);
        return NULL;
    }
    if (length > 0 && !is_json(exchange)) {
        answer_problem(exchange->connection, PROBLEM_NOT_JSON, "header:Content-Type",
                       "The body has to say that it is " TYPE ".");
        return NULL;
    }
    body = length == 0 ? json_object()
                       : parse(exchange, (const char *)evbuffer_pullup(input, -1), length);
    if (body == NULL) {
        if (length == 0) {
            answer_problem(exchange->connection, PROBLEM_NO_MEMORY, NULL, "Out of memory.");
        }
        return NULL;
    }
    if (!are_known(exchange, body, names)) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* Reads a whole number, also if written as 1000.0 or 1e3. Returns false for any other value. */
static bool read_whole(const json_t *field, uint64_t *whole) {
    double number = json_number_value(field);

    if (!json_is_number(field) || !(number >= 0 && number < WHOLE_MAX)) {
        return false;
    }
    *whole = json_is_integer(field) ? (uint64_t)json_integer_value(field) : (uint64_t)number;
    return json_is_integer(field) || (double)*whole == number;
}

bool fields_ms(const struct exchange *exchange, const json_t *body, const char *name,
               uint64_t least, uint64_t most, uint64_t *value) {
    const json_t *field = json_object_get(body, name);
    uint64_t whole;
    char wanted[128];

    if (field == NULL) {
        return true;
    }
    if (!read_whole(field, &whole) || whole < least || whole > most) {
        snprintf(wanted, sizeof(wanted),
                 "a whole number of milliseconds from %" PRIu64 " to %" PRIu64, least, most);
        return refuse(exchange, name, wanted);
    }
    *value = whole;
    return true;
}

bool fields_flag(const struct exchange *exchange, const json_t *body, const char *name,
                 bool *value) {
    const json_t *field = json_object_get(body, name);

    if (field != NULL && !json_is_boolean(field)) {
        return refuse(exchange, name, "true or false");
    }
    *value = field == NULL ? *value : json_is_true(field);
    return true;
}

bool fields_choice(const struct exchange *exchange, const json_t *body, const char *name,
                   const char *const *texts, int *index) {
    const json_t *field = json_object_get(body, name);
    const char *text = json_string_value(field);
    char wanted[128] = "one of";

    if (field == NULL) {
        return true;
    }
    for (int i = 0; texts[i] != NULL; i++) {
        if (text != NULL && strcmp(text, texts[i]) == 0) {
            *index = i;
            return true;
        }
        size_t length = strlen(wanted);
        snprintf(wanted + length, sizeof(wanted) - length, " \"%s\"", texts[i]);
    }
    return refuse(exchange, name, wanted);
}

bool fields_owner(const struct exchange *exchange, const json_t *body, const char *name,
                  char owner[OWNER_SIZE]) {
    const json_t *field = json_object_get(body, name);
    const char *text = json_string_value(field);
    size_t length = json_string_length(field);
    bool is_good = text != NULL && length < OWNER_SIZE;

    if (field == NULL) {
        return true;
    }
    for (size_t i = 0; is_good && i < length; i++) {
        is_good = text[i] > 0x20 && text[i] < 0x7f;
    }
    if (!is_good) {
        return refuse(exchange, name,
                      "a text of at most 64 visible ASCII characters, without spaces");
    }
    memcpy(owner, text, length + 1);
    return true;
}
