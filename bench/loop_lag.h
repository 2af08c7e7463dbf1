/*
 * A timer of the application, due every 10 ms, that measures how late it fires: the time for which
 * other code blocked the loop.
 *
 * Each tick counts, also those that came due while the loop was blocked: 770 ms give 77 samples,
 * from 770 ms down to 10 ms, instead of one among hundreds of punctual ones.
 */
#ifndef BENCH_LOOP_LAG_H
#define BENCH_LOOP_LAG_H

#include <stdint.h>

struct event_base;
struct histogram;
struct loop_lag;

struct loop_lag *loop_lag_create(struct event_base *base);
void loop_lag_destroy(struct loop_lag *lag);

/* Start and stop the ticks; loop_lag_stop also counts the ticks that are due. */
void loop_lag_start(struct loop_lag *lag);
void loop_lag_stop(struct loop_lag *lag);

/*
 * Excludes a delay that the benchmark itself caused and that ends now: the ticks that came due
 * during the delay do not count. One tick is due now, because the loop is about to continue.
 */
void loop_lag_exclude(struct loop_lag *lag);

/* Returns the lateness, in ns, of all ticks that count. */
const struct histogram *loop_lag_lateness(const struct loop_lag *lag);

/*
 * Returns the maximum CPU time of this process, in ns, that made a tick late: the time used since
 * the timer last fired, at most the lateness of the tick. For the rest of the lateness the process
 * waited for a processor, or slept.
 */
uint64_t loop_lag_work_ns(const struct loop_lag *lag);

/* Returns the maximum lateness, in ns, of the first ticks of all excluded delays; 0: none. */
uint64_t loop_lag_excluded_ns(const struct loop_lag *lag);

#endif
