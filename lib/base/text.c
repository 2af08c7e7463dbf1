#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void mark_as_cut(struct text *text) {
    text->length = text->capacity - 1;
    memcpy(text->start + text->length - 3, "...", 4);
}

void text_init(struct text *text, char *start, size_t capacity) {
    *text = (struct text){.start = start, .capacity = capacity};
    start[0] = '\0';
}

void text_append(struct text *text, const char *format, ...) {
    size_t room = text->capacity - text->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->start + text->length, room, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->start[text->length] = '\0';
    } else if ((size_t)length >= room) {
        mark_as_cut(text);
    } else {
        text->length += (size_t)length;
    }
}

void text_append_foreign(struct text *text, const char *bytes, size_t length) {
    for (size_t i = 0; i < length && bytes[i] != '\0'; i++) {
        if (text->length + 1 == text->capacity) {
            mark_as_cut(text);
            return;
        }
        text->start[text->length++] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
        text->start[text->length] = '\0';
    }
}
