/*
 * What the nodes answered about a lock, and who holds a key. Part of redlock.h, which includes it.
 */
#ifndef REDLOCK_INSPECTION_H
#define REDLOCK_INSPECTION_H

#include "../redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One node's answer in the last round of a lock. */
typedef enum redlock_vote {
    REDLOCK_VOTE_NONE,        /* no answer when the others had decided */
    REDLOCK_VOTE_GRANTED,     /* done */
    REDLOCK_VOTE_DENIED,      /* the key is held by another, or free, but left to the holder; for a
                                 reader also: others wait */
    REDLOCK_VOTE_WRONG_TYPE,  /* the key exists but is no lock: it is not a string */
    REDLOCK_VOTE_NO_EXPIRY,   /* the key exists but is no lock: it never expires */
    REDLOCK_VOTE_MISSING,     /* the key to renew or release was not there */
    REDLOCK_VOTE_ERROR,       /* the server refused the command, or the login sent before it */
    REDLOCK_VOTE_TIMEOUT,     /* no answer within node_timeout_ms */
    REDLOCK_VOTE_UNREACHABLE, /* nothing was sent: no connection, or over a bound; see `detail` */
    REDLOCK_VOTE_REFUSED,     /* nothing was sent: the server refuses the login or the database,
                                 and `detail` is the server's text */
    REDLOCK_VOTE_BROKEN,      /* the connection broke: outcome unknown */
    REDLOCK_VOTE_UNTRUSTED,   /* done, or perhaps done, but the vote does not count: see
                                 redlock_guards and redlock_request.wait_replicas */
    REDLOCK_VOTE_LATE         /* done, but the answer came after the round */
} redlock_vote;

/* One node's vote, and the reason for it. */
typedef struct redlock_node_report {
    const char *node;   /* "127.0.0.1:6379" */
    redlock_vote vote;  /* NONE, if the others had decided before */
    uint64_t ttl_ms;    /* DENIED: rest of the TTL of the other holder's key, or of the writer's
                           intent; 0: not known.
                           UNTRUSTED: time until trusted again; 0: until something else changes */
    const char *detail; /* DENIED (if not held), ERROR, UNREACHABLE, REFUSED, BROKEN, UNTRUSTED: the
                           reason in words; "" */
} redlock_node_report;

/*
 * Fills in up to `capacity` entries of `reports`: the votes of the lock's last round, in the order
 * of redlock_client_nodes. Texts are valid until the current callback returns, or the turn of the
 * loop ends. Returns the number of nodes, which may be more; 0 when `lock` is NULL.
 */
REDLOCK_EXPORT size_t redlock_report(const redlock_lock *lock, redlock_node_report *reports,
                                     size_t capacity);

/* Maximum number of owners of queue entries that an inspection reports. */
#define REDLOCK_MAX_QUEUE_OWNERS 8

/* One node's answer about a key. The texts are valid until the callback returns. */
typedef struct redlock_node_view {
    const char *node;      /* "127.0.0.1:6379" */
    bool answered;         /* whether its answer counts: if not, see `detail` */
    bool held;             /* whether the key is there, with an expiry */
    const char *owner;     /* redlock_options.owner of the holder, printable; "" */
    uint64_t ttl_ms;       /* rest of the key's TTL */
    uint64_t fence;        /* first fence of the range that its counter ends; 0: none */
    const char *detail;    /* why there is no answer, or why the key is no lock; "" */
    uint32_t readers;      /* readers that share the key; 0: free, or held alone */
    uint32_t queue_length; /* entries in its wait queue; 0 also if the user may not read it */
} redlock_node_view;

/* The answers of all nodes, and the result. The texts are valid until the callback returns. */
typedef struct redlock_view {
    bool held;                      /* whether a quorum holds it for the same holder or readers */
    const char *owner;              /* redlock_options.owner of the holder; "" */
    uint64_t ttl_ms;                /* time for which a quorum still holds it */
    uint64_t fence;                 /* the first of the newest range; 0: none (redlock_fence) */
    const redlock_node_view *nodes; /* in the order of redlock_client_nodes */
    size_t node_count;              /* number of nodes */
    uint32_t readers;               /* readers that a quorum lists; `owner` is then "" */

    /*
     * The wait queue of the key, or, if it is empty, of the semaphore of this name; requests of one
     * client may share an entry. `queue_length` is the largest number of entries that each node of
     * a quorum has at least; `queue_owners` are the owners ("": none) of those among the first
     * eight that a quorum has, in order. More answers could change these fields, whatever the
     * status.
     */
    uint32_t queue_length;
    const char *const *queue_owners; /* the next to be served first */
    size_t queue_owner_count;        /* 0 to REDLOCK_MAX_QUEUE_OWNERS, and to `queue_length` */
} redlock_view;

/*
 * Reports the result of redlock_inspect. `view` is valid until the callback returns. Statuses:
 *   REDLOCK_OK         the nodes that did not answer could not change who holds the key
 *   REDLOCK_ENOQUORUM  they could
 *   REDLOCK_ECLOSED
 */
typedef void redlock_inspect_cb(redlock_status status, const redlock_view *view, void *arg);

/*
 * Asks all nodes who holds a key and who waits for it, and calls `on_view` (required) within
 * node_timeout_ms; a new client first connects to a quorum, for at most stall_timeout_ms. The
 * answer may be out of date when it arrives. `key_length` 0: `key` is a C string.
 */
REDLOCK_EXPORT redlock_status redlock_inspect(redlock_client *client, const char *key,
                                              size_t key_length, redlock_inspect_cb *on_view,
                                              void *arg);

#ifdef __cplusplus
}
#endif

#endif
