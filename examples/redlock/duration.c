#include "duration.h"

#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YEAR_MS UINT64_C(31536000000)

static uint64_t ms_of_unit(const char *unit) {
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            return units[i].ms;
        }
    }
    return 0;
}

bool duration_read(const char *text, uint64_t *ms) {
    char *end;
    double number;
    uint64_t unit;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.') {
        return false;
    }
    errno = 0;
    number = strtod(text, &end);
    unit = ms_of_unit(end);
    if (errno != 0 || end != text + strspn(text, "0123456789.") ||
        (unit == 0 && (number != 0 || *end != '\0')) ||
        !(number * (double)unit <= (double)YEAR_MS)) {
        return false;
    }
    *ms = (uint64_t)(number * (double)unit + 0.5);
    return true;
}

uint64_t duration_of_option(const char *option, const char *text) {
    uint64_t ms;

    if (!duration_read(text, &ms)) {
        tool_usage("%s %s: write a duration such as 500ms, 10s or 2m", option, text);
    }
    return ms;
}

const char *duration_write(char text[DURATION_TEXT], uint64_t ms) {
    uint64_t seconds = ms / 1000;

    if (ms < 1000) {
        snprintf(text, DURATION_TEXT, "%" PRIu64 " ms", ms);
    } else if (seconds < 60) {
        snprintf(text, DURATION_TEXT, "%" PRIu64 ".%" PRIu64 " s", seconds, ms % 1000 / 100);
    } else if (seconds < 3600) {
        snprintf(text, DURATION_TEXT, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
    } else {
        snprintf(text, DURATION_TEXT, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600,
                 seconds % 3600 / 60);
    }
    return text;
}
