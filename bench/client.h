/* Creates the client that a benchmark measures, and reports when it is connected. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <redlock/loop.h>
#include <redlock/mt.h>
#include <stdio.h>

/*
 * Creates a client for these nodes, with all other options from `options`. New masters are declared
 * durable, so that a benchmark need not wait until they are trusted; the guards are on, as by
 * default. Returns NULL on failure, after a message on stderr.
 */
redlock_client *client_create(struct event_base *base, const char *const *nodes, size_t node_count,
                              redlock_options options);

/* Does the same on a loop of the library, unless `loop` is NULL. */
redlock_client *client_create_on(redlock_loop *loop, struct event_base *base,
                                 const char *const *nodes, size_t node_count,
                                 redlock_options options);

/* Creates such a client that threads share. */
redlock_mt *client_create_shared(const char *const *nodes, size_t node_count,
                                 redlock_options options);

/*
 * Returns options under which so many locks with this TTL are never limited, or with limits as by
 * default if `locks` is 0. node_timeout_ms is that of the options.
 */
redlock_options client_options(size_t locks, uint64_t ttl_ms, uint64_t node_timeout_ms);

/*
 * Returns whether all nodes are connected. If not, writes to `complaints` which are not, and why.
 */
bool client_is_ready(const redlock_client *client, FILE *complaints);

#endif
