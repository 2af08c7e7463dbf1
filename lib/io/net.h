/*
 * The connections of a client to its servers (hiredis).
 *
 * Commands are collected, and net_flush writes them to the sockets once in each turn of the loop.
 * Replies arrive in the order of the commands. Whatever ends a connection - the server, the
 * network, a malformed reply, conn_close - each command without a reply gets a NULL reply, and then
 * on_closed is called, from the loop, never from inside another call.
 *
 * A connection may subscribe to one channel; after that it sends nothing more.
 */
#ifndef REDLOCK_IO_NET_H
#define REDLOCK_IO_NET_H

#include "core/answer_time.h"
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
    redlock_loop *loop;
    const redlock_allocator *allocator;
    struct load_bounds bounds;         /* bounds on each connection */
    TAILQ_HEAD(net_dirty, conn) dirty; /* connections with output to write */
};

/*
 * A request that waits for replies; embedded in the struct that the replies are for. A request may
 * be sent on several connections, and gets one reply from each: a NULL reply if the connection ends
 * first. The request must live until its last reply. on_reply gets the `owner` of the connection,
 * and must not send a command when the reply is NULL.
 */
struct conn_request {
    void (*on_reply)(struct conn_request *request, void *owner, const struct reply *reply);
    uint64_t sent_at;           /* for conn_oldest; set by the sender */
    size_t length;              /* size of the command, for the bound on bytes; set by the sender */
    enum load_class load_class; /* share of the bounds; set by the sender */
};

/* The address of a server: a numeric address and a port, or the path of a Unix socket. */
struct conn_address {
    const char *host;
    uint16_t port;
    const char *path;
    struct tls *tls;  /* NULL: plain */
    const char *name; /* TLS: name or address that the server's certificate must match */
};

/* The callbacks of a connection's owner. */
struct conn_listener {
    /* Reports that the connection has ended; the owner may destroy it here. Called from the loop.
     */
    void (*on_closed)(void *owner, const char *why);
    /*
     * Reports that commands that a bound refused can be sent again: in the same turn, but not from
     * inside this callback.
     */
    void (*on_room)(void *owner);
    /*
     * Delivers a message of the channel: `length` bytes and a NUL, valid during the call. The
     * connection may be closed here, but not destroyed. NULL if conn_subscribe is never called.
     */
    void (*on_message)(void *owner, const char *text, size_t length);
    /*
     * Delivers a message of client tracking: the name of a changed key, `length` bytes and a NUL;
     * NULL: any key may have changed. Otherwise like on_message.
     */
    void (*on_change)(void *owner, const char *key, size_t length);
};

/* The counters of an owner's successive connections. */
struct traffic {
    uint64_t replies; /* number of replies and messages */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    redlock_histogram round_trip;   /* of the first reply in each read of the socket */
    struct answer_time answer_time; /* of the same replies */
};

void net_init(struct net *net, redlock_loop *loop, const redlock_allocator *allocator,
              const struct load_bounds *bounds);

/* Writes the collected output of all connections. */
void net_flush(struct net *net);

/*
 * Starts to connect; commands may be sent at once. Returns NULL on an immediate failure, with the
 * reason in `error`; the status is REDLOCK_EINVAL if a server has accepted the connection (see
 * io/tls.h).
 */
struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error);

/* Counts the connection's traffic in `traffic`, which must live as long as the connection. */
void conn_count(struct conn *conn, struct traffic *traffic);

/*
 * Destroys a connection; NULL is allowed. Must not be called from on_reply. Commands without a
 * reply get their NULL reply inside this call.
 */
void conn_destroy(struct conn *conn);

/* Ends the connection; on_closed follows from the loop, with `why` (copied). */
void conn_close(struct conn *conn, const char *why);

/*
 * Queues a command of `length` bytes. Returns false when a bound is reached, when out of memory, or
 * when the connection is ending or has a subscription.
 */
bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length);

/*
 * Queues a SUBSCRIBE command of `length` bytes for `channel`, which must live as long as the
 * connection. The request gets one reply: an INTEGER if the server has subscribed the connection,
 * an ERROR if it refuses. No command can follow: conn_send returns false from now on. Returns false
 * when there is a subscription already, when out of memory, or when the connection is ending.
 */
bool conn_subscribe(struct conn *conn, struct conn_request *request, const char *channel,
                    const char *data, size_t length);

/*
 * Reads all bytes that have arrived, without waiting for the loop. On a subscribed connection it
 * reads only a part of them, because the server may send messages without end.
 */
void conn_read(struct conn *conn);

/*
 * Returns whether the first commands of requests may be sent: there is room, and at most `most`
 * commands are under way (load_admits). If not, on_room follows.
 */
bool conn_admits(struct conn *conn, uint32_t most);

/*
 * Returns whether the connection was ever established, including TLS: if not, no command was sent.
 */
bool conn_was_open(const struct conn *conn);

/* Returns whether a server accepted the connection. */
bool conn_was_accepted(const struct conn *conn);

/* Returns when the oldest command without a reply was sent; NANOS_NEVER if there is none. */
uint64_t conn_oldest(const struct conn *conn);

/*
 * Returns an instant at which the latest reply had arrived: right after it was read from the
 * socket. 0 before any reply.
 */
uint64_t conn_heard_at(const struct conn *conn);

/*
 * Return the number and the bytes of the commands without a reply, including the client's own
 * (heartbeats, for instance).
 */
uint32_t conn_commands(const struct conn *conn);
size_t conn_bytes(const struct conn *conn);

#endif
