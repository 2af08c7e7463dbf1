/*
 * Adds delays between clients and nodes, by a process that carries the bytes (relay_loop.h). Half
 * of a round trip is added in each direction. Connections open without delay; all bytes on them,
 * and their ends, are delayed.
 */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

#include <redlock.h>
#include <stddef.h>
#include <sys/types.h>

struct relay;

struct relay_delays {
    double rtt_ms[REDLOCK_MAX_NODES]; /* round trip added, for each node */
    size_t rtt_count;                 /* 1: the first is that of all nodes */
    double jitter_ms;                 /* limit of the random delay added to each piece of bytes */
    double late_percent;              /* share of the pieces that are late */
    double late_ms;                   /* delay added to those */
};

/*
 * Starts a relay for nodes with URIs like redis://[LOGIN@]ADDRESS[:PORT][...], of IPv4. Returns
 * NULL on failure, after a message on stderr.
 */
struct relay *relay_start(const char *const *uris, size_t count, const struct relay_delays *delays);

/* Ends the process and waits for its end. NULL is allowed. */
void relay_finish(struct relay *relay);

/* Returns URIs of the nodes by way of the relay, which live as long as the relay. */
const char *const *relay_uris(const struct relay *relay);

#endif
