/*
 * Cycles on a client that all threads share (redlock/mt.h). Each thread blocks in its calls, with
 * one lock at a time; or none does, and callbacks begin what follows, on the library's thread.
 */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H

#include "measure.h"

/* What measure_run does if the settings have such a client. */
int shared_measure(struct event_base *base, const struct measure_settings *settings,
                   struct measure_result *result);

#endif
