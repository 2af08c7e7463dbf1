/*
 * The library's surroundings, in the hands of the input: the clock, the timers, the names and the
 * random numbers (the headers of lib/io, implemented anew). Time passes when the target says so,
 * and at once; one input always has one effect. Sockets and the peers on them, hiredis and
 * libevent, are real.
 */
#ifndef REDLOCK_FUZZ_WORLD_H
#define REDLOCK_FUZZ_WORLD_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* As at the beginning of each run. Nothing may be left of the run before. */
void world_begin(void);

/* Asserts that no timer and no name lookup is left. */
void world_end(void);

/* Lets time pass. */
void world_pass(uint64_t nanos);

/* One iteration of the loop: sockets, names, then the timers that are due. */
void world_turn(struct event_base *base);

/* From the `after`th arming of a timer on, `count` of them fail for want of memory. */
void world_refuse_timers(unsigned after, unsigned count);

/* Whether there is a source of random numbers. */
void world_has_random(bool has);

/* For world_turn: answers the lookups that are due. Of names.c. */
void names_turn(void);
void names_end(void);

/* Of random.c. */
void random_begin(void);

#endif
