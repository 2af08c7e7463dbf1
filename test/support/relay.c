/*
 * A hop is a client's connection and the connection to the port. Bytes that arrive are passed on by
 * a timer that fires in every turn of the loop in which bytes wait.
 */
#include "relay.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct hop {
    LIST_ENTRY(hop) entry;
    struct relay *relay;
    struct bufferevent *client, *server;
    struct event *turn;
};

struct relay {
    struct evconnlistener *listener;
    struct fixture *fixture;
    LIST_HEAD(, hop) hops;
    size_t chunk;
    int port, target;
    bool holds;
};

static void free_hop(struct hop *hop) {
    LIST_REMOVE(hop, entry);
    event_free(hop->turn);
    bufferevent_free(hop->client);
    bufferevent_free(hop->server);
    free(hop);
}

/* Passes one piece on. Returns whether more is left. */
static bool pass_piece(struct hop *hop, struct bufferevent *from, struct bufferevent *to) {
    struct evbuffer *input = bufferevent_get_input(from);

    evbuffer_remove_buffer(input, bufferevent_get_output(to), hop->relay->chunk);
    return evbuffer_get_length(input) > 0;
}

static void on_turn(evutil_socket_t fd, short events, void *arg) {
    const struct timeval at_once = {0};
    struct hop *hop = arg;
    bool is_more = pass_piece(hop, hop->client, hop->server);

    (void)fd;
    (void)events;
    if (pass_piece(hop, hop->server, hop->client) || is_more) {
        event_add(hop->turn, &at_once);
    }
}

static void on_read(struct bufferevent *side, void *arg) {
    const struct timeval at_once = {0};
    struct hop *hop = arg;

    (void)side;
    event_add(hop->turn, &at_once);
}

static void on_event(struct bufferevent *side, short events, void *arg) {
    (void)side;
    if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        free_hop(arg);
    }
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int length, void *arg) {
    struct relay *relay = arg;
    struct event_base *base = relay->fixture->base;
    struct hop *hop = calloc(1, sizeof(*hop));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)relay->target),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    (void)listener;
    (void)from;
    (void)length;
    assert_non_null(hop);
    hop->relay = relay;
    LIST_INSERT_HEAD(&relay->hops, hop, entry);
    hop->client = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    hop->server = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    hop->turn = event_new(base, -1, 0, on_turn, hop);
    assert_true(hop->client != NULL && hop->server != NULL && hop->turn != NULL);
    bufferevent_setcb(hop->client, on_read, NULL, on_event, hop);
    bufferevent_setcb(hop->server, on_read, NULL, on_event, hop);
    bufferevent_enable(hop->client, relay->holds ? 0 : EV_READ);
    bufferevent_enable(hop->server, EV_READ);
    assert_int_equal(
        bufferevent_socket_connect(hop->server, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void destroy(void *object) {
    struct relay *relay = object;
    struct hop *hop, *next;

    for (hop = LIST_FIRST(&relay->hops); hop != NULL; hop = next) {
        next = LIST_NEXT(hop, entry);
        free_hop(hop);
    }
    evconnlistener_free(relay->listener);
    free(relay);
}

struct relay *relay_create(struct fixture *f, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct relay *relay = calloc(1, sizeof(*relay));

    assert_non_null(relay);
    relay->fixture = f;
    relay->target = port;
    relay->chunk = SIZE_MAX;
    LIST_INIT(&relay->hops);
    relay->listener = evconnlistener_new_bind(f->base, on_accept, relay,
                                              LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16,
                                              (struct sockaddr *)&address, sizeof(address));
    assert_non_null(relay->listener);
    assert_int_equal(
        getsockname(evconnlistener_get_fd(relay->listener), (struct sockaddr *)&address, &size), 0);
    relay->port = ntohs(address.sin_port);
    at_finish(f, destroy, relay);
    return relay;
}

int relay_port(const struct relay *relay) {
    return relay->port;
}

void relay_set_chunk(struct relay *relay, size_t bytes) {
    relay->chunk = bytes;
}

void relay_hold(struct relay *relay) {
    struct hop *hop;

    relay->holds = true;
    LIST_FOREACH(hop, &relay->hops, entry) {
        bufferevent_disable(hop->client, EV_READ);
    }
}

void relay_pass(struct relay *relay) {
    struct hop *hop;

    relay->holds = false;
    LIST_FOREACH(hop, &relay->hops, entry) {
        bufferevent_enable(hop->client, EV_READ);
    }
}
