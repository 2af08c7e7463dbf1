/*
 * Connections to servers (hiredis), all of one client together.
 *
 * Commands are collected, and written to the sockets by net_flush, once in each turn of the loop.
 * Replies come in the order of the commands. However a connection ends - by the server, the
 * network, a broken reply, conn_close - each command without an answer gets a NULL reply, and then
 * on_closed is called, from the loop, never from inside another call.
 *
 * A connection may subscribe to one channel, and then sends nothing any more.
 */
#ifndef REDLOCK_IO_NET_H
#define REDLOCK_IO_NET_H

#include "core/load.h"
#include "io/loop.h"
#include "wire/reply.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct conn;
struct tls;

/* The connections of one client. */
struct net {
    const struct loop *loop;
    struct load_bounds bounds;         /* of each connection */
    TAILQ_HEAD(net_dirty, conn) dirty; /* connections with output to write */
};

/*
 * A request that waits for replies; embedded in the struct that the replies are for. A request may
 * be sent on several connections, and gets one reply from each: a NULL reply when the connection
 * ended first. The request must live until then. on_reply gets the `owner` of the connection, and
 * must not send a command when the reply is NULL.
 */
struct conn_request {
    void (*on_reply)(struct conn_request *request, void *owner, const struct reply *reply);
    uint64_t sent_at; /* for conn_oldest; set by the sender */
    size_t length;    /* bytes of the command, for the bound on bytes; set by the sender */
    enum load_class load_class; /* share of the room; set by the sender */
};

/* The address of a server: a numeric address and a port, or the path of a socket. */
struct conn_address {
    const char *host;
    uint16_t port;
    const char *path;
    struct tls *tls;  /* NULL: plain */
    const char *name; /* with TLS: name or address that the server's certificate must be for */
};

/* The callbacks of a connection's owner. */
struct conn_listener {
    /* The connection has ended; the owner may destroy it here. Called from the loop. */
    void (*on_closed)(void *owner, const char *why);
    /*
     * Commands that a bound had refused can be sent again; not from inside this callback, but in
     * the same turn.
     */
    void (*on_room)(void *owner);
    /*
     * A message of the channel: `length` bytes and a NUL, valid during the call. The connection may
     * be closed here, but not destroyed. NULL where conn_subscribe is never called.
     */
    void (*on_message)(void *owner, const char *text, size_t length);
    /*
     * A message of client tracking: the name of a key that has changed, `length` bytes and a NUL,
     * or NULL: any key may have. Otherwise as on_message.
     */
    void (*on_change)(void *owner, const char *key, size_t length);
};

/* The counters of an owner's connections, of which one follows the other. */
struct traffic {
    uint64_t replies; /* number of answers, and of messages */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    redlock_histogram round_trip; /* of the first answer in each reading of the socket */
};

void net_init(struct net *net, const struct loop *loop, const struct load_bounds *bounds);

/* Writes the collected output of all connections. */
void net_flush(struct net *net);

/*
 * Begins to connect; commands may be sent at once. Returns NULL, with the reason in `error`, on an
 * immediate failure; the status is REDLOCK_EINVAL when a server accepted the connection (see
 * io/tls.h).
 */
struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error);

/* Has a connection count in `traffic`, which must live as long. */
void conn_count(struct conn *conn, struct traffic *traffic);

/*
 * Destroys a connection, or NULL; not from on_reply. Commands without an answer get their NULL
 * reply inside this call.
 */
void conn_destroy(struct conn *conn);

/* Ends the connection; on_closed follows from the loop, with `why` (copied). */
void conn_close(struct conn *conn, const char *why);

/*
 * Queues a command of `length` bytes. Returns false when a bound is reached, memory is out, or the
 * connection is ending.
 */
bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length);

/*
 * Queues the command SUBSCRIBE, of `length` bytes, for `channel`, which must live as long as the
 * connection. The request gets one reply: an INTEGER when the server has subscribed the connection,
 * an ERROR when it refuses. No other command can follow: conn_send returns false from now on.
 * Returns false when there was a subscription before, memory is out, or the connection is ending.
 */
bool conn_subscribe(struct conn *conn, struct conn_request *request, const char *channel,
                    const char *data, size_t length);

/*
 * Reads all bytes that have arrived, without waiting for the loop to notice; once subscribed, a
 * part of them, because the server may send messages for ever.
 */
void conn_read(struct conn *conn);

/*
 * Returns whether the connection was ever established, TLS included: if not, no command was sent.
 */
bool conn_was_open(const struct conn *conn);

/* Returns whether a server accepted the connection. */
bool conn_was_accepted(const struct conn *conn);

/* Returns when the oldest command without an answer was sent; NANOS_NEVER when there is none. */
uint64_t conn_oldest(const struct conn *conn);

/*
 * Returns when the latest reply was read from the socket, rounded up; 0 before any reply. For a
 * reply that is being delivered: an instant at which the reply had arrived.
 */
uint64_t conn_heard_at(const struct conn *conn);

/*
 * Return the number, and the bytes, of commands sent and not answered, the client's own questions
 * included.
 */
uint32_t conn_commands(const struct conn *conn);
size_t conn_bytes(const struct conn *conn);

#endif
