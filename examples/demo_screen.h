/* What the demo writes on the terminal. */
#ifndef DEMO_SCREEN_H
#define DEMO_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* "1. Acquire", and an empty line. */
void screen_title(size_t number, const char *title);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A claim, and whether it is so, which it returns. */
bool check(bool is_so, const char *claim);

#endif
