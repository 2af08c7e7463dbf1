/* Makes the client that a benchmark measures, and tells when it is connected. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <redlock.h>
#include <stdio.h>

/*
 * Makes a client of these nodes, with the other options as they are in `options`. New masters are
 * taken for durable: a benchmark does not wait for them to be trusted; otherwise the guards are on,
 * as they are by default. NULL, after a message on stderr, when that is impossible.
 */
redlock_client *client_create(struct event_base *base, const char *const *nodes, size_t node_count,
                              redlock_options options);

/* Whether all nodes are connected. If not, says which are not, and why, on `complaints`. */
bool client_is_ready(const redlock_client *client, FILE *complaints);

#endif
