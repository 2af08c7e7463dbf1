/* The nodes of a command, and a client for them. */
#ifndef NODES_H
#define NODES_H

#include <getopt.h>
#include <redlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;

/* Size of a node's name. */
#define NODES_NAME 344

struct nodes {
    const char *uris[REDLOCK_MAX_NODES];
    char names[REDLOCK_MAX_NODES][NODES_NAME]; /* as in redlock_node_info; see nodes_check */
    size_t count;
    uint64_t max_ttl_ms; /* options of the client */
    uint64_t node_timeout_ms;
    uint64_t direct_timeout_ms; /* time limit of a direct question */
};

/* The options of commands that use nodes, which nodes_take() handles. */
enum { NODES_MAX_TTL = 512, NODES_NODE_TIMEOUT };
#define NODES_OPTIONS                                                                              \
    {"nodes", required_argument, NULL, 'n'}, {"max-ttl", required_argument, NULL, NODES_MAX_TTL},  \
    {                                                                                              \
        "node-timeout", required_argument, NULL, NODES_NODE_TIMEOUT                                \
    }

/* Initializes without nodes, and with the default times. */
void nodes_init(struct nodes *nodes);

/* Reads "URI,URI,...", the argument of -n. Exits with TOOL_USAGE if there are too many. */
void nodes_set(struct nodes *nodes, const char *list);

/*
 * Handles one of NODES_OPTIONS, whose argument is `optarg`. Exits with TOOL_USAGE if -n names no
 * nodes. Returns false for any other option.
 */
bool nodes_take(struct nodes *nodes, int option);

/* Reads $REDLOCK_NODES if -n was not given. Exits with TOOL_USAGE if there are no nodes at all. */
void nodes_default(struct nodes *nodes);

/* Returns the quorum of the nodes. */
size_t nodes_quorum(const struct nodes *nodes);

/*
 * Creates a client. `owner` may be NULL. Exits with TOOL_USAGE, after a message, if a node's URI or
 * another option is invalid.
 */
redlock_client *nodes_connect(const struct nodes *nodes, struct event_base *base,
                              const char *owner);

/*
 * Has the library check the URIs, and exits like nodes_connect. Call it before direct_connect,
 * which could take a part of the password for the host if a URI is invalid. Fills in the nodes'
 * names.
 */
void nodes_check(struct nodes *nodes);

/* Creates an event loop with precise timers, or exits. */
struct event_base *nodes_loop(void);

/*
 * Returns whether a first request makes sense: each node is connected and identified, or has
 * failed.
 */
bool nodes_are_known(const redlock_client *client);

/*
 * Returns the number of nodes that cannot be connected because this process is out of descriptors.
 */
size_t nodes_without_descriptor(const redlock_client *client);

/*
 * Returns whether there are too few descriptors for a quorum, and if so prints that: waiting would
 * not help.
 */
bool nodes_lack_descriptors(const struct nodes *nodes, const redlock_client *client);

/* Returns whether a node's message is about its login or its rights. */
bool nodes_is_refusal(const char *text);

#endif
