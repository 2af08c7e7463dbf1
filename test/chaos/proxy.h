/*
 * The fault proxy: a separate process between the clients and the masters. Each pair of a client
 * and a master is a link with its own port, so that each link can be disturbed alone.
 */
#ifndef REDLOCK_CHAOS_PROXY_H
#define REDLOCK_CHAOS_PROXY_H

#include "options.h"

#include <stddef.h>
#include <sys/types.h>

#define MAX_LINKS (MAX_CLIENTS * MASTERS)

enum link_fault { LINK_PASSES, LINK_DELAYS, LINK_DROPS, LINK_HALF_OPENS, LINK_RESETS, LINK_CUTS };

/* The sides of a link, or the directions by the side that they start from. */
#define FROM_CLIENT 1u
#define FROM_MASTER 2u

/* An order to one link, in force from now on; sent to the proxy through the socket. */
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

/* Starts the process; `masters` are the masters' ports. Returns 0; nonzero after a message. */
int fault_proxy_start(struct fault_proxy *proxy, uint32_t clients, const int masters[MASTERS]);

void fault_proxy_order(struct fault_proxy *proxy, const struct link_order *order);

#endif
