/* What the masters hold, by asking them. Nobody's word is taken for it. */
#ifndef DEMO_LOOK_H
#define DEMO_LOOK_H

#include "demo_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a key holds at one master, to be freed; NULL without the key, and of one that was killed. */
char *look_token(struct stage *stage, size_t master, const char *key);

/* How many masters hold the key with the token that most of them have, or had: one holder's. */
size_t look_holders(struct stage *stage, const char *key);

/* What is left of the key's time at one master, by its own clock; 0 without the key. */
uint64_t look_time_left(struct stage *stage, size_t master, const char *key);

/* How many masters answer the command like this. */
size_t look_count_answers(struct stage *stage, const char *command, const char *expected);

/* Runs the loop until all of them do. Whether they did, in the end. */
bool look_all_answer(struct stage *stage, const char *command, const char *expected);

#endif
