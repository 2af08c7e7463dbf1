/*
 * A proxy in front of a master, on the test's own loop, that can hold requests and replies, pass
 * them in pieces, and break connections. The test controls the proxy by direct calls, so it decides
 * on the order of events.
 */
#ifndef REDLOCK_TEST_PROXY_H
#define REDLOCK_TEST_PROXY_H

#include "command.h"
#include "harness.h"

struct proxy;

/* Listens on a free port of 127.0.0.1. Ends with the fixture, after the clients. */
struct proxy *proxy_create(struct fixture *f, size_t master);

/* Makes a proxy that counts no commands, for bytes that cannot be parsed (TLS). */
struct proxy *proxy_create_blind(struct fixture *f, size_t master);

/* Makes a proxy in front of each of the fixture's masters, and fills in their URIs. */
void proxies_create(struct fixture *f, struct proxy **proxies, const char **uris);

const char *proxy_uri(const struct proxy *proxy);
int proxy_port(const struct proxy *proxy);

/* The name of all calls of scripts, EVAL and EVALSHA, but for questions whether one is there. */
#define ANY_SCRIPT "EVAL, EVALSHA"

/*
 * Holds requests from now on, or from the next command named `from` on (NULL: from now on). New
 * connections are held as well until proxy_pass_requests.
 */
void proxy_hold_requests(struct proxy *proxy, const char *from);
/* Stops reading from the client's socket, so that it fills, until proxy_pass_requests. */
void proxy_jam_requests(struct proxy *proxy);
void proxy_pass_requests(struct proxy *proxy);

void proxy_hold_replies(struct proxy *proxy);
void proxy_pass_replies(struct proxy *proxy);

/* Passes at most `bytes` bytes at once from now on, each piece in its own turn of the loop. */
void proxy_set_piece(struct proxy *proxy, size_t bytes);

/* Hold and pass requests at the proxies `from` to `to - 1`. */
void proxies_hold_requests(struct proxy *const *proxies, size_t from, size_t to, const char *name);
void proxies_pass_requests(struct proxy *const *proxies, size_t from, size_t to);
void proxies_hold_replies(struct proxy *const *proxies, size_t from, size_t to);
void proxies_pass_replies(struct proxy *const *proxies, size_t from, size_t to);

/* Ends all connections on both sides; held bytes are lost. */
void proxy_cut(struct proxy *proxy);

/*
 * Ends all connections on the client's side only. Held requests are kept, like packets still in
 * flight after their sender has died. New connections pass everything.
 */
void proxy_strand(struct proxy *proxy);
/* Delivers the stranded requests, and runs the loop until the master has executed them. */
void proxy_deliver(struct proxy *proxy);

/* Refuses connections, as a host without a server does; accepts them again. */
void proxy_refuse(struct proxy *proxy);
void proxy_accept(struct proxy *proxy);

/* Returns the number of commands of a name that have arrived so far, held or not. */
size_t proxy_arrived(const struct proxy *proxy, const char *name);
/* Runs the loop until `count` commands of a name have arrived. */
void wait_arrived(struct fixture *f, struct proxy *proxy, const char *name, size_t count);

/* Sets the callback for each command that arrives, even while the fixture is torn down. */
void proxy_watch(struct proxy *proxy, void (*watch)(const struct command *command, void *arg),
                 void *arg);

#endif
