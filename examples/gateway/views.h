/* Locks, votes and inspections as JSON. All functions return NULL without memory. */
#ifndef VIEWS_H
#define VIEWS_H

#include <jansson.h>
#include <redlock.h>

struct gateway;
struct hold;

/* Describes a lock that is held, as answers to its holder do: with the id. */
json_t *lock_json(const struct hold *hold);

/* Tells the votes of the lock's last round, with reasons. */
json_t *lock_votes(const redlock_lock *lock);

/* Tells an inspection: what a quorum says, each node's answer, and the holds of this gateway. */
json_t *view_json(const struct gateway *gateway, const char *key, const redlock_view *view);

/* Tells why nodes did not answer. */
json_t *view_nodes(const redlock_view *view);

/* Tells a hold as others may see it: without the id. */
json_t *hold_json(const struct hold *hold);

#endif
