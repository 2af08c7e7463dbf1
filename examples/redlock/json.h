/* Writes JSON to a stream. Handles commas and escapes; the caller ensures correct nesting. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    bool needs_comma; /* whether the next value needs a comma before it */
};

/* Begin and end an object or array; `name` is NULL in an array and at the top level. */
void json_begin(struct json *json, const char *name, char bracket);
void json_end(struct json *json, char bracket);

/* Write a value; `name` is NULL in an array. Bytes that are not ASCII are written as \u00XX. */
void json_text(struct json *json, const char *name, const char *value);
void json_bytes(struct json *json, const char *name, const char *value, size_t length);
void json_number(struct json *json, const char *name, int64_t value);
void json_bool(struct json *json, const char *name, bool value);

/* Ends the line. */
void json_line(struct json *json);

#endif
