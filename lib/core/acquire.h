/*
 * An acquisition: tries, until one is granted or none follows. In states ACQUIRING, RAISING,
 * BACKOFF and DIAGNOSING; a try that succeeds hands the lease over to core/hold.h. A try that asks
 * for an entry in the queue goes on in core/queue.h as long as its round is open.
 *
 * A try is granted when a quorum has granted it and a fresh reading of the clock leaves enough
 * validity. A fenced lock also needs the counters of a quorum to agree; otherwise a quorum is first
 * raised to the largest of them (RAISING). Any later winner shares a node with that quorum, whose
 * counter was just the fence before the key left it. Grants that were pushed are confirmed by the
 * same round: nodes keep a key that they have pushed for the short time of a reservation only.
 *
 * A try that failed is undone at each node that may have granted it, in the same step. The next one
 * comes after a random delay (core/tries.h); with permits at once, for another permit, as long as
 * the nodes tell of one that is free. After the last try the nodes that denied it are asked what
 * they hold (DIAGNOSING), for the report.
 */
#ifndef REDLOCK_CORE_ACQUIRE_H
#define REDLOCK_CORE_ACQUIRE_H

#include "core/lease_state.h"
#include "core/update.h"

/*
 * Permit retries in a row before a pause: otherwise requests that compete for the last permit would
 * spin.
 */
#define ACQUIRE_PERMIT_RETRIES_MAX 4

/* Sends the first try of a lease that is filled in. */
void acquire_begin(struct lease *lease, uint64_t now, struct lease_update *update);

/* Take the verdict of the round of ACQUIRING, and of the round of RAISING. */
void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);
void acquire_raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                           struct lease_update *update);

/* Sends a try under a fresh token. */
void acquire_try(struct lease *lease, uint64_t now, struct lease_update *update);

/* Sends the round of a try. */
void acquire_ask(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Makes grants of a quorum, for the lease's token, last for a TTL from now on, and its counters
 * agree on a fence, which is at least `lease->fence`.
 */
void acquire_confirm(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends the tries, the last of which was `round`: asks the nodes that denied what they hold. */
void acquire_give_up(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

/* Sends the next try after the pause of BACKOFF; fails if a busy loop came back too late for it. */
void acquire_again(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends the acquisition without success, and tells `status`. */
void acquire_fail(struct lease *lease, redlock_status status, uint64_t now,
                  struct lease_update *update);

#endif
