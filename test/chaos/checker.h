/*
 * Reads what the clients logged, and finds what must not be.
 *
 * Two measures. Overlaps of *validity*: two holds of one key that were both valid, by the library's
 * own word, at the same time: never, while the assumptions hold. Overlaps of *use*: the time from
 * reading the set to having written it; a process that is paused in between may write after its
 * validity, which no lock can prevent. So lost updates are told apart: those in which somebody
 * wrote after his validity, and those that happened within everybody's validity.
 */
#ifndef REDLOCK_CHAOS_CHECKER_H
#define REDLOCK_CHAOS_CHECKER_H

#include "board.h"

#include <stdint.h>

#define STATUSES 16 /* more than there are; by the status's number without its sign */
#define MAX_EXAMPLES 5

struct overlap {
    uint32_t key;
    uint64_t holds[2];
    double ms;
};

struct verdict {
    uint64_t acquired;
    uint64_t extended[STATUSES];
    uint64_t released[STATUSES];
    uint64_t lost[STATUSES];
    uint64_t failed[STATUSES];
    uint64_t renewals; /* of the watchdog, and extensions, that were noticed */
    uint64_t overlaps; /* of validity */
    uint64_t use_overlaps;
    uint64_t added;        /* elements whose writer knows that they are in the set */
    uint64_t late_writes;  /* of them: written after the validity of their hold */
    uint64_t lost_updates; /* of them: not in the set */
    uint64_t lost_in_time; /* of them: nobody who touched the set meanwhile wrote late */
    struct overlap examples[MAX_EXAMPLES]; /* of validity */
};

/* Reads the log of each client from `folder`. Other than 0: the logs make no sense; it said why. */
int checker_run(struct verdict *verdict, const char *folder, const struct options *options,
                struct board *board);

#endif
