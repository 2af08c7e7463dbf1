/*
 * Passes bytes between clients and a port of this machine without looking at them, on the test's
 * own loop: in small pieces, or not at all for a while.
 */
#ifndef REDLOCK_TEST_RELAY_H
#define REDLOCK_TEST_RELAY_H

#include "harness.h"

struct relay;

/* Listens on a free port of 127.0.0.1. Ends with the fixture, after the clients. */
struct relay *relay_create(struct fixture *f, int port);

int relay_port(const struct relay *relay);

/* Passes at most `bytes` bytes at once from now on, each piece in a turn of its own. */
void relay_set_chunk(struct relay *relay, size_t bytes);

/* Takes no bytes from the client, so that its socket fills; and goes on. */
void relay_hold(struct relay *relay);
void relay_pass(struct relay *relay);

#endif
