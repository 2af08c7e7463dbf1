/* The messages of tool.h in the gateway's name, for the files shared with `redlock`. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *format, va_list values) {
    char line[1024];

    vsnprintf(line, sizeof(line), format, values);
    fprintf(stderr, "redlock-gateway: %s\n", line);
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
    fputs("Try \"redlock-gateway --help\".\n", stderr);
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
