/*
 * The library's surroundings, controlled by the input: the clock, the timers, the names and the
 * random numbers (the headers of lib/io, reimplemented), and the loop. Time passes at once, and
 * only when the target lets it; an input always has the same effect. Sockets, the peers on them and
 * hiredis are real.
 */
#ifndef REDLOCK_FUZZ_WORLD_H
#define REDLOCK_FUZZ_WORLD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;

/* Begins a run. Nothing of the previous run may be left. */
void world_begin(void);

/* Asserts that no timer, no watched socket and no name lookup is left. */
void world_end(void);

/* Returns what stands for the application's event_base, which nobody looks into. */
struct event_base *world_base(void);

/* Lets time pass. */
void world_pass(uint64_t nanos);

/* poll(2) without waiting. libFuzzer's timer may interrupt it, which is no answer. */
int world_poll(struct pollfd *fds, nfds_t count);

/* Runs one iteration of the loop: sockets, names, then the timers that are due. */
void world_turn(void);

/* Makes the loop refuse to watch a socket `count` times, starting with the `after`th. */
void world_refuse_watches(unsigned after, unsigned count);

/* Sets whether there is a source of random numbers. */
void world_has_random(bool has);

/* Answers the lookups that are due, for world_turn (names.c). */
void names_turn(void);
void names_end(void);

/* Restarts the random numbers (random.c). */
void random_begin(void);

#endif
