/*
 * One connection: its states and its end.
 *
 * While a request is served, evhttp does not read: it does not notice when the connection breaks,
 * and bytes that a client sends ahead stay in the socket. Therefore an edge-triggered event on a
 * duplicate of the descriptor detects the end: a duplicate, because libevent does not mix its own
 * events with edge-triggered ones on one descriptor; and not EV_CLOSED, which needs no edge,
 * because it does not report resets.
 */
#include "connections.h"
#include "gateway.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Maximum number of bytes read from a connection but not yet parsed: a whole request fits. evhttp
 * has no bound on the line with a chunk's size. (A high watermark would make libevent call evhttp
 * in a loop.)
 */
#define READ_MAX (2 * GATEWAY_BODY_LIMIT)

uint64_t connections_now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct connection_list *list_of(struct connection *connection) {
    struct connections *connections = connection->connections;

    if (connection->http == NULL) {
        return &connections->fresh;
    }
    return connection->state == CONNECTION_SERVING ? &connections->serving : &connections->passing;
}

void connection_set_state(struct connection *connection, enum connection_state state) {
    TAILQ_REMOVE(list_of(connection), connection, link);
    connection->state = state;
    connection->since_ms = connections_now_ms();
    TAILQ_INSERT_TAIL(list_of(connection), connection, link);
}

void connection_forget(struct connection *connection) {
    connection->on_broken = NULL;
    connection->on_written = NULL;
    if (connection->watch != NULL) {
        event_free(connection->watch);
        connection->watch = NULL;
    }
    if (connection->watched >= 0) {
        close(connection->watched);
        connection->watched = -1;
    }
}

/*
 * Replaces NUL bytes by bytes that are also invalid in headers and in JSON. evhttp would silently
 * end a header at the NUL: "Content-Length: 5\09" would be 5.
 */
static void replace_nuls(struct evbuffer *input, size_t from) {
    struct evbuffer_iovec span;
    struct evbuffer_ptr position;

    for (; evbuffer_ptr_set(input, &position, from, EVBUFFER_PTR_SET) == 0 &&
           evbuffer_peek(input, -1, &position, &span, 1) > 0;
         from += span.iov_len) {
        char *end = (char *)span.iov_base + span.iov_len;

        for (char *nul = span.iov_base; (nul = memchr(nul, '\0', (size_t)(end - nul))) != NULL;) {
            *nul = '\1';
        }
    }
}

/* Records a connection that has sent too much, to be closed when evhttp does not use it. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg) {
    struct connection *connection = arg;

    if (info->n_added > 0) {
        replace_nuls(input, info->orig_size);
    }
    if (evbuffer_get_length(input) > READ_MAX && !connection->floods) {
        connection->floods = true;
        connection->connections->flooding++;
        event_active(connection->connections->adopt, 0, 0);
    }
}

/* Frees the record of a connection that evhttp is about to free, and notifies its watcher. */
static void on_close(struct evhttp_connection *http, void *arg) {
    struct connection *connection = arg;
    struct connections *connections = connection->connections;
    connection_cb *on_broken = connection->on_broken;
    void *on_broken_arg = connection->arg;

    (void)http;
    connection_forget(connection);
    evbuffer_remove_cb(bufferevent_get_input(connection->bufferevent), on_input, connection);
    TAILQ_REMOVE(list_of(connection), connection, link);
    connections->by_fd[bufferevent_getfd(connection->bufferevent)] = NULL;
    connections->flooding -= connection->floods;
    if (connections->count-- == connections->limit && !connections->is_closed) {
        evconnlistener_enable(evhttp_bound_socket_get_listener(connections->socket));
    }
    /* If an error breaks the connection while its request is served, we must free the request. */
    if (connection->state == CONNECTION_SERVING &&
        evhttp_request_get_connection(connection->request) == NULL) {
        evhttp_request_free(connection->request);
    }
    free(connection);
    if (on_broken != NULL) {
        on_broken(on_broken_arg);
    }
}

struct connection *connection_begin(struct connections *connections,
                                    struct bufferevent *bufferevent) {
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL ||
        evbuffer_add_cb(bufferevent_get_input(bufferevent), on_input, connection) == NULL) {
        free(connection);
        return NULL;
    }
    bufferevent_incref(bufferevent); /* until it is known that evhttp owns it */
    *connection = (struct connection){
        .connections = connections,
        .bufferevent = bufferevent,
        .since_ms = connections_now_ms(),
        .watched = -1,
    };
    TAILQ_INSERT_TAIL(&connections->fresh, connection, link);
    connections->count++;
    connections->accepted++;
    return connection;
}

void connection_own(struct connection *connection, struct evhttp_connection *http) {
    TAILQ_REMOVE(list_of(connection), connection, link);
    connection->http = http;
    TAILQ_INSERT_TAIL(list_of(connection), connection, link);
    evhttp_connection_set_closecb(http, on_close, connection);
    bufferevent_decref(connection->bufferevent);
}

void connection_lose(struct connection *connection) {
    TAILQ_REMOVE(list_of(connection), connection, link);
    connection->connections->count--;
    evbuffer_remove_cb(bufferevent_get_input(connection->bufferevent), on_input, connection);
    bufferevent_decref(connection->bufferevent);
    free(connection);
}

void connection_drop(struct connection *connection) {
    evhttp_connection_free(connection->http);
}

static bool has_ended(int fd) {
    struct pollfd polled = {.fd = fd, .events = POLLRDHUP};

    return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool connection_is_gone(const struct connection *connection) {
    return has_ended(bufferevent_getfd(connection->bufferevent));
}

static void on_watched(evutil_socket_t fd, short what, void *arg) {
    (void)what;
    if (has_ended(fd)) {
        connection_drop(arg);
    }
}

bool connection_watch(struct connection *connection, bool looks, connection_cb *on_broken,
                      connection_cb *on_written, void *arg) {
    connection_forget(connection);
    if (looks) {
        connection->watched = dup(bufferevent_getfd(connection->bufferevent));
        if (connection->watched < 0) {
            return false;
        }
        connection->watch = event_new(connection->connections->base, connection->watched,
                                      EV_READ | EV_ET | EV_PERSIST, on_watched, connection);
        if (connection->watch == NULL || event_add(connection->watch, NULL) != 0) {
            connection_forget(connection);
            return false;
        }
    }
    connection->on_broken = on_broken;
    connection->on_written = on_written;
    connection->arg = arg;
    return true;
}

static void on_answered(struct evhttp_request *request, void *arg) {
    struct connection *connection = arg;
    connection_cb *on_written = connection->on_written;
    void *on_written_arg = connection->arg;

    (void)request;
    connection_forget(connection);
    connection->request = NULL;
    connection_set_state(connection, CONNECTION_READING);
    event_active(connection->connections->adopt, 0, 0); /* closes it again if there is no room */
    if (on_written != NULL) {
        on_written(on_written_arg);
    }
}

void connection_answer(struct connection *connection) {
    evhttp_request_set_on_complete_cb(connection->request, on_answered, connection);
    connection_set_state(connection, CONNECTION_ANSWERING);
}
