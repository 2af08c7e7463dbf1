/* Reads directly from the masters what they hold. */
#ifndef DEMO_LOOK_H
#define DEMO_LOOK_H

#include "demo_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the key's value at one master, which the caller frees; NULL if the key is missing, or the
 * master was killed.
 */
char *look_token(struct stage *stage, size_t master, const char *key);

/*
 * Returns the number of masters that hold the key with the most frequent token: that of one holder.
 */
size_t look_holders(struct stage *stage, const char *key);

/* Returns the key's remaining TTL at one master, in ms; 0 if the key is missing. */
uint64_t look_time_left(struct stage *stage, size_t master, const char *key);

/* Returns the number of masters that answer `command` with `expected`. */
size_t look_count_answers(struct stage *stage, const char *command, const char *expected);

/*
 * Runs the loop until all masters answer `command` with `expected`. Returns whether they did in
 * time.
 */
bool look_all_answer(struct stage *stage, const char *command, const char *expected);

#endif
