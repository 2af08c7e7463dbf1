/*
 * What guards are to notice, or cannot: servers that restart without their memory, whose clocks
 * jump, and which lose keys while they run.
 */
#ifndef REDLOCK_SIM_MISHAP_H
#define REDLOCK_SIM_MISHAP_H

#include "nemesis.h"

/* One of them, as the plan allows. */
void mishap_strike(struct nemesis *nemesis);

/* Ends all connections of a server, which is started anew then, if it is not down for longer. */
void mishap_stop(struct nemesis *nemesis, struct server *server, uint64_t until);

#endif
