/*
 * A lease that waits in the queue. Each node keeps a queue of the key's waiters, by their tickets,
 * and gives a free key to the first of them (Maekawa, "A sqrt(N) Algorithm for Mutual Exclusion in
 * Decentralized Systems", 1985: quorum members queue requests and grant the next on release; here
 * with leases). The grant of a node that has denied arrives as a push, a vote in the round of QUEUE
 * that stays open meanwhile. In state ACQUIRING until a quorum of the nodes has answered, then in
 * QUEUED: nodes that are slow, or do not answer, delay nothing of what follows.
 *
 * Two timers beside the deadline of the round:
 *
 *  - poll: asks for the entry again, under the same token. A push may be lost, a holder may let the
 *    key expire, and a new node has no queue yet: whoever asks has the node give a free key to the
 *    first in the queue.
 *  - settle: nodes may have granted to several waiters, each without a quorum. Who has grants but
 *    no quorum for this long gives them up for an entry under a new token and the same ticket; each
 *    node then grants to its smallest ticket, and all agree on that. Doubled with each requeue.
 *
 * Nodes do not push permits, but tell which one has come free (scripts/parts/permits.lua). A lease
 * asks for it when a quorum has told of one, or after the time of `settle`: under a new token,
 * which a token of another key must be, in the same place.
 */
#ifndef REDLOCK_CORE_QUEUE_H
#define REDLOCK_CORE_QUEUE_H

#include "core/lease_state.h"
#include "core/update.h"

#include <stdbool.h>

/* Returns whether the round of QUEUE is the one that the lease waits for. */
bool queue_is_waiting(const struct lease *lease, const struct round *round);

/*
 * Returns whether queue_votes is due for a vote that leaves the round open: for a grant, and for
 * any vote once a quorum has answered, since a node also tells in this way when the key will be
 * free.
 */
bool queue_heeds(const struct round *round, redlock_vote vote);

/* Takes votes, or pushes, that did not decide the round. */
void queue_votes(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update);

/* Goes on after the deadline of a round that its votes left open. */
void queue_expired(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update);

/* Takes the firing of the timer in QUEUED; `round` is NULL after lease_wait. */
void queue_woken(struct lease *lease, struct round *round, uint64_t now,
                 struct lease_update *update);

/*
 * Takes a notification that the key has changed at the nodes of `round->changed`: asks for the
 * entry again when, with those, a quorum may grant it.
 */
void queue_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update);

/* Asks for the entry again at once: the queue of a node may have begun anew. */
void queue_ask_again(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

#endif
