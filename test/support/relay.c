/*
 * When a side ends, the bytes that it sent are delivered first; then the other side is notified of
 * the end, finishes its work, and ends as well, and the span is gone. If the end is hidden from the
 * other side, that side would stay forever, so it is reset after a silence.
 */
#define _GNU_SOURCE 1

#include "relay.h"

#include "port.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM ((size_t)1 << 20) /* limit of the bytes in flight from one side */
#define LINGER_S 10

/* Bytes that arrived together. */
struct batch {
    uint64_t due_ms; /* 0: at once */
    size_t size;
};

/* Ends the process unless an indispensable resource was obtained. */
static void need(bool got) {
    if (!got) {
        perror("relay");
        abort();
    }
}

/* --------------------------------------------------------------------------------------- lanes */

static struct bufferevent *sink_of(const struct lane *lane) {
    return lane->span->sides[!lane->from];
}

static size_t unwritten(const struct lane *lane) {
    return evbuffer_get_length(bufferevent_get_output(sink_of(lane)));
}

static uint64_t now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void take(struct lane *lane, struct evbuffer *input, size_t size) {
    uint64_t delay_ms = lane->terms.delay_ms;
    struct batch batch = {delay_ms == 0 ? 0 : now_ms() + delay_ms, size};

    need(evbuffer_add(lane->batches, &batch, sizeof(batch)) == 0 &&
         evbuffer_remove_buffer(input, lane->bytes, size) == (int)size);
}

/* Counts the bytes whose delay is over, and sets the timer for the next. */
static void count_due(struct lane *lane) {
    struct batch batch;

    while (evbuffer_copyout(lane->batches, &batch, sizeof(batch)) > 0) {
        uint64_t now = now_ms();

        if (batch.due_ms > now) {
            uint64_t wait_ms = batch.due_ms - now;

            event_add(lane->timer, &(struct timeval){.tv_sec = (time_t)(wait_ms / 1000),
                                                     .tv_usec = (int)(wait_ms % 1000) * 1000});
            return;
        }
        evbuffer_drain(lane->batches, sizeof(batch));
        lane->due += batch.size;
    }
}

static void pass(struct lane *lane) {
    struct bufferevent *sink = sink_of(lane);
    size_t piece = lane->terms.piece;
    size_t size = piece > 0 && piece < lane->due ? piece : lane->due;

    if (sink == NULL || lane->terms.loses) {
        evbuffer_drain(lane->bytes, size);
        lane->due -= size;
    } else if (piece == 0 || unwritten(lane) == 0) {
        evbuffer_remove_buffer(lane->bytes, bufferevent_get_output(sink), size);
        lane->due -= size;
    }
}

static void set_abrupt(struct bufferevent *side) {
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (side != NULL) {
        setsockopt(bufferevent_getfd(side), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
}

/* Passes the end to the lane's sink, or lets the sink linger. */
static void pass_end(const struct lane *lane) {
    const struct timeval silence = {.tv_sec = LINGER_S};
    struct bufferevent *sink = sink_of(lane);

    if (sink == NULL) {
        return;
    }
    if (lane->terms.hides_end) {
        set_abrupt(sink);
        bufferevent_set_timeouts(sink, &silence, NULL);
    } else if (unwritten(lane) == 0) {
        shutdown(bufferevent_getfd(sink), SHUT_WR);
    }
}

/* Reads from the lane's source while there is room. */
static void regulate(const struct lane *lane) {
    struct bufferevent *source = lane->span->sides[lane->from];
    size_t waiting = evbuffer_get_length(lane->bytes);

    if (source == NULL) {
        return;
    }
    if (sink_of(lane) == NULL || (!lane->terms.jams && waiting + unwritten(lane) < ROOM)) {
        bufferevent_enable(source, EV_READ);
    } else {
        bufferevent_disable(source, EV_READ);
    }
}

static void move(struct lane *lane) {
    count_due(lane);
    if (!lane->terms.holds || sink_of(lane) == NULL) {
        pass(lane);
        if (lane->ended && evbuffer_get_length(lane->bytes) == 0) {
            pass_end(lane);
        }
    }
    regulate(lane);
}

/* --------------------------------------------------------------------------------------- spans */

static void close_side(struct span *span, enum side side) {
    if (span->sides[side] != NULL) {
        bufferevent_free(span->sides[side]);
        span->sides[side] = NULL;
    }
}

static void destroy(struct span *span) {
    LIST_REMOVE(span, entry);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        close_side(span, side);
        evbuffer_free(span->lanes[side].bytes);
        evbuffer_free(span->lanes[side].batches);
        event_free(span->lanes[side].timer);
    }
    free(span);
}

void span_move(struct span *span) {
    move(&span->lanes[CLIENT]);
    move(&span->lanes[SERVER]);
    if (span->sides[CLIENT] == NULL && span->sides[SERVER] == NULL) {
        destroy(span);
    }
}

void span_end(struct span *span, enum side side) {
    span->lanes[side].ended = true;
    close_side(span, side);
    span_move(span);
}

void span_half_open(struct span *span, enum side side) {
    span->lanes[side].terms.hides_end = true;
    set_abrupt(span->sides[side]);
    span_end(span, side);
}

void span_reset(struct span *span) {
    set_abrupt(span->sides[CLIENT]);
    set_abrupt(span->sides[SERVER]);
    destroy(span);
}

static void on_due(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    span_move(arg);
}

static void on_read(struct bufferevent *stream, void *arg) {
    struct span *span = arg;
    struct lane *lane = &span->lanes[stream == span->sides[SERVER] ? SERVER : CLIENT];
    struct evbuffer *input = bufferevent_get_input(stream);
    relay_next *next = span->relay->next;
    size_t size;

    while ((size = next == NULL ? evbuffer_get_length(input) : next(lane, input)) > 0) {
        take(lane, input, size);
        move(lane);
    }
    span_move(span);
}

static void on_written(struct bufferevent *stream, void *arg) {
    (void)stream;
    span_move(arg);
}

static void on_event(struct bufferevent *stream, short what, void *arg) {
    struct span *span = arg;

    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) != 0) {
        span_end(span, stream == span->sides[SERVER] ? SERVER : CLIENT);
    }
}

static void open_side(struct span *span, enum side side, int fd) {
    struct relay *relay = span->relay;

    span->sides[side] = bufferevent_socket_new(relay->base, fd, BEV_OPT_CLOSE_ON_FREE);
    span->lanes[side] = (struct lane){
        .span = span,
        .from = side,
        .terms = relay->terms[side],
        .bytes = evbuffer_new(),
        .batches = evbuffer_new(),
        .timer = evtimer_new(relay->base, on_due, span),
    };
    need(span->sides[side] != NULL && span->lanes[side].bytes != NULL &&
         span->lanes[side].batches != NULL && span->lanes[side].timer != NULL);
    bufferevent_setcb(span->sides[side], on_read, on_written, on_event, span);
}

static void set_socket(struct bufferevent *side) {
    const int on = 1;

    setsockopt(bufferevent_getfd(side), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    evutil_make_socket_closeonexec(bufferevent_getfd(side));
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int length, void *arg) {
    struct relay *relay = arg;
    struct span *span = calloc(1, sizeof(*span));

    (void)listener;
    (void)address;
    (void)length;
    need(span != NULL);
    span->relay = relay;
    LIST_INSERT_HEAD(&relay->spans, span, entry);
    open_side(span, CLIENT, fd);
    open_side(span, SERVER, -1);
    if (bufferevent_socket_connect(span->sides[SERVER], (struct sockaddr *)&relay->server,
                                   sizeof(relay->server)) != 0) {
        span_reset(span);
        return;
    }
    set_socket(span->sides[CLIENT]);
    set_socket(span->sides[SERVER]);
    span_move(span);
}

/* --------------------------------------------------------------------------------------- relays */

static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    need(fd >= 0);
    return fd;
}

void relay_accept(struct relay *relay) {
    if (relay->listener == NULL) {
        int fd = new_socket();

        need(port_listen(fd, &relay->address) == 0);
        relay->listener = evconnlistener_new(relay->base, on_accept, relay,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
        need(relay->listener != NULL);
    }
}

void relay_refuse(struct relay *relay) {
    if (relay->listener != NULL) {
        evconnlistener_free(relay->listener);
        relay->listener = NULL;
    }
}

void relay_init(struct relay *relay, struct event_base *base, int server_port, relay_next *next) {
    *relay = (struct relay){.base = base, .next = next, .reservation = new_socket()};
    need(port_reserve(relay->reservation, &relay->address) == 0);
    relay->server = relay->address;
    relay->server.sin_port = htons((uint16_t)server_port);
    LIST_INIT(&relay->spans);
    relay_accept(relay);
}

void relay_finish(struct relay *relay) {
    relay_refuse(relay);
    relay_cut(relay);
    close(relay->reservation);
}

int relay_port(const struct relay *relay) {
    return ntohs(relay->address.sin_port);
}

void relay_cut(struct relay *relay) {
    while (!LIST_EMPTY(&relay->spans)) {
        destroy(LIST_FIRST(&relay->spans));
    }
}

void relay_each(struct relay *relay, void (*visit)(struct span *span, const void *arg),
                const void *arg) {
    struct span *next;

    for (struct span *span = LIST_FIRST(&relay->spans); span != NULL; span = next) {
        next = LIST_NEXT(span, entry);
        visit(span, arg);
    }
}

void relay_set(struct relay *relay, enum side from, const struct terms *terms) {
    struct span *next;

    relay->terms[from] = *terms;
    for (struct span *span = LIST_FIRST(&relay->spans); span != NULL; span = next) {
        next = LIST_NEXT(span, entry);
        span->lanes[from].terms = *terms;
        span_move(span);
    }
}
