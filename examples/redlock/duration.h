/* Durations as people write them: 500ms, 10s, 2m, 1h. */
#ifndef DURATION_H
#define DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a duration of at most 1 year. Refuses numbers without a unit, except 0. */
bool duration_read(const char *text, uint64_t *ms);

/* Reads the argument of an option, or exits with TOOL_USAGE and a message that names the option. */
uint64_t duration_of_option(const char *option, const char *text);

/* Writes a duration as "512 ms", "7.3 s" or "4 min 10 s". Returns `text`. */
#define DURATION_TEXT 32
const char *duration_write(char text[DURATION_TEXT], uint64_t ms);

#endif
