/*
 * A connection to one server, kept up from uplink_start to uplink_stop: looked up, made, greeted
 * (handshake.h), watched, and made anew after its end.
 */
#ifndef REDLOCK_NODE_UPLINK_H
#define REDLOCK_NODE_UPLINK_H

#include "base/nanos.h"
#include "core/uri.h"
#include "io/loop.h"
#include "io/net.h"
#include "io/resolver.h"
#include "node/context.h"
#include "node/handshake.h"
#include "wire/script.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uplink_state {
    UPLINK_DOWN,       /* waits for the next attempt to connect */
    UPLINK_RESOLVING,  /* the name is being looked up */
    UPLINK_CONNECTING, /* the connection and its handshake are under way */
    UPLINK_UP
};

struct uplink;

/* Callbacks to the uplink's owner, from the loop, never from inside a call of the owner. */
struct uplink_listener {
    /* A new connection has been begun, and its handshake queued. Questions may follow at once. */
    void (*on_connecting)(struct uplink *uplink, uint64_t now);
    /* The handshake is through: commands are taken. */
    void (*on_up)(struct uplink *uplink);
    /* The connection has ended, or could not be made. */
    void (*on_down)(struct uplink *uplink, uint64_t now);
    /* Commands that the bounds refused could be sent now. */
    void (*on_room)(struct uplink *uplink);
    /* The server refused a weighty step of the handshake. */
    void (*on_refusal)(struct uplink *uplink, const struct reply *reply);
    /* A message of the channel, as in conn_listener. NULL for an uplink for commands. */
    void (*on_message)(struct uplink *uplink, const char *text, size_t length);
    /* A key has changed, as in conn_listener. NULL for an uplink for commands. */
    void (*on_change)(struct uplink *uplink, const char *key, size_t length);
};

struct uplink {
    struct context *context;
    const struct uplink_listener *listener;
    enum handshake_purpose purpose;
    struct uri uri;
    char *storage; /* the bytes that the strings of `uri` point to */
    char name[URI_NAME_MAX];

    enum uplink_state state;
    struct conn *conn; /* NULL while DOWN or RESOLVING */
    struct lookup *lookup;
    struct timer timer; /* DOWN: the next attempt; otherwise: the next check for a stall */
    uint64_t state_since;
    uint32_t attempts;          /* to connect, since the uplink was last up for a while */
    uint32_t unanswered;        /* lookups in a row that were given up */
    struct addresses addresses; /* of the name, as last looked up */
    unsigned address;           /* index of the address that is tried */
    bool was_accepted;          /* a server accepted in this attempt, at one of the addresses */
    char failure[192];          /* the reason why this attempt may fail, while addresses are left */
    uint64_t disconnected;      /* number of connections that ended, or could not be made */
    char reason[192];           /* the reason why the uplink is not UP; "" */
    char refusal[128];          /* the first refused step of this handshake; "" */

    struct handshake handshake;
    struct traffic traffic;
    uint32_t lacks;   /* mask of enum script: scripts whose text is due */
    uint64_t excused; /* sending time of the command that was given more time; 0: none */
};

/*
 * Parses the URI at `position` in the application's list. Returns a status, with a sentence in
 * `error`; uplink_finish may be called after a failure, too. Does not connect.
 */
redlock_status uplink_init(struct uplink *uplink, struct context *context,
                           const struct uplink_listener *listener, enum handshake_purpose purpose,
                           uint32_t position, const char *text, redlock_error *error);

/* Begins to connect, and connects anew after each failure. Not from inside a reply. */
void uplink_start(struct uplink *uplink);

/*
 * Begins to connect from the loop, in this turn of it; otherwise as uplink_start. The uplink has
 * never been started, or rests, or was stopped.
 */
void uplink_start_soon(struct uplink *uplink);

/* Has a DOWN uplink make no further attempt, and keeps the reason; for on_down. */
void uplink_rest(struct uplink *uplink);

/*
 * Drops the connection: commands under way get NULL replies inside this call. A lookup may stay
 * pending in the resolver.
 */
void uplink_stop(struct uplink *uplink, const char *why);

/* Frees the timer and the strings, after uplink_stop or uplink_init, or of an uplink of zeros. */
void uplink_finish(struct uplink *uplink);

/* Returns whether commands of locks are sent: when UP, or connecting for the first time. */
static inline bool uplink_takes_commands(const struct uplink *uplink) {
    return uplink->state == UPLINK_UP ||
           (uplink->state == UPLINK_CONNECTING && uplink->disconnected == 0);
}

/*
 * Returns whether it is known what comes of the very first attempt, or the address is the last one:
 * another may have to be tried otherwise.
 */
static inline bool uplink_is_known(const struct uplink *uplink) {
    return uplink->disconnected > 0 || uplink->state == UPLINK_UP ||
           (uplink->state == UPLINK_CONNECTING && uplink->address + 1 >= uplink->addresses.count);
}

/*
 * Sends a command on the connection, which must exist. Returns false when a bound or want of memory
 * refuses the command. The owner that on_reply is called with is the uplink.
 */
bool uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                 size_t length);

/*
 * Sends SUBSCRIBE on the connection of an UP uplink for messages: conn_subscribe. `request` is for
 * the answer.
 */
bool uplink_subscribe(struct uplink *uplink, struct conn_request *request, const char *channel,
                      const char *data, size_t length);

/* Reads all replies that have arrived, without waiting for the loop to notice. */
void uplink_read(struct uplink *uplink);

/* Closes the connection, if there is one; on_down follows from the loop. */
void uplink_drop(struct uplink *uplink, const char *why);

/*
 * Returns, for a NULL reply, whether the command may have been carried out: the connection stood.
 */
bool uplink_was_reached(const struct uplink *uplink);

/* Returns when the latest reply was read (conn_heard_at). The connection must exist. */
uint64_t uplink_heard_at(const struct uplink *uplink);

/* Return the number, and the bytes, of commands sent and not answered; 0 without a connection. */
uint32_t uplink_commands(const struct uplink *uplink);
size_t uplink_bytes(const struct uplink *uplink);

/* Returns the time until the next attempt of a DOWN uplink, in nanoseconds. */
static inline uint64_t uplink_retries_in(const struct uplink *uplink, uint64_t now) {
    return nanos_sub(uplink->timer.at, now);
}

/* Returns whether an attempt of a DOWN uplink failed before the one that failed last. */
static inline bool uplink_fails_again(const struct uplink *uplink) {
    return uplink->attempts > 1;
}

/*
 * Returns the text by which the server refused the client's login or database, on this connection
 * or, while there is none, on the last one; NULL: it did not.
 */
const char *uplink_refusal(const struct uplink *uplink);

/* Returns why commands are not sent; never "". */
const char *uplink_why_unreachable(const struct uplink *uplink);

#endif
