/*
 * Client tracking (redis.io/docs/reference/client-side-caching): the server notifies a node's
 * channel when a watched key has changed, once for each time that the key was read on the node's
 * own connection. The message says only that the key may have changed, not how.
 *
 * Begins with the first watched key, so that clients without any cost the server nothing. NOLOOP:
 * changes on the node's own connection are not notified, but end the watch as well.
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
    TRACKING_ON,     /* requested, and not refused so far */
    TRACKING_REFUSED /* by an ACL or an old server, until the channel is made anew */
};

struct tracking {
    struct uplink *commands; /* the node's connection */
    enum tracking_state state;
    int64_t target;             /* the channel's client ID at the server; 0: not known */
    bool lacks_number;          /* the user has no right to CLIENT ID */
    bool has_warned;            /* a refusal was logged */
    struct conn_request number; /* for the answer to CLIENT ID, on the channel */
    struct conn_request order;  /* for the answer to CLIENT TRACKING */
};

/* The two commands that watch a key. Their owner must live until both are answered. */
struct tracking_requests {
    struct conn_request caching; /* CLIENT CACHING: an error is for tracking_refused */
    struct conn_request look;    /* GETRANGE: the first TOKEN_LENGTH bytes of the key's value */
};

void tracking_init(struct tracking *tracking, struct uplink *commands);

/* Begins anew with a new channel, not subscribed yet: asks on it for its client ID. */
void tracking_begin(struct tracking *tracking, struct uplink *channel);

/*
 * Asks the server to notify us of the key's next change, and for its value. The channel must be
 * ready. Returns the number of requests sent: 2, 1 (`caching` alone), or 0.
 */
unsigned tracking_watch(struct tracking *tracking, struct tracking_requests *requests,
                        const char *key, size_t length);

/*
 * Ends tracking after an error by which the server refuses to watch a key, and logs the first such
 * error. `command` is the ACL rule that permits the command, such as "+getrange".
 */
void tracking_refused(struct tracking *tracking, const char *command, const struct reply *reply);

#endif
