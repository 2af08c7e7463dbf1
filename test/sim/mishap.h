/*
 * Faults that guards must detect, or cannot detect: servers that restart without their memory,
 * whose clocks jump, or that lose keys while they run.
 */
#ifndef REDLOCK_SIM_MISHAP_H
#define REDLOCK_SIM_MISHAP_H

#include "nemesis.h"

/* Causes one of the faults that the plan allows. */
void mishap_strike(struct nemesis *nemesis);

/*
 * Restarts a server: empty, or from an old snapshot; a durable one with all its keys. The server
 * serves at once, but unless it is durable, clients trust it only after the longest TTL.
 */
void mishap_restart(struct nemesis *nemesis, struct server *server);

/* Makes a replica a master again. */
void mishap_promote(struct nemesis *nemesis, struct server *server);

/*
 * Stops a server until `until`, and ends its connections. The server is then restarted, unless it
 * must stay down for longer.
 */
void mishap_stop(struct nemesis *nemesis, struct server *server, uint64_t until);

#endif
