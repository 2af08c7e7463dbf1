/*
 * The connections of HTTP clients: how many there are, how long each may take, and which broke.
 *
 * evhttp bounds the size of a request, and the time between two bytes. A client that sends one byte
 * now and then, or never reads, would hold a connection for ever; many of them, all connections. So
 * a connection has a bound on the time for a whole request, from the accept or the last answer, and
 * for a whole answer. Where too many are open, the one that has taken longest for its request, or
 * answer, is closed in favour of the next. One that waits for its lock is never closed for that.
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
    CONNECTION_READING,   /* a request is awaited, or arrives */
    CONNECTION_SERVING,   /* a request has arrived, and has no answer yet */
    CONNECTION_ANSWERING, /* the answer is being written */
};

/*
 * Tells that a connection has broken, which is about to be freed; or that the answer has been
 * written.
 */
typedef void connection_cb(void *arg);

struct connection {
    TAILQ_ENTRY(connection) link;
    struct connections *connections;
    struct bufferevent *bufferevent;
    struct evhttp_connection *http; /* NULL: not known yet */
    struct evhttp_request *request; /* the one that is served or answered */
    unsigned route;                 /* its route, for the metrics */
    enum connection_state state;
    uint64_t since_ms; /* begin of the state */
    int watched;       /* duplicate of the descriptor; -1: none */
    struct event *watch;
    bool floods;              /* whether more was read than may be */
    connection_cb *on_broken; /* NULL: nobody has to know */
    connection_cb *on_written;
    void *arg;
};

TAILQ_HEAD(connection_list, connection);

struct connections {
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *socket;
    struct connection_list fresh;   /* accepted in this turn of the loop */
    struct connection_list passing; /* those that have to go on within a time, longest first */
    struct connection_list serving;
    struct event *adopt;
    struct event *sweep;
    struct connection **by_fd;
    size_t fd_count;
    size_t count;
    size_t limit;
    size_t flooding; /* number of connections to be closed for what they send */
    uint64_t idle_ms;
    bool is_closed;    /* whether no connection is accepted any more */
    uint64_t accepted; /* counters since the start */
    uint64_t evicted;
    uint64_t timed_out;
    uint64_t cut;
};

/* Returns the time by CLOCK_MONOTONIC, in ms. */
uint64_t connections_now_ms(void);

/*
 * Begins to accept connections for `http`; raises the process's bound on descriptors. Returns
 * false, after a message, when the system refuses a service.
 */
bool connections_init(struct connections *connections, struct event_base *base, struct evhttp *http,
                      const struct settings *settings);

/* Accepts no more connections, if it has not been called before. */
void connections_close(struct connections *connections);

/* Returns whether a request is served or an answer written. */
bool connections_are_busy(const struct connections *connections);

/* Frees what is left when evhttp and all connections are gone. */
void connections_finish(struct connections *connections);

/* Returns the connection of a request that has arrived, or NULL, and begins to serve it. */
struct connection *connections_serve(struct connections *connections,
                                     struct evhttp_request *request);

/*
 * Has `on_broken` called when the connection breaks before the answer has been written, or else
 * `on_written` (may be NULL). Where `looks`, the connection is looked at while nothing is written;
 * then a client breaks it also by closing its own direction alone. Returns false when the system
 * refuses that.
 */
bool connection_watch(struct connection *connection, bool looks, connection_cb *on_broken,
                      connection_cb *on_written, void *arg);

/* Ends that. */
void connection_forget(struct connection *connection);

/* Returns whether the client has closed the connection, perhaps before the loop has noticed. */
bool connection_is_gone(const struct connection *connection);

/* Records that the answer is on its way. To be called before evhttp_send_reply or _reply_end. */
void connection_answer(struct connection *connection);

/*
 * For connections.c. Makes the record of a connection whose evhttp_connection is not known yet, or
 * returns NULL without memory; enters that; frees the record of one that there will never be;
 * begins a state.
 */
struct connection *connection_begin(struct connections *connections,
                                    struct bufferevent *bufferevent);
void connection_own(struct connection *connection, struct evhttp_connection *http);
void connection_lose(struct connection *connection);
void connection_set_state(struct connection *connection, enum connection_state state);

/* Closes the connection at once. */
void connection_drop(struct connection *connection);

#endif
