/* The nodes that a command talks to, and a client on them. */
#ifndef NODES_H
#define NODES_H

#include <getopt.h>
#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

/* Room for the name of a node. */
#define NODES_NAME 344

struct nodes {
    const char *uris[REDLOCK_MAX_NODES];
    char names[REDLOCK_MAX_NODES][NODES_NAME]; /* as in redlock_node_info; see nodes_check */
    size_t count;
    uint64_t max_ttl_ms; /* options of the client */
    uint64_t node_timeout_ms;
    uint64_t direct_timeout_ms; /* with an answer to a direct question */
};

/* The options of commands that talk to nodes, as nodes_take() takes them. */
enum { NODES_MAX_TTL = 512, NODES_NODE_TIMEOUT };
#define NODES_OPTIONS                                                                              \
    {"nodes", required_argument, NULL, 'n'}, {"max-ttl", required_argument, NULL, NODES_MAX_TTL},  \
    {                                                                                              \
        "node-timeout", required_argument, NULL, NODES_NODE_TIMEOUT                                \
    }

/* Begins with no nodes and the usual times. */
void nodes_init(struct nodes *nodes);

/* Takes "URI,URI,...", the argument of -n; exits with TOOL_USAGE when there are too many. */
void nodes_set(struct nodes *nodes, const char *list);

/*
 * Takes one of NODES_OPTIONS, whose argument is `optarg`; exits with TOOL_USAGE when -n names no
 * nodes. Returns false for any other option.
 */
bool nodes_take(struct nodes *nodes, int option);

/* Takes $REDLOCK_NODES where -n gave none; exits with TOOL_USAGE when there are none at all. */
void nodes_default(struct nodes *nodes);

/* Returns the number of nodes that make a quorum. */
size_t nodes_quorum(const struct nodes *nodes);

/*
 * Makes a client. `owner` may be NULL. Exits with TOOL_USAGE, and says why, where a node's URI or
 * another option makes no sense.
 */
redlock_client *nodes_connect(const struct nodes *nodes, struct event_base *base,
                              const char *owner);

/*
 * Has the library check the URIs, and exits as nodes_connect does: what is asked directly, by
 * direct_connect, must not begin with a URI that is wrong, of which a part of the password could be
 * taken for the host. Fills in the nodes' names.
 */
void nodes_check(struct nodes *nodes);

/* Makes an event loop with precise timers, or exits. */
struct event_base *nodes_loop(void);

/*
 * Returns whether a first request is worth while: each node is connected and has said who it is, or
 * has failed.
 */
bool nodes_are_known(const redlock_client *client);

/*
 * Returns the number of nodes that cannot be connected to because this process may open no more
 * descriptors.
 */
size_t nodes_without_descriptor(const redlock_client *client);

/*
 * Returns whether there are too few descriptors for a quorum, after a message that says so: waiting
 * would not help.
 */
bool nodes_lack_descriptors(const struct nodes *nodes, const redlock_client *client);

/* Returns whether a node's text is about its login or its rights. */
bool nodes_is_refusal(const char *text);

#endif
