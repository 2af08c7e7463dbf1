/*
 * A timer of the application, due every 10 ms, that measures how late it fires: for as long, other
 * code has held up the loop.
 *
 * Each tick that was due counts, also those that came due while the loop was held up: 770 ms give
 * 77 samples, from 770 ms down to 10 ms, instead of one among hundreds of punctual ones.
 */
#ifndef BENCH_LOOP_LAG_H
#define BENCH_LOOP_LAG_H

#include <stdint.h>

struct event_base;
struct histogram;
struct loop_lag;

struct loop_lag *loop_lag_create(struct event_base *base);
void loop_lag_destroy(struct loop_lag *lag);

/* Start, and stop, the ticks; loop_lag_stop counts the ticks that are due. */
void loop_lag_start(struct loop_lag *lag);
void loop_lag_stop(struct loop_lag *lag);

/*
 * Excludes a hold-up that the benchmark itself caused and that ends now: the ticks that came due
 * during the hold-up do not count. One tick is due now, as the loop is about to be back.
 */
void loop_lag_exclude(struct loop_lag *lag);

/* Returns the lateness, in ns, of each tick that counts. */
const struct histogram *loop_lag_lateness(const struct loop_lag *lag);

/*
 * Returns the maximum CPU time of this process, in ns, behind a late tick: spent since the timer
 * fired before, and no more than the tick was late. For the rest of the lateness the process waited
 * for a processor, or slept.
 */
uint64_t loop_lag_work_ns(const struct loop_lag *lag);

/* Returns the maximum lateness, in ns, of the first ticks of all excluded hold-ups; 0: none. */
uint64_t loop_lag_excluded_ns(const struct loop_lag *lag);

#endif
