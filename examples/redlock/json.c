#include "json.h"

#include <inttypes.h>
#include <string.h>

static void write_string(FILE *stream, const char *bytes, size_t length) {
    fputc('"', stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte == '"' || byte == '\\') {
            fprintf(stream, "\\%c", byte);
        } else if (byte < 0x20 || byte >= 0x7f) {
            fprintf(stream, "\\u%04x", byte);
        } else {
            fputc(byte, stream);
        }
    }
    fputc('"', stream);
}

static void begin_value(struct json *json, const char *name) {
    if (json->needs_comma) {
        fputc(',', json->stream);
    }
    json->needs_comma = true;
    if (name != NULL) {
        write_string(json->stream, name, strlen(name));
        fputc(':', json->stream);
    }
}

void json_begin(struct json *json, const char *name, char bracket) {
    begin_value(json, name);
    fputc(bracket, json->stream);
    json->needs_comma = false;
}

void json_end(struct json *json, char bracket) {
    fputc(bracket, json->stream);
    json->needs_comma = true;
}

void json_bytes(struct json *json, const char *name, const char *value, size_t length) {
    begin_value(json, name);
    write_string(json->stream, value, length);
}

void json_text(struct json *json, const char *name, const char *value) {
    json_bytes(json, name, value, strlen(value));
}

void json_number(struct json *json, const char *name, int64_t value) {
    begin_value(json, name);
    fprintf(json->stream, "%" PRId64, value);
}

void json_bool(struct json *json, const char *name, bool value) {
    begin_value(json, name);
    fputs(value ? "true" : "false", json->stream);
}

void json_line(struct json *json) {
    fputc('\n', json->stream);
    fflush(json->stream);
    json->needs_comma = false;
}
