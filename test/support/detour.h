/*
 * A client that reaches each of the fixture's masters through a proxy, so that a test decides which
 * commands arrive, when they arrive, and which masters are unreachable.
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

/* Makes a patient client that is connected to all proxies. */
struct detour take_detour(struct fixture *f);

/* Breaks a node's connection, and refuses new ones until proxy_accept. */
void go_away(struct fixture *f, const struct detour *detour, size_t node);

#endif
