/*
 * The threads of a run: each has its own loop, client and locks. They share only the muster, at
 * which all threads wait until the last is ready, and the counts for the progress line.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include "measure.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crew;

/*
 * Runs the load in the given number of threads, the first of which is the caller's with its `base`,
 * and adds up their results. Divides the rate among the threads; fills in `crew` and `thread` of
 * the settings. Returns -1 if there is no result, after a message on stderr.
 */
int crew_run(struct event_base *base, const struct load_kind *kind,
             const struct measure_settings *settings, size_t threads,
             struct measure_result *result);

/* Report that one thread is ready; that one has given up, so that the others give up too. */
void crew_muster(struct crew *crew);
void crew_fail(struct crew *crew);

/* Return whether all threads are ready; whether one has given up. */
bool crew_is_complete(const struct crew *crew);
bool crew_has_failed(const struct crew *crew);

/* Returns the count of a thread's cycles, in a cache line of its own. */
_Atomic uint64_t *crew_done(struct crew *crew, size_t thread);

#endif
