/*
 * The counters of a client's requests, for redlock_client_stats. Each is incremented where its
 * event is emitted, which costs a few instructions.
 */
#ifndef REDLOCK_LOCK_COUNTS_H
#define REDLOCK_LOCK_COUNTS_H

#include "base/histogram.h"
#include "core/lease_state.h"
#include "core/update.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

struct operation;

/* The number of statuses. */
#define COUNTS_ONE(name, value, text) +1
enum { COUNTS_STATUSES = 0 REDLOCK_STATUS_MAP(COUNTS_ONE) };
#undef COUNTS_ONE

/* A counter for each status; that of `status` is at index -status. */
struct counts_ends {
    uint64_t by[COUNTS_STATUSES];
};

struct counts {
    uint64_t refused, accepted, tries;
    uint64_t let_go; /* locks that the application released while they were held */
    uint64_t renewed, renewals_failed, renewed_late;
    uint64_t pushes, pushes_returned, handovers;
    struct counts_ends acquired, extended, lost, released;
    redlock_histogram acquire, wait, renew, release;
};

static inline void counts_end(struct counts_ends *ends, redlock_status status) {
    ends->by[-status]++;
}

/* A mask of the states whose end is counted: that of a wait, a renewal, or a release. */
#define COUNTS_STATES                                                                              \
    (1u << LEASE_QUEUED | 1u << LEASE_BACKOFF | 1u << LEASE_RENEWING | 1u << LEASE_RELEASING)

/*
 * Counts the end of `before`, one of COUNTS_STATES, before the update that ended it is carried out:
 * `operation` is still the one that was decided, or NULL.
 */
void counts_end_state(struct counts *counts, const struct lease *lease,
                      const struct lease_update *update, enum lease_state before,
                      const struct operation *operation, uint64_t now);

/* Returns whether a request in this state waits in the queue, or for its next try. */
static inline bool counts_as_wait(enum lease_state state) {
    return state == LEASE_QUEUED || state == LEASE_BACKOFF;
}

/* Counts the end of an acquisition, right before it is reported. */
static inline void counts_acquired(struct counts *counts, const struct lease *lease,
                                   redlock_status status, bool has_waited) {
    counts_end(&counts->acquired, status);
    if (status == REDLOCK_OK) {
        histogram_record(has_waited ? &counts->wait : &counts->acquire,
                         lease->completed_at - lease->begun_at);
    }
}

#endif
