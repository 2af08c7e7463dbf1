/*
 * The gateway: one client of the library, the locks that it holds for HTTP clients, and the HTTP
 * server.
 *
 * A request for a lock becomes a waiter, until the library reports the result, or the connection
 * breaks. An acquired lock becomes a hold, with an id that only the HTTP client knows. No watchdog
 * renews a hold, because nobody would notice when the HTTP client dies: a hold lasts for its TTL
 * from the last renewal that the HTTP client requested.
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

/* Maximum length of a key, in bytes. (Keys of up to 4 times that length can queue.) */
#define GATEWAY_KEY_MAX 1024
/* Maximum length of a body, in bytes. evhttp refuses bodies above the second limit unread. */
#define GATEWAY_BODY_MAX 16384
#define GATEWAY_BODY_LIMIT 49152
/* Maximum length of all headers, in bytes. */
#define GATEWAY_HEADERS_MAX 16384

/* Counters since the start, beside those of the library. */
struct gateway_counts {
    uint64_t canceled; /* waiting requests whose connection broke */
    uint64_t returned; /* locks acquired for connections that had broken */
    uint64_t lapsed;   /* locks that expired without a release */
    uint64_t lost;     /* locks that a quorum of masters had lost before that */
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
    struct event *end; /* activated when is_closing and no hold is left */
    bool is_closing;   /* whether locks are no longer granted */
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
