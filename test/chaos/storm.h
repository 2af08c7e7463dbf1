/* The nemeses at work: a schedule of faults, victims and durations, drawn from the seed. */
#ifndef REDLOCK_CHAOS_STORM_H
#define REDLOCK_CHAOS_STORM_H

#include "nemesis.h"
#include "stage.h"

#define STORM_FAULTS 4 /* the maximum of simultaneous faults */

struct fault {
    enum nemesis nemesis;
    uint64_t heal_ns; /* the end of the fault; 0: unused */
    uint32_t masters; /* mask of the victims */
    uint64_t clients; /* mask of the victims */
};

struct storm {
    struct stage *stage;
    uint64_t random;
    uint64_t next_ns; /* the time of the next fault */
    struct fault faults[STORM_FAULTS];
    uint64_t counts[NEMESES];
};

void storm_begin(struct storm *storm, struct stage *stage);

/* Begins and ends the faults that are due. Returns 0; nonzero if a process cannot be restarted. */
int storm_turn(struct storm *storm);

/* Ends all faults. */
int storm_end(struct storm *storm);

#endif
