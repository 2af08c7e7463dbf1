/*
 * A held lease that goes from one request of a client to the next, while the token stays at the
 * nodes. Requests that wait for this are QUEUED without a round.
 *
 *  - without a message, where nothing has to change at the nodes; every request checks the validity
 *    anew;
 *  - otherwise by a round of RAISE: a fenced lock needs a counter of its own, and the validity may
 * be nearly over, or the TTL another.
 */
#ifndef REDLOCK_CORE_HANDOVER_H
#define REDLOCK_CORE_HANDOVER_H

#include "core/lease_state.h"
#include "core/update.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns whether another request may have the lease, with a message or without. */
bool handover_is_possible(const struct lease *from, const struct lease *to, uint64_t now);

/*
 * Returns whether a lease whose handover is possible can go on as that of a request on the same
 * terms without a message, with nearly as much validity as a lock that is acquired anew.
 */
bool handover_is_silent(const struct lease *from, const struct lease *to, uint64_t now);

/*
 * Makes a lease the next request's, and ends the one of the request that releases it. The caller
 * hands over the token and, where nothing is sent, the round under way.
 */
void handover_move(struct lease *from, struct lease *to, uint64_t now, struct lease_update *ended,
                   struct lease_update *begun);

#endif
