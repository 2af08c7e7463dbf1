/*
 * A timer of the application, due every 10 ms, that measures how late it fires: for as long have
 * others held up the loop.
 *
 * Each tick that was due counts, also those that came due while the loop was held up: 770 ms are
 * 77 samples, from 770 ms down to 10 ms, and not one among hundreds of punctual ones.
 */
#ifndef BENCH_PULSE_H
#define BENCH_PULSE_H

#include <stdint.h>

struct event_base;
struct histogram;
struct pulse;

/* NULL, after a message on stderr, when that is impossible. */
struct pulse *pulse_create(struct event_base *base);
void pulse_destroy(struct pulse *pulse);

/* Ticks from now on; ticks no more, and counts what is due. */
void pulse_start(struct pulse *pulse);
void pulse_stop(struct pulse *pulse);

/*
 * Forgives a hold-up of the benchmark's own making that ends now: the ticks that came due during it
 * do not count. One tick is due now, as the loop is about to be back.
 */
void pulse_forgive(struct pulse *pulse);

/* Nanoseconds late, for each tick that counts. */
const struct histogram *pulse_lateness(const struct pulse *pulse);

/*
 * The most CPU time of this process that stands behind a late tick: spent since the timer fired
 * before, and no more than the tick was late. For the rest of its lateness the process waited for
 * a processor, or slept.
 */
uint64_t pulse_work_ns(const struct pulse *pulse);

/* How late the first tick was that a hold-up was forgiven, the worst of them; 0: none. */
uint64_t pulse_forgiven_ns(const struct pulse *pulse);

#endif
