/*
 * The connections of HTTP clients: their number, their time limits, and their ends.
 *
 * evhttp bounds the size of a request and the time between two bytes. But a client that sends one
 * byte now and then, or never reads, would keep a connection for ever, and many such clients all
 * connections. So there is a time limit for a whole request, counted from the accept or the last
 * answer, and for a whole answer. If too many connections are open, the one that has taken longest
 * for its request or answer is closed in favour of the next. A connection that waits for its lock
 * is never closed for that.
 */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include "settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct event;
struct event_base;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct evhttp_bound_socket;
struct bufferevent;

enum connection_state {
    CONNECTION_READING,   /* waiting for a request, or reading one */
    CONNECTION_SERVING,   /* a request has arrived and has no answer yet */
    CONNECTION_ANSWERING, /* the answer is being written */
};

/*
 * Reports that a connection has broken and is about to be freed, or that the answer has been
 * written.
 */
typedef void connection_cb(void *arg);

struct connection {
    TAILQ_ENTRY(connection) link;
    struct connections *connections;
    struct bufferevent *bufferevent;
    struct evhttp_connection *http; /* NULL: not known yet */
    struct evhttp_request *request; /* request being served or answered */
    unsigned route;                 /* route of the request, for the metrics */
    enum connection_state state;
    uint64_t since_ms; /* start of the state */
    int watched;       /* duplicate of the descriptor; -1: none */
    struct event *watch;
    bool floods;              /* whether too much was read */
    connection_cb *on_broken; /* NULL: no watcher */
    connection_cb *on_written;
    void *arg;
};

TAILQ_HEAD(connection_list, connection);

struct connections {
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *socket;
    struct connection_list fresh;   /* accepted in this turn of the loop */
    struct connection_list passing; /* those with a time limit, longest first */
    struct connection_list serving;
    struct event *adopt;
    struct event *sweep;
    struct connection **by_fd;
    size_t fd_count;
    size_t count;
    size_t limit;
    size_t flooding; /* number of connections that must be closed for sending too much */
    uint64_t idle_ms;
    bool is_closed;    /* whether connections are no longer accepted */
    uint64_t accepted; /* counters since the start */
    uint64_t evicted;
    uint64_t timed_out;
    uint64_t cut;
};

/* Returns the time by CLOCK_MONOTONIC, in ms. */
uint64_t connections_now_ms(void);

/*
 * Starts to accept connections for `http`; raises the process's limit on descriptors. Returns
 * false, after a message, when the system refuses a resource.
 */
bool connections_init(struct connections *connections, struct event_base *base, struct evhttp *http,
                      const struct settings *settings);

/* Stops accepting connections. May be called again. */
void connections_close(struct connections *connections);

/* Returns whether a request is being served or an answer being written. */
bool connections_are_busy(const struct connections *connections);

/* Frees the rest, after evhttp and all connections are gone. */
void connections_finish(struct connections *connections);

/* Starts to serve a request that has arrived. Returns its connection, or NULL. */
struct connection *connections_serve(struct connections *connections,
                                     struct evhttp_request *request);

/*
 * Watches a connection: calls `on_broken` if it breaks before the answer has been written,
 * otherwise `on_written` (may be NULL). With `looks`, the connection is also watched while nothing
 * is written; a client then also breaks it by closing only its own direction. Returns false when
 * the system refuses the event.
 */
bool connection_watch(struct connection *connection, bool looks, connection_cb *on_broken,
                      connection_cb *on_written, void *arg);

/* Stops watching. */
void connection_forget(struct connection *connection);

/* Returns whether the client has closed the connection, perhaps before the loop has noticed. */
bool connection_is_gone(const struct connection *connection);

/* Records that the answer is being written. Call it before evhttp_send_reply or _reply_end. */
void connection_answer(struct connection *connection);

/*
 * For connections.c. Create the record of a connection whose evhttp_connection is not known yet
 * (NULL when out of memory); set the evhttp_connection; free the record of one that will never get
 * it; begin a state.
 */
struct connection *connection_begin(struct connections *connections,
                                    struct bufferevent *bufferevent);
void connection_own(struct connection *connection, struct evhttp_connection *http);
void connection_lose(struct connection *connection);
void connection_set_state(struct connection *connection, enum connection_state state);

/* Closes the connection at once. */
void connection_drop(struct connection *connection);

#endif
