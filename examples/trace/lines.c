#include "lines.h"

#include <inttypes.h>
#include <stdio.h>

static void write_word(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte <= ' ' || byte > '~' || byte == '%' || byte == '"' || byte == '\\') {
            fprintf(file, "%%%02X", byte);
        } else {
            putc(byte, file);
        }
    }
}

void trace_line(const redlock_event *event, void *arg) {
    FILE *file = arg;

    fprintf(file, "%" PRIu64 " %" PRIu64 " %s ", event->time_ns, event->request, event->name);
    write_word(file, event->node[0] != '\0' ? event->node : "-");
    for (size_t i = 0; i < event->field_count; i++) {
        const redlock_event_field *field = &event->fields[i];
        fprintf(file, " %s=", field->name);
        if (field->text != NULL) {
            write_word(file, field->text);
        } else {
            fprintf(file, "%" PRIu64, field->number);
        }
    }
    putc('\n', file);
}
