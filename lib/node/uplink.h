/*
 * A connection to one server, kept up from uplink_start to uplink_stop: name lookup, connect,
 * handshake (handshake.h), the check for stalls, and the next attempt after each end.
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

/* How far a new connection is with the scripts that its server lacks. */
enum script_search { SCRIPTS_ASKED, SCRIPTS_PAUSED, SCRIPTS_ASKED_AGAIN, SCRIPTS_LOADED };

struct uplink;

/* Callbacks to the uplink's owner, from the loop, never from inside a call of the owner. */
struct uplink_listener {
    /* A new connection was begun, and its handshake queued. The guard's questions may follow. */
    void (*on_connecting)(struct uplink *uplink, uint64_t now);
    /* The handshake is complete: commands are taken. */
    void (*on_up)(struct uplink *uplink);
    /* The connection has ended, or could not be made. */
    void (*on_down)(struct uplink *uplink, uint64_t now);
    /* There is room again for commands that a bound refused. */
    void (*on_room)(struct uplink *uplink);
    /* The server refused an important step of the handshake. */
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
    struct timer timer; /* DOWN: the next attempt; SCRIPTS_PAUSED: the end of the pause; otherwise:
                           the next check for a stall */
    uint64_t state_since;       /* the time of the last change of `state` */
    bool has_ended;             /* an attempt, or a connection, has ended since uplink_start */
    uint32_t attempts;          /* number of attempts since the uplink was last UP for long */
    uint32_t unanswered;        /* number of lookups in a row that were given up */
    struct addresses addresses; /* the addresses of the name, as last looked up */
    unsigned address;           /* the index of the address being tried */
    bool was_accepted;          /* an address of this attempt accepted the connection */
    char failure[192];          /* the reason to report if this attempt fails at all addresses */
    uint64_t disconnected;      /* number of connections that ended, or could not be made */
    char reason[192];           /* the reason why the uplink is not UP; "": it is UP */
    char refusal[128];          /* the error of this handshake's first refused step; "": none */

    struct handshake handshake;
    struct traffic traffic;
    enum script_search search;
    uint32_t lacks;   /* mask of enum script: scripts whose next call carries the text */
    uint64_t excused; /* the sending time of the command that was given more time; 0: none */
};

/*
 * Parses `text`, the URI at `position` in the application's list. Does not connect. Returns a
 * status, with a sentence in `error`; uplink_finish may be called after a failure, too.
 */
redlock_status uplink_init(struct uplink *uplink, struct context *context,
                           const struct uplink_listener *listener, enum handshake_purpose purpose,
                           uint32_t position, const char *text, redlock_error *error);

/*
 * Begins to connect, for the first time or after uplink_stop, and tries again after each failure.
 * Must not be called from a reply.
 */
void uplink_start(struct uplink *uplink);

/*
 * Begins to connect as uplink_start does, but from the loop, in its present iteration. The uplink
 * must not have been started, or must be at rest or stopped.
 */
void uplink_start_soon(struct uplink *uplink);

/* Makes a DOWN uplink try no further, and keeps the reason. For on_down. */
void uplink_rest(struct uplink *uplink);

/*
 * Drops the connection: commands under way get NULL replies inside this call. A canceled lookup may
 * stay pending in the resolver.
 */
void uplink_stop(struct uplink *uplink, const char *why);

/* Frees the timer and the strings, after uplink_stop or uplink_init; accepts a struct of zeros. */
void uplink_finish(struct uplink *uplink);

/* Returns whether the uplink connects for the first time, and takes commands already. */
static inline bool uplink_is_new(const struct uplink *uplink) {
    return uplink->state == UPLINK_CONNECTING && !uplink->has_ended;
}

/* Returns whether commands of locks are sent: the uplink is UP, or connects for the first time. */
static inline bool uplink_takes_commands(const struct uplink *uplink) {
    return uplink->state == UPLINK_UP || uplink_is_new(uplink);
}

/*
 * Returns whether the very first attempt is over, or at its last address. Otherwise another address
 * may have to be tried.
 */
static inline bool uplink_is_known(const struct uplink *uplink) {
    return uplink->has_ended || uplink->state == UPLINK_UP ||
           (uplink->state == UPLINK_CONNECTING && uplink->address + 1 >= uplink->addresses.count);
}

/*
 * Sends a command on the connection, which must exist. Returns false at a bound, without memory, or
 * if the connection is ending. The owner passed to on_reply is the uplink.
 */
bool uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                 size_t length);

/*
 * Sends SUBSCRIBE on the connection of an UP uplink for messages (conn_subscribe). `request` gets
 * the answer. Returns false as uplink_send does.
 */
bool uplink_subscribe(struct uplink *uplink, struct conn_request *request, const char *channel,
                      const char *data, size_t length);

/*
 * Makes the handshake find or load one more script, which the server has been found to lack.
 * Returns false if the uplink is UP, or takes commands already: send the text with them.
 */
bool uplink_search(struct uplink *uplink, enum script script);

/* Reads all replies that have arrived, without waiting for the loop. */
void uplink_read(struct uplink *uplink);

/* Closes the connection, if there is one; on_down follows from the loop. */
void uplink_drop(struct uplink *uplink, const char *why);

/* Returns, for a NULL reply, whether the command may have been executed: the connection was up. */
bool uplink_was_reached(const struct uplink *uplink);

/* Returns when the latest reply was read (conn_heard_at). The connection must exist. */
uint64_t uplink_heard_at(const struct uplink *uplink);

/*
 * Returns the time after which an answer is late: node_timeout_ms or, if that is 0, by the answers
 * so far, with this margin (core/answer_time.h).
 */
uint64_t uplink_answer_timeout(const struct uplink *uplink, uint64_t margin);

/* Returns the silence after which a server that owes an answer is dropped. */
uint64_t uplink_stall_timeout(const struct uplink *uplink);

/*
 * Returns the instant from which the answer to a command sent at `sent_at` is late. It moves on
 * while earlier commands are answered: these are ahead of it in the server's queue.
 */
uint64_t uplink_answer_due(const struct uplink *uplink, uint64_t sent_at, uint64_t margin);

/*
 * Returns whether requests need not wait for this uplink: it has room, and at most `most` commands
 * under way (conn_admits), or it is not connected.
 */
bool uplink_admits(const struct uplink *uplink, uint32_t most);

/* Return the number, and the bytes, of commands not answered yet; 0 without a connection. */
uint32_t uplink_commands(const struct uplink *uplink);
size_t uplink_bytes(const struct uplink *uplink);

/* Returns the time until the next attempt of a DOWN uplink, in nanoseconds. */
static inline uint64_t uplink_retries_in(const struct uplink *uplink, uint64_t now) {
    return nanos_sub(uplink->timer.at, now);
}

/* Returns whether the last failed attempt of a DOWN uplink followed another failed one. */
static inline bool uplink_fails_again(const struct uplink *uplink) {
    return uplink->attempts > 1;
}

/*
 * Returns the error by which the server refused the client's login or database, on this connection
 * or, while there is none, on the last one; NULL: it did not.
 */
const char *uplink_refusal(const struct uplink *uplink);

/* Returns why commands are not sent; never "". */
const char *uplink_why_unreachable(const struct uplink *uplink);

#endif
