/* The command SET NX, which takes a lock of one key that needs no script, at each node. */
#ifndef REDLOCK_ROUND_SET_H
#define REDLOCK_ROUND_SET_H

#include "round/flight.h"

/*
 * Sends a flight's SET to `nodes`, a mask, now. Nodes that cannot be sent it vote UNREACHABLE or
 * REFUSED inside this call.
 */
void set_send(struct flight *flight, uint32_t nodes);

#endif
