/*
 * A node's channel: a second connection to the node's server, which subscribes to a name that no
 * one else knows. Scripts that the server runs can publish messages to the name. The connection is
 * kept up while the channel is wanted and the node's own connection is up. It is probed: the
 * channel is ready once a message that was published on the node's connection has come back.
 *
 * A name is used for one pair of connections, so a message can only come from the server that the
 * node's connection leads to now.
 */
#ifndef REDLOCK_NODE_CHANNEL_H
#define REDLOCK_NODE_CHANNEL_H

#include "base/nanos.h"
#include "io/net.h"
#include "node/context.h"
#include "node/eval.h"
#include "node/tracking.h"
#include "node/uplink.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A channel's name is "redlock:" and random digits: their number, and its length with the NUL. */
#define CHANNEL_DIGITS 20
#define CHANNEL_NAME_SIZE (8 + CHANNEL_DIGITS + 1)

/* The longest time between two calls of channel_beat. */
#define CHANNEL_BEAT_NANOS (250 * NANOS_PER_MS)

/*
 * The time without a message after which a probe is due. Meanwhile a dead channel costs little:
 * waiters also ask once a second, and the keys that it lets fall come free after a reservation.
 */
#define CHANNEL_PROBE_NANOS (4000 * NANOS_PER_MS)

/* The time after which a server that refused is asked again. */
#define CHANNEL_REFUSED_NANOS (10000 * NANOS_PER_MS)

enum channel_state {
    CHANNEL_OFF,         /* not wanted, or the node is not connected */
    CHANNEL_CONNECTING,  /* the uplink is not up, and tries again by itself */
    CHANNEL_SUBSCRIBING, /* awaits the answer to SUBSCRIBE */
    CHANNEL_PROBING,     /* awaits the first probe */
    CHANNEL_READY,
    CHANNEL_ENDING, /* the connection is being closed */
    CHANNEL_REFUSED /* the server refused SUBSCRIBE or the probe; waits until retry_at */
};

struct channel;

/* Callbacks to the channel's owner, from the loop, never from inside a call of the owner. */
struct channel_listener {
    /* The channel has become ready: scripts may be given its name. */
    void (*on_ready)(struct channel *channel);
    /*
     * The channel is no longer ready, and its name is void. Not called for channel_want(false) and
     * for channel_stop.
     */
    void (*on_broken)(struct channel *channel);
    /* A message to the channel's name: `length` bytes and a NUL, valid during the call. */
    void (*on_message)(struct channel *channel, const char *text, size_t length);
    /* A watched key has changed: `length` bytes and a NUL; NULL: any key may have changed. */
    void (*on_change)(struct channel *channel, const char *key, size_t length);
};

/* The last probe. */
struct channel_probe {
    struct conn_request request; /* the first member */
    struct channel *channel;
    struct eval eval;
    char text[32];       /* the message */
    bool is_pending;     /* the answer is due */
    bool is_for_another; /* the answer is due, for an earlier name of the channel */
    bool is_answered;    /* the server has sent the message to a subscriber */
    bool has_arrived;    /* the message has come back */
    bool is_excused;     /* the probe was given more time */
};

struct channel {
    struct uplink uplink;    /* the first member: the uplink is the owner of replies */
    struct uplink *commands; /* the node's own connection */
    const struct channel_listener *listener;
    enum channel_state state;
    bool is_wanted;
    bool has_reported_ready; /* on_ready was called, so on_broken is due at the end */
    bool lacks_queue;        /* the lack of the right to a queue was logged */
    bool has_failed;         /* a connection has ended, or failed, since the channel is wanted */
    bool has_warned;         /* a refusal was logged since the channel was last ready */
    uint64_t retry_at;       /* REFUSED: the instant at which the server is asked again */
    uint64_t beaten_at;      /* the time of the last channel_beat */
    uint64_t probes;         /* number of probes so far */
    char name[CHANNEL_NAME_SIZE];
    struct conn_request subscription; /* for the answer to SUBSCRIBE */
    struct channel_probe probe;
    struct tracking tracking;
};

/*
 * Parses the node's URI `text`, as uplink_init does. Does not use `commands`, the node's own
 * connection, yet. Returns a status, with a sentence in `error`; channel_finish may be called after
 * a failure, too.
 */
redlock_status channel_init(struct channel *channel, struct context *context,
                            struct uplink *commands, const struct channel_listener *listener,
                            uint32_t position, const char *text, redlock_error *error);

/* Keeps the channel up from now on, or closes its connection. May be called from any callback. */
void channel_want(struct channel *channel, bool is_wanted);

/* Logs, once, that the user has no right to the queue of `key`, a text, so that waiters poll. */
void channel_lacks_queue(struct channel *channel, const char *key);

/* Records that the node's own connection is up. May be called from a reply on it. */
void channel_command_up(struct channel *channel);

/* Records that the node's own connection has ended: the name is void now, and on_broken follows. */
void channel_command_down(struct channel *channel);

/*
 * Drops the connection if a probe is overdue, or asks again a server that had refused. For a call
 * at least every CHANNEL_BEAT_NANOS.
 */
void channel_beat(struct channel *channel, uint64_t now);

/* Sends a probe if one is due. For a call with another command, which it can travel with. */
void channel_probe(struct channel *channel, uint64_t now);

/* Drops the connection for good, with `why` as the reason (uplink_stop). */
void channel_stop(struct channel *channel, const char *why);

/*
 * Frees a channel's parts, after channel_stop or channel_init, and after the node's connection has
 * ended.
 */
void channel_finish(struct channel *channel);

/* Returns the channel of an uplink, the owner of a reply. */
static inline struct channel *channel_of(void *uplink) {
    return uplink;
}

/* Returns the name to publish to; the channel must be ready. */
static inline const char *channel_name(const struct channel *channel) {
    return channel->name;
}

static inline bool channel_is_ready(const struct channel *channel) {
    return channel->state == CHANNEL_READY;
}

/* Returns whether the channel is being opened since it is wanted, and has not failed yet. */
static inline bool channel_is_opening(const struct channel *channel) {
    return channel->is_wanted && channel->state != CHANNEL_READY && !channel->has_warned &&
           !channel->has_failed;
}

/* Calls tracking_watch if the channel is ready; otherwise returns 0. */
static inline unsigned channel_watch(struct channel *channel, struct tracking_requests *requests,
                                     const char *key, size_t length) {
    return channel_is_ready(channel) ? tracking_watch(&channel->tracking, requests, key, length)
                                     : 0;
}

/* Returns why the channel is not ready; "" when it is. Valid until the next call. */
const char *channel_why(const struct channel *channel);

#endif
