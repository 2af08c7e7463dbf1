/*
 * Measures uncontended cycles before, while and after other clients wait for a key that is not
 * among those of the cycles.
 */
#ifndef BENCH_MIXED_H
#define BENCH_MIXED_H

#include "measure.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct masters;

/* The stretches of a round. */
enum mixed_stretch {
    MIXED_BEFORE,  /* the others are idle, and have not waited yet */
    MIXED_WAITING, /* all others are in the queue of one key */
    MIXED_AFTER,   /* all others have left the queue, and are idle */
    MIXED_STRETCHES
};

struct mixed_settings {
    struct masters *masters;
    struct measure_settings cycles; /* duration_s: of all rounds, for each kind of stretch */
    size_t waiters;
};

struct mixed_result {
    /* Medians of the rounds, by stretch. A ratio is one to the stretch before, in the same round.
     */
    double cycles_per_s[MIXED_STRETCHES];
    double ratio[MIXED_STRETCHES];
    double masters_cpu_us[MIXED_STRETCHES]; /* CPU time of the masters for each cycle */
    uint64_t errors; /* number of failed acquisitions and releases, including warm-ups */
};

/*
 * Runs the benchmark and fills in *result. Returns -1 if there is no result, after a message on
 * stderr.
 */
int mixed_run(struct event_base *base, const struct mixed_settings *settings,
              struct mixed_result *result);

#endif
