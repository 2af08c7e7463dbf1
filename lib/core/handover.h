/*
 * A held lease that is handed over from one request of a client to the next, while its token stays
 * at the nodes. Requests that wait for a handover are QUEUED without a round.
 *
 *  - A silent handover sends nothing, because nothing has to change at the nodes. Every request
 *    checks the validity again. A fenced lock goes on with the next fence of the range that its
 *    acquisition took.
 *  - Any other handover takes a round of RAISE: the range is used up, the validity may be nearly
 *    over, or the TTL differs. The round takes the next range.
 */
#ifndef REDLOCK_CORE_HANDOVER_H
#define REDLOCK_CORE_HANDOVER_H

#include "core/lease_state.h"
#include "core/update.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns whether another request may take the lease over, silently or by a round. */
bool handover_is_possible(const struct lease *from, const struct lease *to, uint64_t now);

/*
 * Returns whether a lease whose handover is possible can go to a request on the same terms without
 * a round, with nearly as much validity as a newly acquired lock has.
 */
bool handover_is_silent(const struct lease *from, const struct lease *to, uint64_t now);

/*
 * Hands the lease over to the next request, and ends the lease of the request that releases it. The
 * caller hands over the token and, if nothing is sent, the round under way.
 */
void handover_move(struct lease *from, struct lease *to, uint64_t now, struct lease_update *ended,
                   struct lease_update *begun);

#endif
