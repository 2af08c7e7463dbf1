/*
 * One run: a loop, the masters, and a clock. Time is the program's own, for the library, for
 * libevent and for the masters; it passes a little with each turn, and random numbers begin anew:
 * so a run takes as long as it has to work, and the n-th request is the same one each time.
 *
 * What does not hold ends the process: the parent says which run it was, and how to repeat it.
 */
#ifndef REDLOCK_TORTURE_WORLD_H
#define REDLOCK_TORTURE_WORLD_H

#include "check.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Begins a run: the first one makes the loop. */
void world_begin(void);

/* Nothing of the library's may be left: no event and no descriptor. */
void world_end(void);

struct event_base *world_loop(void);

/* Nanoseconds, by the clock of all. */
uint64_t world_now(void);

/* One iteration of the loop; before it the masters answer. */
void world_turn(void);

/* Turns until the condition holds; when that takes absurdly long, `what` was waited for in vain. */
void world_wait(bool (*condition)(const void *arg), const void *arg, const char *what);

/* Lets about so much time pass. */
void world_pass_ms(unsigned ms);

#endif
