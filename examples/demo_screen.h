/* Writes the demo's output to the terminal. */
#ifndef DEMO_SCREEN_H
#define DEMO_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Prints a title, such as "1. Acquire", and an empty line. */
void screen_title(size_t number, const char *title);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a claim and whether it is true. Returns `is_so`. */
bool check(bool is_so, const char *statement);

#endif
