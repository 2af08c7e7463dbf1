/*
 * Runs a scenario again and again, each time with another failing request: the first, the second,
 * and so on, until that request is never made.
 */
#ifndef REDLOCK_TORTURE_SWEEP_H
#define REDLOCK_TORTURE_SWEEP_H

#include "faults.h"
#include "scenarios.h"

#include <stdbool.h>

/* The form of a run: its failure, and its end. */
struct form {
    unsigned count;      /* number of consecutive requests that fail */
    bool closes_at_once; /* clients are closed before requests succeed again; false: after */
};

extern const struct form sweep_forms[];
extern const unsigned sweep_form_count;

/* The progress of a sweep, in memory that the parent reads. */
struct progress {
    unsigned form, n;
    unsigned sites; /* number of requests that failed, one in each run of the first form */
};

enum sweep_result {
    SWEEP_PASSED,
    SWEEP_FAILED, /* as for CHECK */
    SWEEP_LEAKED
};

/*
 * Makes one run. Returns whether the n-th request was made; ends the process on a broken promise.
 */
bool sweep_run(const struct scenario *scenario, enum fault fault, const struct form *form,
               unsigned n);

/*
 * Makes all runs in the first `forms` forms. Checks for leaks after the last one, or after each,
 * which takes long.
 */
enum sweep_result sweep_all(const struct scenario *scenario, enum fault fault, unsigned forms,
                            struct progress *progress, bool looks_each_time);

#endif
