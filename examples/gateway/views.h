/* Locks, votes and inspections as JSON. All functions return NULL when out of memory. */
#ifndef VIEWS_H
#define VIEWS_H

#include <jansson.h>
#include <redlock.h>

struct gateway;
struct hold;

/* Describes a held lock for its holder, with the id. */
json_t *lock_json(const struct hold *hold);

/* Describes the votes of the lock's last round, with reasons. */
json_t *lock_votes(const redlock_lock *lock);

/* Describes an inspection: the quorum's result, each node's answer, the holds of this gateway. */
json_t *view_json(const struct gateway *gateway, const char *key, const redlock_view *view);

/* Describes why nodes did not answer. */
json_t *view_nodes(const redlock_view *view);

/* Describes a hold for others, without the id. */
json_t *hold_json(const struct hold *hold);

#endif
