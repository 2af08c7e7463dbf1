/*
 * evhttp reports nothing about a connection until its first request has arrived. But it gets the
 * bufferevent of each connection from a function of ours. A moment later, when evhttp owns the
 * bufferevent, the argument of its callbacks is the evhttp_connection (libevent 2.1), whose close
 * callback ends our record of the connection.
 */
#include "connections.h"

#include "tool.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Descriptors that are not HTTP connections: masters, the loop, stdin, stdout, stderr. */
#define OTHER_DESCRIPTORS 192
static struct evconnlistener *listener_of(const struct connections *connections) {
    return evhttp_bound_socket_get_listener(connections->socket);
}

/*
 * Makes room for the next connection: closes the one that has taken longest for its request or its
 * answer. If all of them are being served, accepts no connection until one has ended.
 */
static void make_room(struct connections *connections) {
    struct connection *longest = TAILQ_FIRST(&connections->passing);

    if (connections->count < connections->limit || connections->is_closed) {
        return;
    }
    if (longest != NULL) {
        connections->evicted++;
        connection_drop(longest);
    } else {
        evconnlistener_disable(listener_of(connections));
    }
}

/* Creates the bufferevent of an accepted connection, and our record of it. */
static struct bufferevent *on_accept(struct event_base *base, void *arg) {
    struct connections *connections = arg;
    struct bufferevent *bufferevent = bufferevent_socket_new(base, -1, 0);

    if (bufferevent == NULL || connection_begin(connections, bufferevent) == NULL) {
        tool_say("out of memory for a connection");
        exit(TOOL_SYSTEM); /* evhttp would continue with a connection without bounds */
    }
    make_room(connections);
    event_active(connections->adopt, 0, 0);
    return bufferevent;
}

/* Registers a connection that evhttp now owns under its descriptor. */
static void adopt(struct connections *connections, struct connection *connection) {
    int fd = bufferevent_getfd(connection->bufferevent);
    void *http;

    bufferevent_getcb(connection->bufferevent, NULL, NULL, NULL, &http);
    if (http == NULL) { /* evhttp ran out of memory for it */
        connection_lose(connection);
        return;
    }
    if (fd < 0 || (size_t)fd >= connections->fd_count) { /* above the process's limit */
        tool_say("a descriptor is out of bounds");
        exit(TOOL_SYSTEM);
    }
    connections->by_fd[fd] = connection;
    connection_own(connection, http);
}

/* Closes the connections that send more than they may. */
static void cut_floods(struct connections *connections) {
    struct connection *connection = TAILQ_FIRST(&connections->passing);

    while (connections->flooding > 0 && connection != NULL) {
        struct connection *next = TAILQ_NEXT(connection, link);

        if (connection->floods) {
            connections->flooding--;
            connection->floods = false;
            connections->cut++;
            connection_drop(connection);
        }
        connection = next;
    }
}

static void on_adopt(evutil_socket_t fd, short what, void *arg) {
    struct connections *connections = arg;
    struct connection *connection;

    (void)fd;
    (void)what;
    while ((connection = TAILQ_FIRST(&connections->fresh)) != NULL) {
        adopt(connections, connection);
    }
    cut_floods(connections);
    make_room(connections); /* again: before, this turn's connections could not be closed */
}

static void on_sweep(evutil_socket_t fd, short what, void *arg) {
    struct connections *connections = arg;
    struct connection *longest;
    uint64_t now_ms = connections_now_ms();

    (void)fd;
    (void)what;
    while ((longest = TAILQ_FIRST(&connections->passing)) != NULL &&
           now_ms - longest->since_ms >= connections->idle_ms) {
        connections->timed_out++;
        connection_drop(longest);
    }
}

struct connection *connections_serve(struct connections *connections,
                                     struct evhttp_request *request) {
    struct evhttp_connection *http = evhttp_request_get_connection(request);
    int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(http));
    struct connection *connection =
        fd >= 0 && (size_t)fd < connections->fd_count ? connections->by_fd[fd] : NULL;

    if (connection == NULL || connection->http != http) {
        return NULL;
    }
    connection->request = request;
    connection_set_state(connection, CONNECTION_SERVING);
    return connection;
}

bool connections_are_busy(const struct connections *connections) {
    const struct connection *connection;

    TAILQ_FOREACH(connection, &connections->passing, link) {
        if (connection->state == CONNECTION_ANSWERING) {
            return true;
        }
    }
    return !TAILQ_EMPTY(&connections->serving);
}

void connections_close(struct connections *connections) {
    if (!connections->is_closed) {
        connections->is_closed = true;
        evhttp_del_accept_socket(connections->http, connections->socket);
    }
}

static bool raise_descriptors(struct connections *connections) {
    struct rlimit limit;
    size_t wanted = 2 * connections->limit + OTHER_DESCRIPTORS;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return false;
    }
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            tool_say("%zu descriptors are needed for so many connections (ulimit -n)", wanted);
            return false;
        }
    }
    connections->fd_count = limit.rlim_cur < 1u << 20 ? limit.rlim_cur : 1u << 20;
    connections->by_fd = calloc(connections->fd_count, sizeof(*connections->by_fd));
    return connections->by_fd != NULL;
}

bool connections_init(struct connections *connections, struct event_base *base, struct evhttp *http,
                      const struct settings *settings) {
    uint64_t sweep_ms = settings->idle_ms < 2000 ? settings->idle_ms / 2 : 1000;
    struct timeval interval = {.tv_sec = (time_t)(sweep_ms / 1000),
                               .tv_usec = (suseconds_t)(sweep_ms % 1000 * 1000)};

    *connections = (struct connections){.base = base,
                                        .http = http,
                                        .limit = settings->max_connections,
                                        .idle_ms = settings->idle_ms};
    TAILQ_INIT(&connections->fresh);
    TAILQ_INIT(&connections->passing);
    TAILQ_INIT(&connections->serving);
    if (!raise_descriptors(connections)) {
        return false;
    }
    evhttp_set_bevcb(http, on_accept, connections);
    connections->socket = evhttp_bind_socket_with_handle(http, settings->address, settings->port);
    if (connections->socket == NULL) {
        tool_say("cannot listen on %s, port %u: %s", settings->address, settings->port,
                 strerror(errno));
        return false;
    }
    connections->adopt = event_new(base, -1, 0, on_adopt, connections);
    connections->sweep = event_new(base, -1, EV_PERSIST, on_sweep, connections);
    return connections->adopt != NULL && connections->sweep != NULL &&
           event_add(connections->sweep, &interval) == 0;
}

void connections_finish(struct connections *connections) {
    if (connections->adopt != NULL) {
        event_free(connections->adopt);
    }
    if (connections->sweep != NULL) {
        event_free(connections->sweep);
    }
    free(connections->by_fd);
}
