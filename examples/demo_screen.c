#include "demo_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BOLD "1"
#define GREEN "32"
#define RED "31"

static bool use_color(void) {
    const char *no_color = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

static void print_colored(const char *color, const char *text) {
    if (use_color()) {
        printf("\033[%sm%s\033[0m", color, text);
    } else {
        fputs(text, stdout);
    }
}

void screen_title(size_t number, const char *title) {
    char line[128];

    snprintf(line, sizeof(line), "%zu. %s", number, title);
    print_colored(BOLD, line);
    printf("\n\n");
    fflush(stdout);
}

void say(const char *format, ...) {
    va_list values;

    fputs("   ", stdout);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    fputc('\n', stdout);
    fflush(stdout);
}

bool check(bool is_so, const char *statement) {
    fputs("   ", stdout);
    print_colored(is_so ? GREEN : RED, is_so ? "[ok]    " : "[failed]");
    printf(" %s\n", statement);
    fflush(stdout);
    return is_so;
}
