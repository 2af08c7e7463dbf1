/*
 * A separate host for each master and client: a network namespace each, joined by veth pairs to a
 * bridge in another namespace. The real network is not touched.
 *
 * The namespaces have no names: they live as long as a process is in them, or the supervisor has a
 * descriptor open. So they vanish with the processes, however these end.
 */
#ifndef REDLOCK_CHAOS_HOSTS_H
#define REDLOCK_CHAOS_HOSTS_H

#include "options.h"

#include <stddef.h>

#define MAX_HOSTS (MASTERS + MAX_CLIENTS)

/* The hosts: 0 to MASTERS - 1 are the masters, then come the clients. */
struct hosts {
    size_t count;
    int middle; /* the namespace with the bridges */
    int each[MAX_HOSTS];
    bool has_netem;
    char addresses[MAX_HOSTS][16];
};

/* Makes the hosts. Returns 0; nonzero, after a message that names what is missing. */
int hosts_start(struct hosts *hosts, size_t count);

/* Moves the calling process into a host. Returns 0; nonzero with errno set. */
int hosts_enter(const struct hosts *hosts, size_t host);

/* Cuts a host off: alone, or together with others on the far bridge. */
void hosts_cut(const struct hosts *hosts, size_t host, bool alone);

/* Delay or lose the packets that the host sends: only with netem. */
void hosts_delay(const struct hosts *hosts, size_t host, uint32_t ms);
void hosts_lose(const struct hosts *hosts, size_t host, uint32_t percent);

/* Repairs all faults of the host. */
void hosts_heal(const struct hosts *hosts, size_t host);

#endif
