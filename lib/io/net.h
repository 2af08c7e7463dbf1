/*
 * Connections to servers (hiredis), all of one client together.
 *
 * What is sent is collected, and written to the sockets by net_flush, once a turn of the loop.
 * Replies come in the order of the commands. Whatever ends a connection - the server, the
 * network, a broken reply, conn_close - there is one way out: every command that was not answered
 * gets a NULL reply, and then on_closed is called, from the loop, never from inside another call.
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
    struct load_bounds bounds;         /* of each */
    TAILQ_HEAD(net_dirty, conn) dirty; /* have something to write */
};

/*
 * What waits for a reply; embedded in what the reply is for. One request may be sent on several
 * connections, and gets one reply from each; a NULL reply when the connection ended first. It must
 * live until then. `owner` is that of the connection. No new command may be sent from on_reply
 * when the reply is NULL.
 */
struct conn_request {
    void (*on_reply)(struct conn_request *request, void *owner, const struct reply *reply);
    uint64_t sent_at;      /* set by the sender: for conn_oldest */
    size_t length;         /* of the command: set by the sender, for the bound on bytes */
    enum load_claim claim; /* set by the sender: its share of the room */
};

/* Where to connect: a numeric address and a port, or the path of a socket. */
struct conn_address {
    const char *host;
    uint16_t port;
    const char *path;
    struct tls *tls;  /* NULL: plain */
    const char *name; /* with TLS: whom the server's certificate has to be for */
};

/* What the owner of a connection is told. */
struct conn_listener {
    /* It has ended; it may be destroyed here. From the loop. */
    void (*on_closed)(void *owner, const char *why);
    /* Commands that had been refused for a bound could be sent now; not here, but in this turn. */
    void (*on_room)(void *owner);
};

void net_init(struct net *net, const struct loop *loop, const struct load_bounds *bounds);

/* Writes what the connections have collected. */
void net_flush(struct net *net);

/*
 * Begins to connect; commands may be sent at once.
 * NULL, with the reason in `error`, when it failed at once; its status is REDLOCK_EINVAL when there
 * was somebody at the address (see io/tls.h).
 */
struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error);

/* Takes NULL. Not from on_reply. Commands not answered get their NULL reply inside this call. */
void conn_destroy(struct conn *conn);

/* Ends the connection; on_closed follows from the loop, with this reason (copied). */
void conn_close(struct conn *conn, const char *why);

/* False when it could not be sent: a bound, no memory, or the connection is ending. */
bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length);

/* Reads all that has arrived, without waiting for the loop to notice. */
void conn_read(struct conn *conn);

/* Whether the connection had been established, TLS included: if not, nothing was sent. */
bool conn_was_open(const struct conn *conn);

/* Whether there was somebody at the address. */
bool conn_was_accepted(const struct conn *conn);

/* When the oldest command without an answer was sent; NANOS_NEVER when there is none. */
uint64_t conn_oldest(const struct conn *conn);

/*
 * Returns when the latest reply was read from the socket, rounded up; 0 before any. For a reply
 * that is being delivered: an instant at which it had arrived.
 */
uint64_t conn_heard_at(const struct conn *conn);

/* Commands sent and not answered, and their bytes; the client's own questions are among them. */
uint32_t conn_commands(const struct conn *conn);
size_t conn_bytes(const struct conn *conn);

#endif
