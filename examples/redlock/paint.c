#include "paint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_colours(void) {
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return (no_colour == NULL || no_colour[0] == '\0') && isatty(STDOUT_FILENO) &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *paint(enum paint colour) {
    static const char *const codes[] = {[PAINT_END] = "\033[0m",
                                        [PAINT_GOOD] = "\033[32m",
                                        [PAINT_WARN] = "\033[33m",
                                        [PAINT_BAD] = "\033[31m",
                                        [PAINT_STRONG] = "\033[1m"};

    return has_colours() ? codes[colour] : "";
}
