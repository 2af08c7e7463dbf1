/* The nemeses at work: a schedule drawn from the seed of which fault, on whom, and for how long. */
#ifndef REDLOCK_CHAOS_STORM_H
#define REDLOCK_CHAOS_STORM_H

#include "nemesis.h"
#include "stage.h"

#define STORM_FAULTS 4 /* at a time */

struct fault {
    enum nemesis nemesis;
    uint64_t heal_ns; /* 0: this place is free */
    uint32_t masters; /* one bit each */
    uint64_t clients; /* the same */
};

struct storm {
    struct stage *stage;
    uint64_t random;
    uint64_t next_ns; /* when the next fault is due */
    struct fault faults[STORM_FAULTS];
    uint64_t counts[NEMESES];
};

void storm_begin(struct storm *storm, struct stage *stage);

/* Does what is due. Other than 0: a process could not be started again. */
int storm_turn(struct storm *storm);

/* Heals all. */
int storm_end(struct storm *storm);

#endif
