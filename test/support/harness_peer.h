/* A fake server (peer.h) on the loop of a fixture, which ends it after the clients. */
#ifndef REDLOCK_TEST_HARNESS_PEER_H
#define REDLOCK_TEST_HARNESS_PEER_H

#include "harness.h"
#include "peer.h"

/* Listens on a free port of 127.0.0.1. */
struct peer *peer_create(struct fixture *f, peer_answer *answer, void *arg);

/* Listens on a Unix socket in a folder of its own. */
struct peer *peer_create_unix(struct fixture *f, peer_answer *answer, void *arg);

/* A number of a peer (peer_links, peer_commands), and the least value to wait for. */
struct peer_wait {
    size_t (*number)(const struct peer *peer);
    const struct peer *peer;
    size_t least;
};

/* Returns whether the number of a struct peer_wait is reached: a condition for run_until. */
bool peer_has_reached(void *wait);

/* Runs the loop until `count` connections have been accepted in all. */
void wait_peer_links(struct fixture *f, struct peer *peer, size_t count);
/* Runs the loop until `count` commands have been read in all. */
void wait_peer_commands(struct fixture *f, struct peer *peer, size_t count);

#endif
