/* Reports the result of a run, for people and as JSON. */
#ifndef REDLOCK_CHAOS_REPORT_H
#define REDLOCK_CHAOS_REPORT_H

#include "checker.h"
#include "storm.h"

struct outcome {
    const struct options *options;
    const struct storm *storm;
    const struct verdict *verdict;
    double seconds;
    const char *failure; /* the violation found; NULL: none */
};

int report_print(const struct outcome *outcome);

#endif
