/*
 * Hosts of their own for masters and clients: a network namespace each, joined by veth pairs to a
 * bridge in yet another namespace. Nothing touches the real network.
 *
 * The namespaces have no names: they live as long as a process is in them, or a descriptor of the
 * supervisor's is open. So they vanish with the processes, however these end.
 */
#ifndef REDLOCK_CHAOS_HOSTS_H
#define REDLOCK_CHAOS_HOSTS_H

#include "options.h"

#include <stddef.h>

#define MAX_HOSTS (MASTERS + MAX_CLIENTS)

/* Hosts 0 to MASTERS - 1 are the masters, then come the clients. */
struct hosts {
    size_t count;
    int middle; /* the namespace with the bridges */
    int each[MAX_HOSTS];
    bool has_netem;
    char addresses[MAX_HOSTS][16];
};

/* Other than 0: it said what is missing. */
int hosts_start(struct hosts *hosts, size_t count);

/* The calling process enters; other than 0: errno says why it could not. */
int hosts_enter(const struct hosts *hosts, size_t host);

/* Alone, or on the far bridge together with others that are there. */
void hosts_cut(const struct hosts *hosts, size_t host, bool alone);

/* Delays, or loses, the packets that the host sends: only with netem. */
void hosts_delay(const struct hosts *hosts, size_t host, uint32_t ms);
void hosts_lose(const struct hosts *hosts, size_t host, uint32_t percent);

/* Repairs all faults of the host. */
void hosts_heal(const struct hosts *hosts, size_t host);

#endif
