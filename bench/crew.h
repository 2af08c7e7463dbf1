/*
 * The threads of a run: each has a loop, a client, and locks of its own. Nothing is shared but the
 * muster, at which all threads wait until the last is ready, and counts that the progress line
 * reads.
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
 * Runs the load in so many threads, the first of which is the caller's with its `base`, and adds
 * up their results. The rate is shared out; `crew` and `thread` of the settings are filled in.
 * Returns -1, after a message on stderr, when there is no result.
 */
int crew_run(struct event_base *base, const struct load_kind *kind,
             const struct measure_settings *settings, size_t threads,
             struct measure_result *result);

/* Tell the crew that one thread is ready; that one has given up, and the others are to. */
void crew_muster(struct crew *crew);
void crew_fail(struct crew *crew);

/* Return whether all threads are ready; whether one has given up. */
bool crew_is_complete(const struct crew *crew);
bool crew_has_failed(const struct crew *crew);

/* Returns the count of a thread's cycles, in a cache line of its own. */
_Atomic uint64_t *crew_done(struct crew *crew, size_t thread);

#endif
