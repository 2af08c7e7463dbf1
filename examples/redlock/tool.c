#include "tool.h"

#include "event.h"
#include "plain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool speaks_json;

void tool_speak_json(void) {
    speaks_json = true;
}

static void say(const char *format, va_list values) {
    char line[1024];
    char safe[PLAIN_ROOM * sizeof(line)];

    vsnprintf(line, sizeof(line), format, values);
    if (speaks_json) {
        struct event event;

        event_begin(&event, "message");
        json_text(&event.json, "text", line);
        event_end(&event);
    } else {
        plain_copy(safe, sizeof(safe), line);
        fprintf(stderr, "redlock: %s\n", safe);
    }
}

void tool_say(const char *format, ...) {
    va_list values;

    va_start(values, format);
    say(format, values);
    va_end(values);
}

void tool_usage(const char *format, ...) {
    va_list values;

    va_start(values, format);
    say(format, values);
    va_end(values);
    if (!speaks_json) {
        fputs("Try \"redlock --help\".\n", stderr);
    }
    exit(TOOL_USAGE);
}

void tool_refused(const char *service) {
    tool_say("%s: %s", service, strerror(errno));
    exit(TOOL_SYSTEM);
}

int tool_flush(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    tool_say("cannot write: %s", strerror(errno));
    return code == TOOL_OK ? TOOL_SYSTEM : code;
}
