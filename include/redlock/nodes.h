/*
 * The nodes of a client: their state, waiting for a quorum of them, and changing the list. Part of
 * redlock.h, which includes it.
 */
#ifndef REDLOCK_NODES_H
#define REDLOCK_NODES_H

#include "../redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * State of one node now. A node has the same unique name everywhere: its URI without scheme, login
 * and durability, "127.0.0.1:6379", "127.0.0.1:6379/2" with a database other than 0, "/path",
 * "/path?db=2". Of a path, bytes that are not printable ASCII, spaces, quotes and '\', '%', '?',
 * '#', '@' are written as %XX.
 */
typedef struct redlock_node_info {
    const char *node;        /* the name: valid until the node has left, and the loop runs again */
    bool connected;          /* whether commands are sent to the node */
    const char *reason;      /* cause when not connected, or ""; valid until the loop runs again */
    uint32_t commands;       /* commands sent and not answered */
    size_t bytes;            /* bytes of those commands */
    size_t pending_releases; /* unconfirmed releases */
    uint64_t disconnected;   /* connections that failed or ended */
    bool trusted;            /* whether its grants count, as of its last answer: redlock_guards */
    const char *distrust;    /* cause when not trusted, or ""; valid until the loop runs again */
    uint64_t distrust_ms;    /* time until trusted again; 0: until something else changes */
    bool joining;            /* in the next list only: see redlock_client_change_nodes */
    bool leaving;            /* not in the next list */
} redlock_node_info;

/*
 * Fills in up to `capacity` entries of `infos` (may be NULL when `capacity` is 0): the nodes in the
 * order of the options, then those that are joining. Returns the number of nodes, which may be
 * more.
 */
REDLOCK_EXPORT size_t redlock_client_nodes(const redlock_client *client, redlock_node_info *infos,
                                           size_t capacity);

/*
 * Reports the result of redlock_client_ready. Statuses:
 *   REDLOCK_OK         a quorum of the nodes is connected and trusted
 *   REDLOCK_ENOQUORUM  there was no quorum within timeout_ms
 *   REDLOCK_EACCESS    at once, as for redlock_acquire
 *   REDLOCK_ECLOSED
 */
typedef void redlock_ready_cb(redlock_status status, void *arg);

/*
 * Calls `on_ready` (required) from the loop, once, as soon as a quorum of the nodes, of both lists
 * during a change, is connected and trusted. No request has to wait for this call.
 *
 * `timeout_ms`: 0 reports the current state in the loop's next iteration; REDLOCK_FOREVER: no
 * limit. New masters grant nothing for max_ttl_ms. Refused with REDLOCK_EBUSY while 1024 such calls
 * wait.
 */
REDLOCK_EXPORT redlock_status redlock_client_ready(redlock_client *client, uint64_t timeout_ms,
                                                   redlock_ready_cb *on_ready, void *arg);

/*
 * Begins to change the list of nodes while locks are in use. Until redlock_client_commit_nodes the
 * client is joint: it needs a quorum of both lists, because quorums of two lists need not overlap
 * ("In Search of an Understandable Consensus Algorithm", section 6). Commit when all clients of the
 * same keys have been joint for max_ttl_ms; begin the next change when all have committed. See
 * lib/doc/operating.md, Replacing a node.
 *
 * A server in both lists must have the same URI in both. The old list decides the outcome of a
 * release. If a majority of the old list leaves, locks held at the commit keep their keys there for
 * the rest of their TTL, even when released.
 *
 * Refused with REDLOCK_EBUSY during a change, and with REDLOCK_EINVAL if a URI is not valid, two
 * are of one server, or both lists together have more than REDLOCK_MAX_NODES nodes.
 */
REDLOCK_EXPORT redlock_status redlock_client_change_nodes(redlock_client *client,
                                                          const char *const *nodes,
                                                          size_t node_count);

/*
 * Ends a change of nodes: the next list replaces the old one, whose other nodes are disconnected.
 * Refused with REDLOCK_EINVAL without a change, and with REDLOCK_EBUSY until max_ttl_ms has passed
 * since redlock_client_change_nodes.
 */
REDLOCK_EXPORT redlock_status redlock_client_commit_nodes(redlock_client *client);

/*
 * Ends a change of nodes by going back to the old list: safe as long as no client has committed.
 * Refused with REDLOCK_EINVAL without a change.
 */
REDLOCK_EXPORT redlock_status redlock_client_abandon_nodes(redlock_client *client);

#ifdef __cplusplus
}
#endif

#endif
