/*
 * The relay's loop: carries bytes between clients and nodes, and delays them. Runs in the relay's
 * own process (relay.h).
 */
#ifndef BENCH_RELAY_LOOP_H
#define BENCH_RELAY_LOOP_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* The delay of a piece of bytes, which is what one read returned. */
struct relay_terms {
    uint64_t delay_ns;  /* of each piece */
    uint64_t jitter_ns; /* limit of the random delay added to it */
    double late_share;  /* share of the pieces that are late, from 0 to 1 */
    uint64_t late_ns;   /* delay added to those */
};

/* A node, and the port at which clients reach it. */
struct relay_port {
    struct sockaddr_in node;
    struct relay_terms terms; /* in each direction */
    int number;               /* filled in by relay_loop_run */
};

/*
 * Listens on a free port of 127.0.0.1 for each node, writes their numbers to `output` as one line,
 * closes it, and serves until `input` ends. Returns -1 on failure, after a message on stderr.
 */
int relay_loop_run(struct relay_port *ports, size_t count, int input, int output);

#endif
