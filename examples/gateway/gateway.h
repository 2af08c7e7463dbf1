/*
 * The gateway: one client of the library, the locks that it holds for HTTP clients, and the server.
 *
 * A request for a lock becomes a waiter, until the library tells the result, or the connection
 * breaks. An acquired lock becomes a hold, with an id that only the HTTP client knows. No watchdog
 * renews a hold, for nobody would notice when the HTTP client dies: it lasts for its TTL from the
 * last renewal that the HTTP client asked for.
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include "connections.h"
#include "holds.h"
#include "settings.h"
#include "stream.h"
#include "waiters.h"
#include "window.h"

#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>

/* Longest key, in bytes; those that stand in line may have four times as many. */
#define GATEWAY_KEY_MAX 1024
/* Longest body, in bytes. evhttp refuses those over the second one before they are read. */
#define GATEWAY_BODY_MAX 16384
#define GATEWAY_BODY_LIMIT 49152
/* Longest headers, in bytes. */
#define GATEWAY_HEADERS_MAX 16384

/* Events since the start, beside those that the library counts. */
struct gateway_counts {
    uint64_t canceled; /* requests for locks whose connection broke while they waited */
    uint64_t returned; /* locks that were granted to connections that had broken */
    uint64_t lapsed;   /* locks whose time ended without a release */
    uint64_t lost;     /* locks that a quorum of masters had lost before */
};

struct gateway {
    const struct settings *settings;
    struct event_base *base;
    struct evhttp *http;
    redlock_client *client; /* NULL: closed */
    struct connections connections;
    struct holds holds;
    struct waiters waiters;
    struct streams streams;
    struct window window;
    struct gateway_counts counts;
    uint64_t began_ms;
    struct event *end; /* to be made active when is_closing, and no hold is left */
    bool is_closing;   /* whether no lock is given out any more */
    bool is_ending;    /* whether all requests are refused */
};

/* A request that has arrived: its connection, and the parts of its path. */
struct exchange {
    struct gateway *gateway;
    struct connection *connection;
    char key[GATEWAY_KEY_MAX];
    size_t key_length; /* 0: the path has no key */
    const char *id;    /* id of a lock; NULL: the path has none */
};

#endif
