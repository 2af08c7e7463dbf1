/*
 * A span is a connection of a client together with its connection to the node; a lane is one
 * direction of a span. A piece of bytes waits in its lane until it is due, and is written as soon
 * as the sink's socket takes it. A piece is never due before the one ahead of it, as in TCP, where
 * bytes that arrive early wait for lost ones.
 *
 * The end of a source is a piece without bytes: it takes as long, and passes after the bytes. When
 * both ends have passed, or a socket fails, the span is gone.
 *
 * A lane whose bytes exceed a limit does not read, so that its source notices a slow sink.
 */
#include "relay_loop.h"

#include "clock.h"
#include "descriptors.h"
#include "memory.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 65536
#define LANE_SIZE ((size_t)16 << 20)
#define NEVER UINT64_MAX

struct piece {
    uint64_t due_ns;
    size_t size; /* 0: the end of the source */
};

struct lane {
    struct span *span;
    int source;
    int sink;
    struct event *readable; /* of the source */
    struct event *writable; /* of the sink, pending while its socket is full */
    struct event *timer;
    uint64_t timer_ns; /* instant at which it fires; NEVER: it is not pending */

    struct evbuffer *bytes;
    size_t due;              /* number of the first bytes that are due */
    struct evbuffer *pieces; /* those that are not due */
    uint64_t last_due_ns;    /* of the last piece */
    bool is_read_to_end;
    bool is_end_due;
    bool is_over; /* whether the sink got the end */
};

struct span {
    const struct relay_port *port;
    struct lane lanes[2];
};

static struct event_base *base;

static void need(bool got) {
    if (!got) {
        memory_end();
    }
}

static void destroy(struct span *span) {
    for (size_t i = 0; i < 2; i++) {
        struct lane *lane = &span->lanes[i];

        event_free(lane->readable);
        event_free(lane->writable);
        event_free(lane->timer);
        evbuffer_free(lane->bytes);
        evbuffer_free(lane->pieces);
    }
    close(span->lanes[0].source);
    close(span->lanes[0].sink);
    free(span);
}

/* --------------------------------------------------------------------------------------- lanes */

static uint64_t delay_of(const struct relay_terms *terms) {
    uint64_t delay_ns = terms->delay_ns;

    if (terms->jitter_ns > 0) {
        delay_ns += (uint64_t)(drand48() * (double)terms->jitter_ns);
    }
    if (terms->late_share > 0 && drand48() < terms->late_share) {
        delay_ns += terms->late_ns;
    }
    return delay_ns;
}

static void add_piece(struct lane *lane, size_t size, uint64_t now) {
    struct piece piece = {.due_ns = now + delay_of(&lane->span->port->terms), .size = size};

    if (piece.due_ns < lane->last_due_ns) {
        piece.due_ns = lane->last_due_ns;
    }
    lane->last_due_ns = piece.due_ns;
    need(evbuffer_add(lane->pieces, &piece, sizeof(piece)) == 0);
}

static void arm(struct lane *lane, uint64_t due_ns, uint64_t now) {
    if (lane->timer_ns != due_ns) {
        lane->timer_ns = due_ns;
        /* The loop counts from the beginning of its turn: an early timer is set again. */
        clock_arm(lane->timer, (double)(due_ns - now) / 1e9 + 1e-6);
    }
}

/* Counts the bytes that are due, and sets the timer for the next piece. */
static void count_due(struct lane *lane, uint64_t now) {
    struct piece piece;

    while (evbuffer_copyout(lane->pieces, &piece, sizeof(piece)) > 0) {
        if (piece.due_ns > now) {
            arm(lane, piece.due_ns, now);
            return;
        }
        evbuffer_drain(lane->pieces, sizeof(piece));
        lane->due += piece.size;
        lane->is_end_due = piece.size == 0;
    }
}

/* Writes as much as the socket accepts. Returns false when the connection has ended. */
static bool write_due(struct lane *lane) {
    while (lane->due > 0) {
        int written = evbuffer_write_atmost(lane->bytes, lane->sink, (ev_ssize_t)lane->due);

        if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
            need(event_add(lane->writable, NULL) == 0);
            return true;
        }
        if (written <= 0) {
            return false;
        }
        lane->due -= (size_t)written;
    }
    return true;
}

/* Reads from the source while there is room, until its end. */
static void regulate(const struct lane *lane) {
    bool is_reading = event_pending(lane->readable, EV_READ, NULL) != 0;
    bool wants = !lane->is_read_to_end && evbuffer_get_length(lane->bytes) < LANE_SIZE;

    if (wants && !is_reading) {
        need(event_add(lane->readable, NULL) == 0);
    } else if (!wants && is_reading) {
        event_del(lane->readable);
    }
}

/* Passes all that is due. May destroy the span. */
static void move(struct lane *lane, uint64_t now) {
    count_due(lane, now);
    if (!write_due(lane)) {
        destroy(lane->span);
        return;
    }
    if (lane->is_end_due && lane->due == 0 && !lane->is_over) {
        lane->is_over = true;
        shutdown(lane->sink, SHUT_WR);
        if (lane->span->lanes[0].is_over && lane->span->lanes[1].is_over) {
            destroy(lane->span);
            return;
        }
    }
    regulate(lane);
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
    static char bytes[READ_SIZE];
    struct lane *lane = arg;
    ssize_t size = read(fd, bytes, sizeof(bytes));
    uint64_t now;

    (void)what;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    now = clock_now_ns();
    if (size > 0) {
        need(evbuffer_add(lane->bytes, bytes, (size_t)size) == 0);
    } else {
        lane->is_read_to_end = true;
    }
    add_piece(lane, size > 0 ? (size_t)size : 0, now);
    move(lane, now);
}

static void on_writable(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    move(arg, clock_now_ns());
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct lane *lane = arg;

    (void)fd;
    (void)what;
    lane->timer_ns = NEVER;
    move(lane, clock_now_ns());
}

/* --------------------------------------------------------------------------------------- spans */

static void open_lane(struct span *span, size_t index, int source, int sink) {
    struct lane *lane = &span->lanes[index];

    *lane = (struct lane){
        .span = span,
        .source = source,
        .sink = sink,
        .readable = event_new(base, source, EV_READ | EV_PERSIST, on_readable, lane),
        .writable = event_new(base, sink, EV_WRITE, on_writable, lane),
        .timer = clock_timer(base, on_timer, lane),
        .timer_ns = NEVER,
        .bytes = evbuffer_new(),
        .pieces = evbuffer_new(),
    };
    need(lane->readable != NULL && lane->writable != NULL && lane->bytes != NULL &&
         lane->pieces != NULL);
    regulate(lane);
}

/* Starts to connect. Writes wait until the connection is there. Returns -1 on failure. */
static int connect_to(const struct sockaddr_in *node) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)node, sizeof(*node)) != 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t client,
                      struct sockaddr *address, int length, void *arg) {
    const struct relay_port *port = arg;
    int node = connect_to(&port->node);
    const int on = 1;
    struct span *span;

    (void)listener;
    (void)address;
    (void)length;
    if (node < 0) {
        close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(node, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    span = memory_take(1, sizeof(*span));
    span->port = port;
    open_lane(span, 0, client, node);
    open_lane(span, 1, node, client);
}

/* ------------------------------------------------------------------------------------- the loop */

static bool listen_for(struct relay_port *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct evconnlistener *listener =
        evconnlistener_new_bind(base, on_accept, port, LEV_OPT_CLOSE_ON_FREE, SOMAXCONN,
                                (struct sockaddr *)&address, sizeof(address));

    if (listener == NULL ||
        getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &length) != 0) {
        return false;
    }
    port->number = ntohs(address.sin_port);
    return true;
}

/* Writes the line at once: its reader goes away with the last number. */
static bool write_ports(const struct relay_port *ports, size_t count, int output) {
    FILE *line = fdopen(output, "we");

    if (line == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        fprintf(line, "%d ", ports[i].number);
    }
    fputc('\n', line);
    return fclose(line) == 0;
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
    char byte;

    (void)what;
    (void)arg;
    if (read(fd, &byte, 1) == 0) {
        event_base_loopbreak(base);
    }
}

int relay_loop_run(struct relay_port *ports, size_t count, int input, int output) {
    struct event *end;

    /* Two descriptors a connection may be more than a process gets unasked. */
    descriptors_raise_limit();
    base = clock_create_base();
    if (base == NULL) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!listen_for(&ports[i])) {
            perror("redlock-bench: the relay cannot listen");
            return -1;
        }
    }
    end = event_new(base, input, EV_READ | EV_PERSIST, on_input, NULL);
    if (end == NULL || event_add(end, NULL) != 0 || !write_ports(ports, count, output)) {
        fputs("redlock-bench: the relay cannot start\n", stderr);
        return -1;
    }
    return event_base_dispatch(base) < 0 ? -1 : 0;
}
