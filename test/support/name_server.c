#include "name_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Of RFC 1035. */
#define HEADER_SIZE 12
#define TYPE_A 1
#define TYPE_AAAA 28
#define FLAGS_ANSWER 0x8180 /* an answer, recursion desired and available */
#define FLAG_TRUNCATED 0x0200
#define NAME_ERROR 3
#define ANSWER_SIZE 4096

struct link {
    struct name_server *server;
    struct bufferevent *events;
    LIST_ENTRY(link) next;
};

struct name_server {
    struct event_base *base;
    name_question_cb *on_question;
    void *arg;
    int fd;
    struct event *readable;
    struct evconnlistener *listener;
    LIST_HEAD(, link) links;
    char where[32];
};

static unsigned get_16(const unsigned char *bytes) {
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static unsigned char *put_16(unsigned char *bytes, unsigned value) {
    bytes[0] = (unsigned char)(value >> 8);
    bytes[1] = (unsigned char)value;
    return bytes + 2;
}

/* ---- questions ---- */

/* Takes the header and the only question of a packet, and passes it to the test. */
static void take_question(struct name_server *server, struct name_question *question,
                          const unsigned char *packet, size_t size) {
    size_t end = HEADER_SIZE;
    while (end < size && packet[end] != 0) {
        end += packet[end] + 1u;
    }
    end += 5; /* the root's label, type, class */
    assert_true(end <= size && end <= sizeof(question->packet));
    question->server = server;
    question->is_ipv6 = get_16(packet + end - 4) == TYPE_AAAA;
    question->size = end;
    memcpy(question->packet, packet, end);
    server->on_question(question, server->arg);
}

static void on_packet(evutil_socket_t fd, short what, void *arg) {
    struct name_question question = {0};
    unsigned char packet[ANSWER_SIZE];
    socklen_t length = sizeof(question.client);
    ssize_t size = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT,
                            (struct sockaddr *)&question.client, &length);
    (void)what;
    if (size > 0) {
        take_question(arg, &question, packet, (size_t)size);
    }
}

/* Takes the questions that have arrived, each of which follows its length. */
static void on_stream(struct bufferevent *events, void *arg) {
    struct link *link = arg;
    struct evbuffer *input = bufferevent_get_input(events);
    unsigned char packet[2 + ANSWER_SIZE];
    while (evbuffer_copyout(input, packet, 2) == 2) {
        size_t size = get_16(packet);
        assert_true(size <= ANSWER_SIZE);
        if (evbuffer_get_length(input) < 2 + size) {
            return;
        }
        struct name_question question = {.connection = events};
        evbuffer_remove(input, packet, 2 + size);
        take_question(link->server, &question, packet + 2, size);
    }
}

/* ---- connections ---- */

static void free_link(struct link *link) {
    LIST_REMOVE(link, next);
    bufferevent_free(link->events);
    free(link);
}

static void on_end(struct bufferevent *events, short what, void *arg) {
    (void)events;
    (void)what;
    free_link(arg);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int length, void *arg) {
    struct name_server *server = arg;
    struct link *link = calloc(1, sizeof(*link));
    (void)listener;
    (void)address;
    (void)length;
    assert_true(link != NULL);
    link->server = server;
    link->events = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    assert_true(link->events != NULL);
    LIST_INSERT_HEAD(&server->links, link, next);
    bufferevent_setcb(link->events, on_stream, NULL, on_end, link);
    assert_true(bufferevent_enable(link->events, EV_READ | EV_WRITE) == 0);
}

/* ---- answers ---- */

static void send_answer(const struct name_question *question, unsigned char *packet, size_t size) {
    const struct sockaddr *client = (const struct sockaddr *)&question->client;
    unsigned char length[2];
    if (question->connection != NULL) {
        put_16(length, (unsigned)size);
        bufferevent_write(question->connection, length, sizeof(length));
        bufferevent_write(question->connection, packet, size);
    } else {
        /* It may come too late: then the client's socket is closed. */
        (void)!sendto(question->server->fd, packet, size, 0, client, sizeof(question->client));
    }
}

/* Begins an answer, without addresses. */
static void begin_answer(const struct name_question *question, unsigned flags,
                         unsigned char *packet) {
    memcpy(packet, question->packet, question->size);
    put_16(packet + 2, FLAGS_ANSWER | flags);
    memset(packet + 6, 0,
           HEADER_SIZE - 6); /* none of the numbers of records but that of questions */
}

static void answer_by_flags(const struct name_question *question, unsigned flags) {
    unsigned char packet[ANSWER_SIZE];
    begin_answer(question, flags, packet);
    send_answer(question, packet, question->size);
}

void name_server_answer(const struct name_question *question, const char *const *addresses) {
    const int family = question->is_ipv6 ? AF_INET6 : AF_INET;
    const unsigned size = question->is_ipv6 ? 16 : 4;
    unsigned char packet[ANSWER_SIZE];
    unsigned char *end = packet + question->size;
    unsigned count = 0;
    begin_answer(question, 0, packet);
    for (; *addresses != NULL; addresses++) {
        unsigned char bytes[16];
        if (inet_pton(family, *addresses, bytes) == 1) {
            end = put_16(end, 0xc000 | HEADER_SIZE); /* the name of the question */
            end = put_16(end, question->is_ipv6 ? TYPE_AAAA : TYPE_A);
            end = put_16(end, 1);            /* Internet */
            end = put_16(put_16(end, 0), 1); /* for 1 s */
            end = put_16(end, size);
            memcpy(end, bytes, size);
            end += size;
            count++;
        }
    }
    put_16(packet + 6, count);
    send_answer(question, packet, (size_t)(end - packet));
}

void name_server_deny(const struct name_question *question) {
    answer_by_flags(question, NAME_ERROR);
}

void name_server_truncate(const struct name_question *question) {
    answer_by_flags(question, FLAG_TRUNCATED);
}

/* ---- life ---- */

/* Binds to a free port for UDP that is also free for TCP. */
static void bind_both(struct name_server *server) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    for (unsigned i = 0; i < 100 && server->listener == NULL; i++) {
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        address.sin_port = 0;
        assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0);
        assert_true(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
        server->listener = evconnlistener_new_bind(server->base, on_connection, server, flags, -1,
                                                   (struct sockaddr *)&address, sizeof(address));
        server->fd = fd;
        if (server->listener == NULL) {
            assert_true(errno == EADDRINUSE);
            close(fd);
        }
    }
    assert_true(server->listener != NULL);
    snprintf(server->where, sizeof(server->where), "127.0.0.1:%u", ntohs(address.sin_port));
}

struct name_server *name_server_start(struct event_base *base, name_question_cb *on_question,
                                      void *arg) {
    struct name_server *server = calloc(1, sizeof(*server));
    assert_true(server != NULL);
    server->base = base;
    server->on_question = on_question;
    server->arg = arg;
    LIST_INIT(&server->links);
    bind_both(server);
    server->readable = event_new(base, server->fd, EV_READ | EV_PERSIST, on_packet, server);
    assert_true(server->readable != NULL && event_add(server->readable, NULL) == 0);
    return server;
}

const char *name_server_where(const struct name_server *server) {
    return server->where;
}

void name_server_stop(struct name_server *server) {
    struct link *link;
    while ((link = LIST_FIRST(&server->links)) != NULL) {
        free_link(link);
    }
    event_free(server->readable);
    close(server->fd);
    evconnlistener_free(server->listener);
    free(server);
}
