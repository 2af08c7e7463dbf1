/* What clients go through while something fails. */
#ifndef REDLOCK_TORTURE_SCENARIOS_H
#define REDLOCK_TORTURE_SCENARIOS_H

#include "rig.h"

struct scenario {
    const char *name;
    unsigned servers;
    void (*run)(struct rig *rig);
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

#endif
