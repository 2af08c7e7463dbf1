/* Asks the masters themselves what they hold. */
#ifndef DEMO_LOOK_H
#define DEMO_LOOK_H

#include "demo_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the key's value at one master, to be freed; NULL when the key is not there, or the master
 * was killed.
 */
char *look_token(struct stage *stage, size_t master, const char *key);

/*
 * Returns the number of masters that hold the key with the token that most of them have: the token
 * of one holder.
 */
size_t look_holders(struct stage *stage, const char *key);

/* Returns the rest of the key's TTL at one master, in ms; 0 when the key is not there. */
uint64_t look_time_left(struct stage *stage, size_t master, const char *key);

/* Returns the number of masters that answer `command` with `expected`. */
size_t look_count_answers(struct stage *stage, const char *command, const char *expected);

/*
 * Runs the loop until all masters answer `command` with `expected`. Returns whether they did in
 * time.
 */
bool look_all_answer(struct stage *stage, const char *command, const char *expected);

#endif
