/*
 * A connection is a pair of sides, the client's (0) and the master's (1), and a lane from each to
 * the other. Bytes wait in their lane until they are due: at once, after the delay, or, while the
 * link is cut, not before the cut is over. An end travels behind the bytes before it.
 *
 * Swallowing is for good: a connection that lost some bytes never passes bytes again, since the
 * rest would be no protocol. A side whose other side is gone, without its knowledge, lingers for a
 * while.
 */
#include "proxy.h"

#include "chance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_S 10

struct chunk {
    STAILQ_ENTRY(chunk) next;
    uint64_t due_ns;
    struct evbuffer *bytes;
};

struct pair;

struct lane {
    struct pair *pair;
    unsigned from; /* the side that the bytes come from */
    struct event *timer;
    bool swallows;
    bool ended; /* the side that the bytes come from is gone */
    STAILQ_HEAD(, chunk) chunks;
};

struct pair {
    LIST_ENTRY(pair) next;
    struct link *link;
    struct bufferevent *sides[2]; /* NULL: gone */
    struct lane lanes[2];
    struct event *linger;
};

struct link {
    struct event_base *base;
    int listener;
    struct sockaddr_in master;
    struct link_order state;
    LIST_HEAD(, pair) pairs;
};

static struct link links[MAX_LINKS];

static void *need(void *memory) {
    if (memory == NULL) {
        fputs("redlock-chaos: the proxy is out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* ------------------------------------------------------------------------------------- endings */

static void end_side(struct pair *pair, unsigned side, bool by_reset) {
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct bufferevent *gone = pair->sides[side];

    if (gone == NULL) {
        return;
    }
    if (by_reset) {
        setsockopt(bufferevent_getfd(gone), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    pair->sides[side] = NULL;
    bufferevent_free(gone);
}

static void destroy_pair(struct pair *pair, bool by_reset) {
    for (unsigned side = 0; side < 2; side++) {
        struct lane *lane = &pair->lanes[side];

        end_side(pair, side, by_reset);
        event_free(lane->timer);
        while (!STAILQ_EMPTY(&lane->chunks)) {
            struct chunk *chunk = STAILQ_FIRST(&lane->chunks);

            STAILQ_REMOVE_HEAD(&lane->chunks, next);
            evbuffer_free(chunk->bytes);
            free(chunk);
        }
    }
    event_free(pair->linger);
    LIST_REMOVE(pair, next);
    free(pair);
}

static void on_linger(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    destroy_pair(arg, true);
}

static void linger(struct pair *pair) {
    const struct timeval while_ = {.tv_sec = LINGER_S};

    if (!evtimer_pending(pair->linger, NULL)) {
        event_add(pair->linger, &while_);
    }
}

/* --------------------------------------------------------------------------------------- lanes */

static bool is_cut(const struct pair *pair) {
    return pair->link->state.fault == LINK_CUTS;
}

static void on_written(struct bufferevent *side, void *arg) {
    struct pair *pair = arg;

    (void)side;
    destroy_pair(pair, false);
}

static void on_read(struct bufferevent *side, void *arg);
static void on_event(struct bufferevent *side, short what, void *arg);

/* Passes the end on, as soon as the lane's last bytes are written. */
static void pass_end(struct lane *lane) {
    struct pair *pair = lane->pair;
    struct bufferevent *to = pair->sides[!lane->from];

    if (to == NULL || evbuffer_get_length(bufferevent_get_output(to)) == 0) {
        destroy_pair(pair, false);
        return;
    }
    bufferevent_setcb(to, on_read, on_written, on_event, pair);
    linger(pair);
}

/* Passes on the bytes that are due; may destroy the pair. */
static void flush(struct lane *lane) {
    struct pair *pair = lane->pair;
    struct chunk *chunk;
    uint64_t now_ns = boottime_ns();

    if (is_cut(pair)) {
        return;
    }
    while ((chunk = STAILQ_FIRST(&lane->chunks)) != NULL && chunk->due_ns <= now_ns) {
        STAILQ_REMOVE_HEAD(&lane->chunks, next);
        if (pair->sides[!lane->from] != NULL && !lane->swallows) {
            bufferevent_write_buffer(pair->sides[!lane->from], chunk->bytes);
        }
        evbuffer_free(chunk->bytes);
        free(chunk);
    }
    if (chunk != NULL) {
        uint64_t us = (chunk->due_ns - now_ns) / 1000 + 1;
        const struct timeval delay = {.tv_sec = (time_t)(us / 1000000),
                                      .tv_usec = (suseconds_t)(us % 1000000)};

        event_add(lane->timer, &delay);
    } else if (lane->ended && !lane->swallows) {
        pass_end(lane);
    }
}

static void on_due(evutil_socket_t fd, short what, void *arg) {
    (void)fd;
    (void)what;
    flush(arg);
}

static struct lane *lane_from(struct pair *pair, const struct bufferevent *side) {
    return &pair->lanes[side == pair->sides[1]];
}

static void on_read(struct bufferevent *side, void *arg) {
    struct pair *pair = arg;
    struct lane *lane = lane_from(pair, side);
    struct chunk *chunk = need(calloc(1, sizeof(*chunk)));

    chunk->bytes = need(evbuffer_new());
    chunk->due_ns = boottime_ns();
    if (pair->link->state.fault == LINK_DELAYS &&
        (pair->link->state.from & (lane->from == 0 ? FROM_CLIENT : FROM_MASTER)) != 0) {
        chunk->due_ns += pair->link->state.delay_ms * NS_PER_MS;
    }
    bufferevent_read_buffer(side, chunk->bytes);
    STAILQ_INSERT_TAIL(&lane->chunks, chunk, next);
    flush(lane);
}

static void on_event(struct bufferevent *side, short what, void *arg) {
    struct pair *pair = arg;
    struct lane *lane = lane_from(pair, side);

    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) {
        return;
    }
    lane->ended = true;
    end_side(pair, lane->from, (what & BEV_EVENT_ERROR) != 0);
    if (pair->sides[!lane->from] == NULL && STAILQ_EMPTY(&lane->chunks)) {
        destroy_pair(pair, true);
        return;
    }
    if (lane->swallows) {
        linger(pair);
    }
    flush(lane);
}

/* --------------------------------------------------------------------------------------- links */

static void swallow(struct pair *pair, uint32_t from) {
    pair->lanes[0].swallows |= (from & FROM_CLIENT) != 0;
    pair->lanes[1].swallows |= (from & FROM_MASTER) != 0;
}

/*
 * Ends one side; the other side stays, and does not learn it. Bytes that had come from the ended
 * side are still passed.
 */
static void half_open(struct pair *pair, uint32_t from) {
    unsigned side = from == FROM_MASTER;

    pair->lanes[!side].swallows = true;
    end_side(pair, side, true);
    linger(pair);
}

static void harm_pair(struct pair *pair, const struct link_order *order) {
    switch (order->fault) {
    case LINK_RESETS:
        destroy_pair(pair, true);
        break;
    case LINK_DROPS:
        swallow(pair, order->from);
        break;
    case LINK_HALF_OPENS:
        half_open(pair, order->from);
        break;
    default:
        /* Bytes that the link held back may go on; the timers check each lane. */
        event_active(pair->lanes[0].timer, EV_TIMEOUT, 0);
        event_active(pair->lanes[1].timer, EV_TIMEOUT, 0);
    }
}

static void obey(const struct link_order *order) {
    struct link *link = &links[order->link];
    struct pair *pair = LIST_FIRST(&link->pairs);

    link->state = *order;
    while (pair != NULL) {
        struct pair *next = LIST_NEXT(pair, next);

        harm_pair(pair, order);
        pair = next;
    }
}

static void on_orders(evutil_socket_t fd, short what, void *arg) {
    struct link_order order;

    (void)what;
    (void)arg;
    if (read(fd, &order, sizeof(order)) != (ssize_t)sizeof(order)) {
        exit(EXIT_SUCCESS); /* the supervisor is gone */
    }
    obey(&order);
}

static struct bufferevent *make_side(struct pair *pair, int fd) {
    struct bufferevent *side =
        need(bufferevent_socket_new(pair->link->base, fd, BEV_OPT_CLOSE_ON_FREE));

    bufferevent_setcb(side, on_read, NULL, on_event, pair);
    return side;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int size, void *arg) {
    struct link *link = arg;
    struct pair *pair = need(calloc(1, sizeof(*pair)));

    (void)listener;
    (void)address;
    (void)size;
    pair->link = link;
    LIST_INSERT_HEAD(&link->pairs, pair, next);
    pair->linger = need(evtimer_new(link->base, on_linger, pair));
    for (unsigned side = 0; side < 2; side++) {
        struct lane *lane = &pair->lanes[side];

        *lane = (struct lane){.pair = pair, .from = side};
        STAILQ_INIT(&lane->chunks);
        lane->timer = need(evtimer_new(link->base, on_due, lane));
        pair->sides[side] = make_side(pair, side == 0 ? fd : -1);
    }
    if (link->state.fault == LINK_DROPS) {
        swallow(pair, link->state.from);
    }
    if (bufferevent_socket_connect(pair->sides[1], (struct sockaddr *)&link->master,
                                   sizeof(link->master)) != 0) {
        destroy_pair(pair, true);
        return;
    }
    bufferevent_enable(pair->sides[0], EV_READ | EV_WRITE);
    bufferevent_enable(pair->sides[1], EV_READ | EV_WRITE);
}

/* --------------------------------------------------------------------------------- the process */

static _Noreturn void run(int orders, size_t count) {
    struct event_base *base = need(event_base_new());

    for (size_t i = 0; i < count; i++) {
        struct link *link = &links[i];

        link->base = base;
        evutil_make_socket_nonblocking(link->listener);
        need(evconnlistener_new(base, on_accept, link, LEV_OPT_CLOSE_ON_EXEC, 0, link->listener));
    }
    event_add(need(event_new(base, orders, EV_READ | EV_PERSIST, on_orders, NULL)), NULL);
    event_base_dispatch(base);
    _exit(EXIT_FAILURE);
}

static int listen_for(struct link *link, char uri[32], int master_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    link->master = address;
    link->master.sin_port = htons((uint16_t)master_port);
    link->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->listener < 0 || bind(link->listener, (struct sockaddr *)&address, size) != 0 ||
        listen(link->listener, 128) != 0 ||
        getsockname(link->listener, (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "redlock-chaos: cannot listen: %s\n", strerror(errno));
        return -1;
    }
    snprintf(uri, 32, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    return 0;
}

int fault_proxy_start(struct fault_proxy *proxy, uint32_t clients, const int ports[MASTERS]) {
    pid_t parent = getpid();
    int ends[2];

    proxy->links = (size_t)clients * MASTERS;
    for (size_t i = 0; i < proxy->links; i++) {
        if (listen_for(&links[i], proxy->uris[i], ports[i % MASTERS]) != 0) {
            return -1;
        }
    }
    if (pipe(ends) != 0 || (proxy->pid = fork()) < 0) {
        fprintf(stderr, "redlock-chaos: cannot start the proxy: %s\n", strerror(errno));
        return -1;
    }
    if (proxy->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_IGN);
        close(ends[1]);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        run(ends[0], proxy->links);
    }
    close(ends[0]);
    proxy->orders = ends[1];
    for (size_t i = 0; i < proxy->links; i++) {
        close(links[i].listener);
    }
    return 0;
}

void fault_proxy_order(struct fault_proxy *proxy, const struct link_order *order) {
    if (write(proxy->orders, order, sizeof(*order)) != (ssize_t)sizeof(*order)) {
        perror("redlock-chaos: the proxy does not obey");
    }
}
