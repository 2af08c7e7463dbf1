/* One run: a world from a seed, with its faults, its repair, and its end. */
#ifndef REDLOCK_SIM_RUN_H
#define REDLOCK_SIM_RUN_H

#include "check.h"
#include "plan.h"
#include "world.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct run_result {
    enum cause cause;
    enum invariant violated;
    char violation[512];
    uint64_t events;
    uint64_t simulated; /* ns */
    uint64_t acquired, lost, failed, released, overlaps;
    uint64_t fenced, raised, from_ranges, stayed;
    uint64_t permits_held, permits_second, permits_later;
    uint64_t shared, looks, excused;
    struct waiting waiting;
    uint64_t passed, handed_over;
};

/* Runs one world. `trace` may be NULL. */
void run_seed(uint64_t seed, const struct demand *demand, FILE *trace, struct run_result *result);

#endif
