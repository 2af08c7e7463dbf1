/*
 * Clients that acquire one lock over and over, until each has had the lock in all of its turns, or
 * the contest is over: the work of each process of a crew in a race.
 */
#ifndef REDLOCK_TEST_CONTEST_H
#define REDLOCK_TEST_CONTEST_H

#include "harness.h"

#include <stdatomic.h>

struct contest {
    redlock_request request;    /* waits for ever, whatever wait_ms says */
    size_t turns;               /* the most turns of each client */
    bool usual_delays;          /* retries after a client's default delays; otherwise very soon */
    unsigned stay;              /* extensions before the release, so that others try meanwhile */
    bool (*is_over)(void *arg); /* no turn begins any more; NULL: only turns end the contest */
    void (*on_in)(struct call *acquisition, void *arg);
    void (*on_out)(struct call *acquisition, void *arg); /* called right before a release */
    void *arg;
};

/*
 * Runs `clients` clients, on a fixture of their own; counts their turns in `done`. An exit status.
 */
int contest_run(const struct contest *contest, char **uris, size_t uri_count, size_t clients,
                atomic_size_t *done);

#endif
