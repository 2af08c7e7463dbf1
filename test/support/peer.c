#define _GNU_SOURCE 1

#include "peer.h"

#include "fake_connection.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

struct peer_link {
    LIST_ENTRY(peer_link) entry;
    struct peer *peer;
    struct bufferevent *stream;
    struct fake_connection connection; /* its outbox holds the bytes for the stream */
    const void *poured;                /* bytes to send over and over; NULL: none */
    size_t poured_length;
    bool reading; /* inside the answer callback */
    bool hung_up;
};

struct peer {
    struct event_base *base;
    struct evconnlistener *listener;
    LIST_HEAD(, peer_link) links;
    peer_answer *answer;
    void *arg;
    void (*greet)(struct peer_link *link, void *arg);
    size_t chunk;
    size_t accepted;
    size_t open;
    size_t poured;
    size_t commands;
    int port; /* 0: on a Unix socket */
    char uri[160];
};

/* ---------------------------------------------------------------------------------- connections */

static void free_link(struct peer_link *link) {
    LIST_REMOVE(link, entry);
    link->peer->open--;
    bufferevent_free(link->stream);
    fake_connection_finish(&link->connection);
    free(link);
}

/* Passes the next piece to the stream. */
static void pump(struct peer_link *link) {
    struct evbuffer *output = bufferevent_get_output(link->stream);
    size_t waiting = fake_connection_unsent(&link->connection);

    if (evbuffer_get_length(output) > 0) {
        return;
    }
    if (waiting > 0) {
        evbuffer_remove_buffer(link->connection.outbox, output,
                               waiting < link->peer->chunk ? waiting : link->peer->chunk);
    } else if (link->poured != NULL) {
        evbuffer_add(output, link->poured, link->poured_length);
        link->peer->poured += link->poured_length;
    } else if (link->hung_up && !link->reading) {
        free_link(link);
    }
}

static bool ask(const struct command *command, void *arg) {
    struct peer_link *link = arg;

    link->peer->commands++;
    link->peer->answer(link, command, link->peer->arg);
    return !link->hung_up;
}

static void read_commands(struct peer_link *link) {
    ssize_t served = 0;

    evbuffer_add_buffer(link->connection.inbox, bufferevent_get_input(link->stream));
    link->reading = true;
    if (!link->hung_up) {
        served = fake_connection_serve(&link->connection, SIZE_MAX, ask, link);
    }
    link->reading = false;
    if (served < 0) {
        fail_msg("the library sent something that is no command");
    }
    pump(link);
}

static void on_read(struct bufferevent *stream, void *arg) {
    (void)stream;
    read_commands(arg);
}

static void on_written(struct bufferevent *stream, void *arg) {
    (void)stream;
    pump(arg);
}

static void on_event(struct bufferevent *stream, short what, void *arg) {
    (void)stream;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) {
        free_link(arg);
    }
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *arg) {
    struct peer *peer = arg;
    struct peer_link *link = calloc(1, sizeof(*link));
    int on = 1;

    (void)listener;
    (void)length;
    assert_non_null(link);
    if (address->sa_family == AF_INET) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    link->peer = peer;
    assert_true(fake_connection_init(&link->connection));
    link->stream = bufferevent_socket_new(peer->base, fd, BEV_OPT_CLOSE_ON_FREE);
    assert_non_null(link->stream);
    LIST_INSERT_HEAD(&peer->links, link, entry);
    peer->accepted++;
    peer->open++;
    bufferevent_setcb(link->stream, on_read, on_written, on_event, link);
    bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    if (peer->greet != NULL) {
        peer->greet(link, peer->arg);
    }
}

/* ----------------------------------------------------------------------------------- the server */

static struct peer *listen_at(struct event_base *base, const struct sockaddr *address,
                              socklen_t size, peer_answer *answer, void *arg) {
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_non_null(peer);
    *peer = (struct peer){.base = base, .answer = answer, .arg = arg, .chunk = SIZE_MAX};
    LIST_INIT(&peer->links);
    peer->listener = evconnlistener_new_bind(base, on_accept, peer,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 128,
                                             address, (int)size);
    assert_non_null(peer->listener);
    return peer;
}

struct peer *peer_listen(struct event_base *base, peer_answer *answer, void *arg) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct peer *peer = listen_at(base, (struct sockaddr *)&address, size, answer, arg);

    getsockname(evconnlistener_get_fd(peer->listener), (struct sockaddr *)&address, &size);
    peer->port = ntohs(address.sin_port);
    snprintf(peer->uri, sizeof(peer->uri), "redis://127.0.0.1:%d", peer->port);
    return peer;
}

struct peer *peer_listen_unix(struct event_base *base, const char *folder, peer_answer *answer,
                              void *arg) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", folder);
    struct peer *peer = listen_at(base, (struct sockaddr *)&address, sizeof(address), answer, arg);
    snprintf(peer->uri, sizeof(peer->uri), "unix://%s", address.sun_path);
    return peer;
}

void peer_destroy(struct peer *peer) {
    peer_drop_links(peer);
    evconnlistener_free(peer->listener);
    free(peer);
}
int peer_port(const struct peer *peer) {
    return peer->port;
}

const char *peer_uri(const struct peer *peer) {
    return peer->uri;
}

void peer_greet(struct peer *peer, void (*greet)(struct peer_link *link, void *arg)) {
    peer->greet = greet;
}

void peer_set_chunk(struct peer *peer, size_t bytes) {
    peer->chunk = bytes;
}

size_t peer_links(const struct peer *peer) {
    return peer->accepted;
}

size_t peer_open_links(const struct peer *peer) {
    return peer->open;
}

size_t peer_poured(const struct peer *peer) {
    return peer->poured;
}

size_t peer_commands(const struct peer *peer) {
    return peer->commands;
}

/* -------------------------------------------------------------------------------------- answers */

/* Sends the queued bytes, unless inside the answer callback, whose caller does so. */
static void said(struct peer_link *link) {
    if (!link->reading) {
        pump(link);
    }
}

/* Answers "y" for each key: the key existed, and is now released or renewed. */
static void answer_script(struct peer_link *link, const struct command *command) {
    size_t keys = command_keys(command);
    char *items = malloc(keys + 1);

    assert_non_null(items);
    memset(items, 'y', keys);
    fake_connection_say_bulk(&link->connection, items, keys);
    free(items);
    said(link);
}

void peer_answer_well(struct peer_link *link, const struct command *command, void *arg) {
    (void)arg;
    if (command_is_script(command)) {
        answer_script(link, command);
    } else if (command_is(command, "SCRIPT", "LOAD")) {
        peer_say(link, "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n");
    } else if (command_is(command, "PING", NULL)) {
        peer_say(link, "+PONG\r\n");
    } else {
        peer_say(link, "+OK\r\n");
    }
}

void peer_answer_nothing(struct peer_link *link, const struct command *command, void *arg) {
    (void)link;
    (void)command;
    (void)arg;
}

void peer_send(struct peer_link *link, const void *bytes, size_t length) {
    fake_connection_say(&link->connection, bytes, length);
    said(link);
}

void peer_say(struct peer_link *link, const char *text) {
    peer_send(link, text, strlen(text));
}

void peer_pour(struct peer_link *link, const void *bytes, size_t length) {
    link->poured = bytes;
    link->poured_length = length;
    said(link);
}

void peer_turn_away(struct peer_link *link) {
    bufferevent_disable(link->stream, EV_READ);
}

void peer_hang_up(struct peer_link *link) {
    link->hung_up = true;
    said(link);
}

bool peer_has(const struct peer *peer, const struct peer_link *link) {
    const struct peer_link *other;

    LIST_FOREACH(other, &peer->links, entry) {
        if (other == link) {
            return true;
        }
    }
    return false;
}

void peer_drop_links(struct peer *peer) {
    while (!LIST_EMPTY(&peer->links)) {
        free_link(LIST_FIRST(&peer->links));
    }
}
