/*
 * Clients that acquire one lock again and again until each has had all its turns, or the contest is
 * over. Each process of a crew runs one in a race.
 */
#ifndef REDLOCK_TEST_CONTEST_H
#define REDLOCK_TEST_CONTEST_H

#include "harness.h"

#include <stdatomic.h>

struct contest {
    redlock_request request; /* wait_ms is ignored: clients wait forever */
    size_t turns;            /* limit of turns for each client */
    /* retries use a client's default delays; otherwise they follow almost at once */
    bool usual_delays;
    unsigned stay; /* extensions before the release, which give others time to try */
    /* returns whether no more turns may begin; NULL: only turns end the contest */
    bool (*is_over)(void *arg);
    void (*on_in)(struct call *acquisition, void *arg);
    void (*on_out)(struct call *acquisition, void *arg); /* called right before a release */
    void *arg;
};

/*
 * Runs `clients` clients on a fixture of their own, and counts their turns in `done`. Returns an
 * exit status.
 */
int contest_run(const struct contest *contest, char **uris, size_t uri_count, size_t clients,
                atomic_size_t *done);

#endif
