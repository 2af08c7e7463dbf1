/*
 * Each link is a relay, whose terms follow from the link's last order. Loss is permanent: a span
 * that lost bytes passes no more bytes in that direction, since the rest would not be the protocol.
 */
#include "proxy.h"

#include "relay.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relay links[MAX_LINKS];

/* --------------------------------------------------------------------------------------- orders */

/* Sets the terms for the bytes from one side according to an order. */
static void set_terms(struct terms *terms, enum side from, const struct link_order *order) {
    bool is_meant = (order->from & (FROM_CLIENT << from)) != 0;
    bool is_lost = order->fault == LINK_DROPS && is_meant;

    terms->holds = order->fault == LINK_CUTS;
    terms->loses |= is_lost;
    terms->hides_end |= is_lost;
    terms->delay_ms = order->fault == LINK_DELAYS && is_meant ? order->delay_ms : 0;
}

static void harm(struct span *span, const void *arg) {
    const struct link_order *order = arg;

    set_terms(&span->lanes[CLIENT].terms, CLIENT, order);
    set_terms(&span->lanes[SERVER].terms, SERVER, order);
    if (order->fault == LINK_RESETS) {
        span_reset(span);
    } else if (order->fault == LINK_HALF_OPENS) {
        span_half_open(span, order->from == FROM_CLIENT ? CLIENT : SERVER);
    } else {
        span_move(span);
    }
}

static void obey(const struct link_order *order) {
    struct relay *link = &links[order->link];

    for (enum side from = CLIENT; from <= SERVER; from++) {
        link->terms[from] = (struct terms){0};
        set_terms(&link->terms[from], from, order);
    }
    relay_each(link, harm, order);
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

/* --------------------------------------------------------------------------------- the process */

/* Allows as many descriptors as possible: a link needs two, and each of its spans two more. */
static void raise_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Sends the supervisor the ports of the links, and executes orders. */
static _Noreturn void run(int supervisor, size_t count, const int masters[MASTERS]) {
    struct event_base *base = event_base_new();
    struct event *orders;
    int ports[MAX_LINKS] = {0};

    if (base == NULL) {
        _exit(EXIT_FAILURE);
    }
    raise_limit();
    for (size_t i = 0; i < count; i++) {
        relay_init(&links[i], base, masters[i % MASTERS], NULL);
        ports[i] = relay_port(&links[i]);
    }
    orders = event_new(base, supervisor, EV_READ | EV_PERSIST, on_orders, NULL);
    if (orders != NULL && event_add(orders, NULL) == 0 &&
        write(supervisor, ports, sizeof(ports)) == (ssize_t)sizeof(ports)) {
        event_base_dispatch(base);
    }
    _exit(EXIT_FAILURE);
}

int fault_proxy_start(struct fault_proxy *proxy, uint32_t clients, const int masters[MASTERS]) {
    pid_t parent = getpid();
    int ports[MAX_LINKS];
    int ends[2];

    proxy->links = (size_t)clients * MASTERS;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        (proxy->pid = fork()) < 0) {
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
        run(ends[0], proxy->links, masters);
    }
    close(ends[0]);
    proxy->orders = ends[1];
    if (read(proxy->orders, ports, sizeof(ports)) != (ssize_t)sizeof(ports)) {
        fputs("redlock-chaos: the proxy does not start\n", stderr);
        return -1;
    }
    for (size_t i = 0; i < proxy->links; i++) {
        snprintf(proxy->uris[i], sizeof(proxy->uris[i]), "redis://127.0.0.1:%d", ports[i]);
    }
    return 0;
}

void fault_proxy_order(struct fault_proxy *proxy, const struct link_order *order) {
    if (write(proxy->orders, order, sizeof(*order)) != (ssize_t)sizeof(*order)) {
        perror("redlock-chaos: the proxy does not obey");
    }
}
