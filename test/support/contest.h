/*
 * Clients that want the same lock over and over, until each has had it so many times, or the
 * contest is over: what each of the processes of a crew does in a race.
 */
#ifndef REDLOCK_TEST_CONTEST_H
#define REDLOCK_TEST_CONTEST_H

#include "harness.h"

#include <stdatomic.h>

struct contest {
    redlock_request request;    /* it waits for ever, whatever this says */
    size_t turns;               /* of each client, at most */
    bool usual_delays;          /* of a client's defaults; otherwise retries come very soon */
    unsigned stay;              /* extensions until it releases: they pass the time, others try */
    bool (*is_over)(void *arg); /* nobody begins another turn; NULL: that is known by the turns */
    void (*on_in)(struct call *acquisition, void *arg);
    void (*on_out)(struct call *acquisition, void *arg); /* right before it releases */
    void *arg;
};

/* So many clients of a fixture of their own. `done` counts each one's turns. An exit status. */
int contest_run(const struct contest *contest, char **uris, size_t uri_count, size_t clients,
                atomic_size_t *done);

#endif
