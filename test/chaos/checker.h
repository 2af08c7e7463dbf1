/*
 * Reads the logs of the clients, and finds violations of the promises.
 *
 * There are two measures. Overlaps of *validity* are two holds of one key that were valid at the
 * same time according to the library: there are none while the assumptions hold. Overlaps of *use*
 * concern the time from reading the set to having written it: a process that is paused in between
 * may write after its validity, which no lock can prevent. So lost updates are counted in two
 * classes: those in which a client wrote after its validity, and those within the validity of all
 * clients.
 */
#ifndef REDLOCK_CHAOS_CHECKER_H
#define REDLOCK_CHAOS_CHECKER_H

#include "board.h"

#include <stdint.h>

#define STATUSES 16 /* more than all statuses; the index is the status without its sign */
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
    uint64_t renewals; /* number of renewals noticed, by the watchdog or an extension */
    uint64_t overlaps; /* overlaps of validity */
    uint64_t use_overlaps;
    uint64_t added;        /* number of elements in the set, according to their writers */
    uint64_t late_writes;  /* elements written after the validity of their hold */
    uint64_t lost_updates; /* elements that are not in the set */
    uint64_t lost_in_time; /* those lost while no late writer wrote the set */
    struct overlap examples[MAX_EXAMPLES]; /* overlaps of validity */
};

/*
 * Reads the log of each client from `folder`. Returns 0; nonzero, after a message, if logs are
 * broken.
 */
int checker_run(struct verdict *verdict, const char *folder, const struct options *options,
                struct board *board);

#endif
