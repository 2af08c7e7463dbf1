/*
 * Client tracking (redis.io/docs/reference/client-side-caching): a server that tells a node's
 * channel when a key that is watched has changed, once for each time that the key is read on the
 * node's own connection. A message tells no more than that: somebody has to look.
 *
 * Begun with the first key that is watched, so that clients that watch none cost the server
 * nothing. NOLOOP: changes on the node's own connection are not told, but end the watching as well.
 */
#ifndef REDLOCK_NODE_TRACKING_H
#define REDLOCK_NODE_TRACKING_H

#include "io/net.h"
#include "node/uplink.h"
#include "wire/reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tracking_state {
    TRACKING_OFF,
    TRACKING_ON,     /* the server was asked to, and has not refused */
    TRACKING_REFUSED /* by an ACL or an old server, until the channel is made anew */
};

struct tracking {
    struct uplink *commands; /* the node's connection */
    enum tracking_state state;
    int64_t target;    /* the channel's number at the server; 0: not known */
    bool lacks_number; /* the user has no right to CLIENT ID */
    bool has_warned;
    struct conn_request number; /* for the answer to CLIENT ID, on the channel */
    struct conn_request order;  /* for the answer to CLIENT TRACKING */
};

/* The two commands that have a key watched; their owner awaits both answers. */
struct tracking_requests {
    struct conn_request caching; /* CLIENT CACHING: an error is for tracking_refused */
    struct conn_request look;    /* GETRANGE: the first TOKEN_LENGTH bytes of the key's value */
};

void tracking_init(struct tracking *tracking, struct uplink *commands);

/* Ends tracking, with the channel, and asks on a new channel, not subscribed yet, for its number.
 */
void tracking_begin(struct tracking *tracking, struct uplink *channel);

/*
 * Has the server tell of the next change of a key, and answer its value. To be called while the
 * channel is ready. Returns how many of the requests were sent: both, or the first, or none.
 */
unsigned tracking_watch(struct tracking *tracking, struct tracking_requests *requests,
                        const char *key, size_t length);

/* Takes an error by which the server refuses to watch a key; logs the first one. */
void tracking_refused(struct tracking *tracking, const char *command, const struct reply *reply);

#endif
