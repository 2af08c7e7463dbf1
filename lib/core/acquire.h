/*
 * An acquisition: tries, until one is granted or none follows. In states ACQUIRING, RAISING,
 * BACKOFF and SETTLING; a try that succeeds hands the lease over to core/hold.h.
 *
 * A try is granted when a quorum has granted it and a fresh reading of the clock leaves enough
 * validity. A fenced lock also needs the counters of a quorum to agree; otherwise a quorum is first
 * raised to the largest of them (RAISING). Any later winner shares a node with that quorum, whose
 * counter was just the fence before the key left it.
 *
 * A try that failed is undone at each node that may have granted it, in the same step. The next one
 * comes after a random delay (core/tries.h); with permits at once, for another permit, as long as
 * the nodes tell of one that is free. After the last try the nodes that denied it are asked what
 * they hold (SETTLING), for the report.
 */
#ifndef REDLOCK_CORE_ACQUIRE_H
#define REDLOCK_CORE_ACQUIRE_H

#include "core/lease_state.h"
#include "core/update.h"

/* Sends the first try of a lease that is filled in. */
void acquire_begin(struct lease *lease, uint64_t now, struct lease_update *update);

/* Take the verdict of the round of ACQUIRING, and of the round of RAISING. */
void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);
void acquire_raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                           struct lease_update *update);

/* Sends the next try after the pause of BACKOFF; fails if a busy loop came back too late for it. */
void acquire_again(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends the acquisition without success, and tells `status`. */
void acquire_fail(struct lease *lease, redlock_status status, uint64_t now,
                  struct lease_update *update);

#endif
