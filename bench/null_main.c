/*
 * redlock-null-masters: N masters in one process that cost next to nothing, started by
 * redlock-bench.
 *
 *     redlock-null-masters N
 *
 * Listens on N ports of 127.0.0.1, prints their numbers on one line, and serves until its standard
 * input ends.
 */
#include "null_answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define MASTERS_MAX 32
#define READ_SIZE 65536
#define EVENTS_MAX 64

/* A listening socket, a connection, or standard input. */
struct channel {
    LIST_ENTRY(channel) link;
    int fd;
    int port; /* the master's number; 0: standard input */
    bool listens;
    bool is_full; /* whether `output` waits until the socket is writable */
    struct null_bytes input;
    struct null_bytes output;
};

static int epoll;
static LIST_HEAD(, channel) channels = LIST_HEAD_INITIALIZER(channels);

static _Noreturn void die(const char *what) {
    fprintf(stderr, "redlock-null-masters: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void watch(int fd, int port, bool listens) {
    struct channel *channel = calloc(1, sizeof(*channel));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = channel};

    if (channel == NULL || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("cannot watch a descriptor");
    }
    *channel = (struct channel){.fd = fd, .port = port, .listens = listens};
    LIST_INSERT_HEAD(&channels, channel, link);
}

/* Listens on a free port of 127.0.0.1. Returns the port. */
static int listen_anywhere(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        die("cannot listen");
    }
    watch(fd, ntohs(address.sin_port), true);
    return ntohs(address.sin_port);
}

static void drop(struct channel *channel) {
    LIST_REMOVE(channel, link);
    close(channel->fd);
    free(channel->input.data);
    free(channel->output.data);
    free(channel);
}

static void accept_all(const struct channel *listener) {
    int one = 1;
    int fd;

    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        watch(fd, listener->port, false);
    }
}

/* Writes as much as the socket accepts. Returns false when the connection has ended. */
static bool flush(struct channel *channel) {
    struct epoll_event event = {.data.ptr = channel};
    ssize_t written = write(channel->fd, channel->output.data, channel->output.length);
    bool is_full;

    if (written < 0 && errno != EAGAIN) {
        return false;
    }
    null_bytes_drop(&channel->output, written > 0 ? (size_t)written : 0);
    is_full = channel->output.length > 0;
    if (is_full != channel->is_full) {
        channel->is_full = is_full;
        event.events = is_full ? EPOLLOUT : EPOLLIN; /* reads no command while it is full */
        return epoll_ctl(epoll, EPOLL_CTL_MOD, channel->fd, &event) == 0;
    }
    return true;
}

static bool serve(struct channel *channel) {
    ssize_t got;

    if (channel->is_full) {
        return flush(channel);
    }
    if (!null_bytes_reserve(&channel->input, READ_SIZE)) {
        return false;
    }
    got = read(channel->fd, channel->input.data + channel->input.length,
               channel->input.capacity - channel->input.length);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    channel->input.length += (size_t)got;
    return null_answer(&channel->input, &channel->output, channel->port) &&
           (channel->output.length == 0 || flush(channel));
}

/* Handles an event of a channel. Returns false when standard input has ended. */
static bool on_event(struct channel *channel) {
    if (channel->port == 0) {
        return false;
    }
    if (channel->listens) {
        accept_all(channel);
    } else if (!serve(channel)) {
        drop(channel);
    }
    return true;
}

static bool on_events(void) {
    struct epoll_event events[EVENTS_MAX];
    int ready = epoll_wait(epoll, events, EVENTS_MAX, -1);

    for (int i = 0; i < ready; i++) {
        if (!on_event(events[i].data.ptr)) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

    if (count < 1 || count > MASTERS_MAX) {
        fputs("usage: redlock-null-masters N\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        die("epoll");
    }
    for (long i = 0; i < count; i++) {
        printf("%d ", listen_anywhere());
    }
    putchar('\n');
    if (fflush(stdout) != 0) {
        die("cannot print the ports");
    }
    watch(STDIN_FILENO, 0, false);
    while (on_events()) {
    }
    while (!LIST_EMPTY(&channels)) {
        drop(LIST_FIRST(&channels));
    }
    return EXIT_SUCCESS;
}
