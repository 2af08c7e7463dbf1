/*
 * A scenario over and over, each time with another request failing: the first, the second, and so
 * on until one is never made.
 */
#ifndef REDLOCK_TORTURE_SWEEP_H
#define REDLOCK_TORTURE_SWEEP_H

#include "faults.h"
#include "scenarios.h"

#include <stdbool.h>

/* How a run fails, and how it ends. */
struct form {
    unsigned count;      /* so many requests fail, one after the other */
    bool closes_at_once; /* clients are closed before requests succeed again; else after */
};

extern const struct form sweep_forms[];
extern const unsigned sweep_form_count;

/* Where a sweep is: in memory that the parent sees. */
struct progress {
    unsigned form, n;
    unsigned places; /* requests that failed, each once, in the first form */
};

enum sweep_result {
    SWEEP_PASSED,
    SWEEP_FAILED, /* as for CHECK */
    SWEEP_LEAKED
};

/* True when the n-th request was made, and so failed. Ends the process when a promise is broken. */
bool sweep_run(const struct scenario *scenario, enum fault fault, const struct form *form,
               unsigned n);

/* All runs. Looks for leaks after the last one, or after each, which takes long. */
enum sweep_result sweep_all(const struct scenario *scenario, enum fault fault,
                            struct progress *progress, bool looks_each_time);

#endif
