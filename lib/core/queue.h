/*
 * A lease that waits in the queue. Each node keeps a queue of the key's waiters, ordered by their
 * tickets, and gives a free key to the first of them (Maekawa, "A sqrt(N) Algorithm for Mutual
 * Exclusion in Decentralized Systems", 1985: quorum members queue requests and grant the next on
 * release; here with leases). A node that has denied grants by a push, which is a vote in the round
 * of QUEUE; the round stays open for it. The lease is in ACQUIRING until a quorum of the nodes has
 * answered, then in QUEUED: nodes that are slow, or do not answer, delay nothing from there on.
 *
 * Two timers run beside the deadline of the round:
 *
 *  - poll: asks for the entry again, under the same token. A push may be lost, a holder may let the
 *    key expire, and a new node has no queue yet. Asking makes the node give a free key to the
 *    first in its queue.
 *  - requeue: nodes may have granted to several waiters, each without a quorum. A waiter that has
 *    grants but no quorum for this long gives them up for an entry under a new token and the same
 *    ticket. Each node then grants to its smallest ticket, on which all nodes agree. The time
 *    doubles with each requeue.
 *
 * While a quorum keeps the key for a holder, the lease only enters the queues: at a node that lacks
 * the holder's key it would keep out the holder's next renewal, and gain nothing.
 *
 * Nodes do not push permits, but report which ones are free (scripts/parts/permits.lua). A lease
 * asks for one when a quorum has offered it, or has it free; polls and requeues take none. It keeps
 * its place in the queue, but needs a new token, because each permit is a key of its own.
 */
#ifndef REDLOCK_CORE_QUEUE_H
#define REDLOCK_CORE_QUEUE_H

#include "core/lease_state.h"
#include "core/update.h"

#include <stdbool.h>

/* Returns whether `round` is an open QUEUE that the lease waits for. */
bool queue_is_waiting(const struct lease *lease, const struct round *round);

/*
 * Returns whether a vote that leaves the round open calls for queue_votes: a grant, and any vote
 * once a quorum has answered, since a node also reports in this way when the key will be free.
 */
bool queue_heeds(const struct round *round, redlock_vote vote);

/* Handles votes, or pushes, that did not decide the round. */
void queue_votes(struct lease *lease, const struct round *round, uint64_t now,
                 struct lease_update *update);

/* Returns whether a quorum has answered, or was late: the others need not be waited for. */
bool queue_is_answered(const struct round *round);

/* Continues after the late members of a round were expired, which left it open. */
void queue_expired(struct lease *lease, const struct round *round, uint64_t now,
                   struct lease_update *update);

/* Handles the firing of the timer in QUEUED, except after lease_wait. */
void queue_woken(struct lease *lease, struct round *round, const struct round_silence *silence,
                 uint64_t now, struct lease_update *update);

/*
 * Handles a notification that the key has changed at the nodes of `round->changed`: asks for the
 * entry again if a quorum may grant it with the help of those nodes.
 */
void queue_key_changed(struct lease *lease, const struct round *round, uint64_t now,
                       struct lease_update *update);

/*
 * Asks for the entry again, because a node has started a new queue: at once if a quorum cannot
 * grant the key without it, otherwise soon.
 */
void queue_can_enter(struct lease *lease, const struct round *round, uint64_t now,
                     struct lease_update *update);

#endif
