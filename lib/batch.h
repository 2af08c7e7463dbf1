/*
 * Calls of a script that are collected during a turn of the loop: the releases, or renewals, of
 * many locks go to a node as one command. Each lock's answer is a vote in its own round.
 */
#ifndef REDLOCK_BATCH_H
#define REDLOCK_BATCH_H

#include "context.h"
#include "flight.h"
#include "wire/script.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct pool_kind batch_kind; /* its context is the client's context */

/*
 * Has a script called for a flight's keys and token, and `ttl_ms`, at `nodes`, in this turn: at
 * those of them that still are members.
 */
void batch_add(struct context *context, enum script script, uint32_t nodes, struct flight *flight);

/* The same in a call of its own, at once. */
void batch_send_alone(struct context *context, enum script script, uint32_t nodes,
                      struct flight *flight);

/*
 * Whether a call for one of these keys may be waiting to be sent. Whoever sends another command for
 * the key must then have it sent first: a key is released before it is acquired again, except on a
 * node that lacks the script and is sent the call once more. May be true without need, rarely.
 */
bool batch_may_hold(const struct context *context, const struct key *keys);

/* Whether a call that looks at so many keys, and has so many bytes, takes no further lock. */
bool batch_is_full(const struct context *context, unsigned reads, size_t bytes);

/* Sends what was collected: what takes keys goes last. */
void batch_send_all(struct context *context);

#endif
