/*
 * One run: a loop, of libevent or of the library, the masters, and a clock. Time is the program's
 * own, for the library, for libevent and for the masters; it advances slightly with each turn, and
 * random numbers restart. So a run takes only as long as its work, and the n-th request is always
 * the same.
 *
 * A failed check ends the process: the parent reports the run, and the command that repeats it.
 */
#ifndef REDLOCK_TORTURE_WORLD_H
#define REDLOCK_TORTURE_WORLD_H

#include "check.h"

#include <event2/event.h>
#include <redlock/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Begins a run, on the library's pollable loop or on libevent's, which the first run creates. */
void world_begin(bool is_pollable);

/* Ends a run, and checks that no event and no descriptor of the library is left. */
void world_end(void);

bool world_is_pollable(void);
struct event_base *world_loop(void);

/*
 * Returns the pollable loop, which the first call of a run creates. NULL, with errno: refused; the
 * next call tries again.
 */
redlock_loop *world_pollable(void);

/* Returns the time of the run, in nanoseconds. */
uint64_t world_now(void);

/* Runs one iteration of the loop, before which the masters answer. */
void world_turn(void);

/* Turns until the condition holds; fails, naming `what`, when that takes absurdly long. */
void world_wait(bool (*condition)(const void *arg), const void *arg, const char *what);

/* Lets about `ms` milliseconds pass. */
void world_pass_ms(unsigned ms);

#endif
