/*
 * The fault proxy: a process of its own between the clients and the masters. Each pair of a client
 * and a master is a link with a port of its own, so that each link can be harmed alone.
 */
#ifndef REDLOCK_CHAOS_PROXY_H
#define REDLOCK_CHAOS_PROXY_H

#include "options.h"

#include <stddef.h>
#include <sys/types.h>

#define MAX_LINKS (MAX_CLIENTS * MASTERS)

enum link_fault { LINK_PASSES, LINK_DELAYS, LINK_DROPS, LINK_HALF_OPENS, LINK_RESETS, LINK_CUTS };

/* The sides of a link, or the directions by the side that they come from. */
#define FROM_CLIENT 1u
#define FROM_MASTER 2u

/* An order to one link, for the time from now on; sent through the socket to the proxy. */
struct link_order {
    uint32_t link; /* client * MASTERS + master */
    enum link_fault fault;
    uint32_t from; /* DELAYS, DROPS: the directions; HALF_OPENS: the side that ends */
    uint32_t delay_ms;
};

struct fault_proxy {
    pid_t pid;
    int orders; /* the socket to which orders are written */
    size_t links;
    char uris[MAX_LINKS][32];
};

/* Starts the process; `masters` are the masters' ports. Returns 0; or not 0, after a message. */
int fault_proxy_start(struct fault_proxy *proxy, uint32_t clients, const int masters[MASTERS]);

void fault_proxy_order(struct fault_proxy *proxy, const struct link_order *order);

#endif
