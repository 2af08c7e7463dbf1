/*
 * An acquisition: tries, until one is granted or none follows. In the states ACQUIRING, RAISING,
 * BACKOFF and DIAGNOSING. A try that succeeds hands the lease over to core/hold.h. A try that asks
 * for an entry in the wait queue continues in core/queue.h for as long as its round is open.
 *
 * A try is granted when a quorum has granted it and a fresh clock reading leaves enough validity. A
 * fenced lock also needs the counters of a quorum to agree; if they differ, a quorum is first
 * raised to the largest of them (RAISING). Every later winner shares a node with that quorum, whose
 * counter had this fence before the key left the node. The same round confirms pushed grants,
 * because nodes keep a key that they have pushed for a reservation only.
 *
 * A failed try is undone in the same step, at each node that may have granted it. The next try
 * follows after a random delay (core/tries.h), or, for a permit, at once for another permit while
 * the nodes report a free one. After the last try, the nodes that denied it are asked what they
 * hold (DIAGNOSING), for the report.
 */
#ifndef REDLOCK_CORE_ACQUIRE_H
#define REDLOCK_CORE_ACQUIRE_H

#include "core/lease_state.h"
#include "core/update.h"

/*
 * The most permit retries in a row before a pause. Without a bound, requests that compete for the
 * last permit would spin.
 */
#define ACQUIRE_PERMIT_RETRIES_MAX 4

/* Sends the first try of a lease whose fields are set. */
void acquire_begin(struct lease *lease, uint64_t now, struct lease_update *update);

/* Handle the verdict of the round of ACQUIRING, and of the round of RAISING. */
void acquire_decided(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);
void acquire_raise_decided(struct lease *lease, const struct round *round, uint64_t now,
                           struct lease_update *update);

/* Sends a try under a fresh token. */
void acquire_try(struct lease *lease, uint64_t now, struct lease_update *update);

/* Sends the round of a try. */
void acquire_ask(struct lease *lease, uint64_t now, struct lease_update *update);

/*
 * Makes a quorum's grants for the lease's token last for a TTL from now, and makes its counters
 * agree on a fence of at least `lease->fence`.
 */
void acquire_confirm(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends the tries after `round`, the last one: asks the nodes that denied it what they hold. */
void acquire_give_up(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

/* Sends the next try after the pause of BACKOFF. Fails if the loop was too busy to be in time. */
void acquire_again(struct lease *lease, uint64_t now, struct lease_update *update);

/* Ends the acquisition without success, and reports `status`. */
void acquire_fail(struct lease *lease, redlock_status status, uint64_t now,
                  struct lease_update *update);

#endif
