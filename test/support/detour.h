/*
 * A client that reaches each of the fixture's masters through a proxy, so that a test says what
 * arrives there, and when; and which of them are away.
 */
#ifndef REDLOCK_TEST_DETOUR_H
#define REDLOCK_TEST_DETOUR_H

#include "harness.h"
#include "proxy.h"

#define DETOUR_MASTERS_MAX 5

struct detour {
    struct proxy *proxies[DETOUR_MASTERS_MAX];
    redlock_client *client;
};

/* Makes a patient client that is connected to all of them. */
struct detour take_detour(struct fixture *f);

/* The node goes away: its connection breaks, and it refuses new ones until proxy_accept. */
void go_away(struct fixture *f, const struct detour *detour, size_t node);

#endif
