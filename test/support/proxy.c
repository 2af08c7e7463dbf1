/*
 * A span is one connection of the client and the connection to the master that belongs to it.
 * Requests are taken apart into commands on their way, so that commands can be counted, and held
 * from a named one on; replies are passed on as they come.
 *
 * When the client's side ends first, the bytes that it sent are still delivered before the master's
 * side is ended, as by a network.
 */
#define _GNU_SOURCE 1

#include "proxy.h"

#include "port.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_NAMES 16
#define NAME_SIZE 16

struct span {
    LIST_ENTRY(span) entry;
    struct proxy *proxy;
    struct bufferevent *client; /* NULL: ended */
    struct bufferevent *server;
    struct evbuffer *requests; /* not yet passed on */
    bool hold_requests;
    bool hold_replies;
    bool shut; /* the server was told the end of the requests */
};

struct tally {
    char name[NAME_SIZE];
    size_t count;
};

struct proxy {
    struct fixture *fixture;
    size_t master;
    struct evconnlistener *listener; /* NULL: connections are refused */
    int reservation;                 /* the socket that reserves the port */
    struct sockaddr_in address;
    LIST_HEAD(, span) spans;
    bool hold_requests; /* for new connections */
    bool hold_replies;
    char hold_from[NAME_SIZE]; /* the command that begins the hold; "": none */
    struct tally tallies[MOST_NAMES];
    void (*watch)(const struct command *command, void *arg);
    void *watch_arg;
    char uri[40];
};

/* ----------------------------------------------------------------------------------- one span */

static void end_client(struct span *span) {
    if (span->client != NULL) {
        bufferevent_free(span->client);
        span->client = NULL;
    }
}

static void free_span(struct span *span) {
    LIST_REMOVE(span, entry);
    end_client(span);
    bufferevent_free(span->server);
    evbuffer_free(span->requests);
    free(span);
}

static void pass_requests(struct span *span) {
    if (!span->hold_requests) {
        evbuffer_add_buffer(bufferevent_get_output(span->server), span->requests);
    }
}

static void pass_replies(struct span *span) {
    struct evbuffer *replies = bufferevent_get_input(span->server);

    if (span->client == NULL) {
        evbuffer_drain(replies, evbuffer_get_length(replies));
    } else if (!span->hold_replies) {
        evbuffer_add_buffer(bufferevent_get_output(span->client), replies);
    }
}

/* Tells the master the end of the requests, once the client is gone and all is delivered. */
static void shut_when_delivered(struct span *span) {
    if (span->client == NULL && !span->shut && evbuffer_get_length(span->requests) == 0 &&
        evbuffer_get_length(bufferevent_get_output(span->server)) == 0) {
        span->shut = true;
        shutdown(bufferevent_getfd(span->server), SHUT_WR);
    }
}

static void count_command(struct proxy *proxy, const struct command *command) {
    char name[NAME_SIZE];
    size_t i = 0;

    command_text(command, 0, name, sizeof(name));
    while (i < MOST_NAMES - 1 && proxy->tallies[i].count > 0 &&
           strcmp(proxy->tallies[i].name, name) != 0) {
        i++;
    }
    memcpy(proxy->tallies[i].name, name, sizeof(name));
    proxy->tallies[i].count++;
    if (proxy->watch != NULL) {
        proxy->watch(command, proxy->watch_arg);
    }
}

static void take_requests(struct span *span) {
    struct proxy *proxy = span->proxy;
    struct evbuffer *input = bufferevent_get_input(span->client);
    struct command command;

    while (command_read(&command, input) > 0) {
        size_t size = command.size;

        count_command(proxy, &command);
        if (proxy->hold_from[0] != '\0' && command_is(&command, proxy->hold_from, NULL)) {
            pass_requests(span);
            span->hold_requests = true;
        }
        command_finish(&command);
        evbuffer_remove_buffer(input, span->requests, size);
    }
    pass_requests(span);
}

static void on_request(struct bufferevent *stream, void *arg) {
    (void)stream;
    take_requests(arg);
}

static void on_reply(struct bufferevent *stream, void *arg) {
    (void)stream;
    pass_replies(arg);
}

static void on_delivered(struct bufferevent *stream, void *arg) {
    (void)stream;
    shut_when_delivered(arg);
}

static void on_client_event(struct bufferevent *stream, short what, void *arg) {
    struct span *span = arg;

    (void)stream;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) {
        take_requests(span);
        end_client(span);
        pass_replies(span);
        shut_when_delivered(span);
    }
}

static void on_server_event(struct bufferevent *stream, short what, void *arg) {
    (void)stream;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) {
        free_span(arg);
    }
}

static struct bufferevent *new_stream(struct proxy *proxy, int fd) {
    struct bufferevent *stream =
        bufferevent_socket_new(proxy->fixture->base, fd, BEV_OPT_CLOSE_ON_FREE);

    assert_non_null(stream);
    return stream;
}

static void connect_to_master(struct span *span) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    int port = masters_port(span->proxy->fixture->masters, span->proxy->master);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    bufferevent_setcb(span->server, on_reply, on_delivered, on_server_event, span);
    bufferevent_enable(span->server, EV_READ | EV_WRITE);
    bufferevent_socket_connect(span->server, (struct sockaddr *)&address, sizeof(address));
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *arg) {
    struct proxy *proxy = arg;
    struct span *span = calloc(1, sizeof(*span));
    int on = 1;

    (void)listener;
    (void)address;
    (void)length;
    assert_non_null(span);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    span->proxy = proxy;
    span->hold_requests = proxy->hold_requests;
    span->hold_replies = proxy->hold_replies;
    span->requests = evbuffer_new();
    assert_non_null(span->requests);
    span->client = new_stream(proxy, fd);
    span->server = new_stream(proxy, -1);
    LIST_INSERT_HEAD(&proxy->spans, span, entry);
    bufferevent_setcb(span->client, on_request, NULL, on_client_event, span);
    bufferevent_enable(span->client, EV_READ | EV_WRITE);
    connect_to_master(span);
}

/* ------------------------------------------------------------------------------------ the proxy */

static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    return fd;
}

void proxy_accept(struct proxy *proxy) {
    if (proxy->listener == NULL) {
        int fd = new_socket();

        assert_int_equal(port_listen(fd, &proxy->address), 0);
        proxy->listener = evconnlistener_new(proxy->fixture->base, on_accept, proxy,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
        assert_non_null(proxy->listener);
    }
}

void proxy_refuse(struct proxy *proxy) {
    if (proxy->listener != NULL) {
        evconnlistener_free(proxy->listener);
        proxy->listener = NULL;
    }
}

static void destroy(void *object) {
    struct proxy *proxy = object;

    proxy_refuse(proxy);
    proxy_cut(proxy);
    close(proxy->reservation);
    free(proxy);
}

struct proxy *proxy_create(struct fixture *f, size_t master) {
    struct proxy *proxy = calloc(1, sizeof(*proxy));

    assert_non_null(proxy);
    proxy->fixture = f;
    proxy->master = master;
    LIST_INIT(&proxy->spans);
    proxy->reservation = new_socket();
    assert_int_equal(port_reserve(proxy->reservation, &proxy->address), 0);
    snprintf(proxy->uri, sizeof(proxy->uri), "redis://127.0.0.1:%d",
             ntohs(proxy->address.sin_port));
    proxy_accept(proxy);
    at_finish(f, destroy, proxy);
    return proxy;
}

void proxies_create(struct fixture *f, struct proxy **proxies, const char **uris) {
    for (size_t i = 0; i < masters_count(f->masters); i++) {
        proxies[i] = proxy_create(f, i);
        uris[i] = proxy_uri(proxies[i]);
    }
}

const char *proxy_uri(const struct proxy *proxy) {
    return proxy->uri;
}

void proxy_hold_requests(struct proxy *proxy, const char *from) {
    struct span *span;

    if (from != NULL) {
        snprintf(proxy->hold_from, sizeof(proxy->hold_from), "%s", from);
        return;
    }
    proxy->hold_requests = true;
    LIST_FOREACH(span, &proxy->spans, entry) {
        span->hold_requests = true;
    }
}

void proxy_pass_requests(struct proxy *proxy) {
    struct span *span;

    proxy->hold_requests = false;
    proxy->hold_from[0] = '\0';
    LIST_FOREACH(span, &proxy->spans, entry) {
        span->hold_requests = false;
        pass_requests(span);
        shut_when_delivered(span);
    }
}

void proxy_hold_replies(struct proxy *proxy) {
    struct span *span;

    proxy->hold_replies = true;
    LIST_FOREACH(span, &proxy->spans, entry) {
        span->hold_replies = true;
    }
}

void proxy_pass_replies(struct proxy *proxy) {
    struct span *span;

    proxy->hold_replies = false;
    LIST_FOREACH(span, &proxy->spans, entry) {
        span->hold_replies = false;
        pass_replies(span);
    }
}

void proxies_hold_requests(struct proxy *const *proxies, size_t from, size_t to, const char *name) {
    for (size_t i = from; i < to; i++) {
        proxy_hold_requests(proxies[i], name);
    }
}

void proxies_pass_requests(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_pass_requests(proxies[i]);
    }
}

void proxies_hold_replies(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_hold_replies(proxies[i]);
    }
}

void proxies_pass_replies(struct proxy *const *proxies, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        proxy_pass_replies(proxies[i]);
    }
}

void proxy_cut(struct proxy *proxy) {
    while (!LIST_EMPTY(&proxy->spans)) {
        free_span(LIST_FIRST(&proxy->spans));
    }
}

void proxy_strand(struct proxy *proxy) {
    struct span *span;

    proxy->hold_requests = false;
    proxy->hold_replies = false;
    proxy->hold_from[0] = '\0';
    LIST_FOREACH(span, &proxy->spans, entry) {
        end_client(span);
        shut_when_delivered(span);
    }
}

static bool has_delivered(void *arg) {
    const struct proxy *proxy = arg;
    const struct span *span;

    LIST_FOREACH(span, &proxy->spans, entry) {
        if (span->client == NULL) {
            return false;
        }
    }
    return true;
}

void proxy_deliver(struct proxy *proxy) {
    struct span *span;

    LIST_FOREACH(span, &proxy->spans, entry) {
        if (span->client == NULL) {
            span->hold_requests = false;
            pass_requests(span);
        }
    }
    run_until(proxy->fixture, has_delivered, proxy, "the stranded requests are executed");
}

size_t proxy_arrived(const struct proxy *proxy, const char *name) {
    for (size_t i = 0; i < MOST_NAMES; i++) {
        if (strcmp(proxy->tallies[i].name, name) == 0) {
            return proxy->tallies[i].count;
        }
    }
    return 0;
}

struct wanted {
    const struct proxy *proxy;
    const char *name;
    size_t count;
};

static bool has_arrived(void *arg) {
    const struct wanted *wanted = arg;

    return proxy_arrived(wanted->proxy, wanted->name) >= wanted->count;
}

void wait_arrived(struct fixture *f, struct proxy *proxy, const char *name, size_t count) {
    struct wanted wanted = {proxy, name, count};
    char what[64];

    snprintf(what, sizeof(what), "%s has arrived %zu times", name, count);
    run_until(f, has_arrived, &wanted, what);
}

void proxy_watch(struct proxy *proxy, void (*watch)(const struct command *command, void *arg),
                 void *arg) {
    proxy->watch = watch;
    proxy->watch_arg = arg;
}
