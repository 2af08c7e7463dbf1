/*
 * A timer of the application, due every 10 ms, that measures how late it fires: for as long, other
 * code has held up the loop.
 *
 * Each tick that was due counts, also those that came due while the loop was held up: 770 ms give
 * 77 samples, from 770 ms down to 10 ms, instead of one among hundreds of punctual ones.
 */
#ifndef BENCH_PULSE_H
#define BENCH_PULSE_H

#include <stdint.h>

struct event_base;
struct histogram;
struct pulse;

struct pulse *pulse_create(struct event_base *base);
void pulse_destroy(struct pulse *pulse);

/* Start, and stop, the ticks; pulse_stop counts the ticks that are due. */
void pulse_start(struct pulse *pulse);
void pulse_stop(struct pulse *pulse);

/*
 * Forgives a hold-up that the benchmark itself caused and that ends now: the ticks that came due
 * during the hold-up do not count. One tick is due now, as the loop is about to be back.
 */
void pulse_forgive(struct pulse *pulse);

/* Returns the lateness, in ns, of each tick that counts. */
const struct histogram *pulse_lateness(const struct pulse *pulse);

/*
 * Returns the maximum CPU time of this process, in ns, behind a late tick: spent since the timer
 * fired before, and no more than the tick was late. For the rest of the lateness the process waited
 * for a processor, or slept.
 */
uint64_t pulse_work_ns(const struct pulse *pulse);

/* Returns the maximum lateness, in ns, of the first ticks of all forgiven hold-ups; 0: none. */
uint64_t pulse_forgiven_ns(const struct pulse *pulse);

#endif
