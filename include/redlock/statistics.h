/*
 * Counters and durations of a client and its nodes. Part of redlock.h, which includes it. See
 * lib/doc/statistics.md.
 */
#ifndef REDLOCK_STATISTICS_H
#define REDLOCK_STATISTICS_H

#include "../redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of buckets of a histogram. */
#define REDLOCK_HISTOGRAM_BUCKETS 256

/*
 * Durations in log-linear buckets: eight from each power of two of nanoseconds to the next. Bucket
 * i counts durations above the bound of bucket i - 1, up to its own (redlock_histogram_bound_ns);
 * the first all below 1024 ns, the last all above 2^42 ns.
 */
typedef struct redlock_histogram {
    uint64_t count;                              /* number of durations */
    uint64_t sum_ns;                             /* their sum, in nanoseconds */
    uint64_t buckets[REDLOCK_HISTOGRAM_BUCKETS]; /* durations in each */
} redlock_histogram;

/*
 * Returns the longest duration, in nanoseconds, of bucket `bucket`; UINT64_MAX for the last, and
 * beyond.
 */
REDLOCK_EXPORT uint64_t redlock_histogram_bound_ns(size_t bucket);

/*
 * Returns the duration, in nanoseconds, that the share `quantile` (0 to 1) of the durations does
 * not exceed, rounded up to the bound of a bucket. 0 for an empty histogram, or NULL.
 */
REDLOCK_EXPORT uint64_t redlock_histogram_quantile_ns(const redlock_histogram *histogram,
                                                      double quantile);

/* Adds the durations of `from` to `into`. */
REDLOCK_EXPORT void redlock_histogram_merge(redlock_histogram *into, const redlock_histogram *from);

/*
 * Counters of a client since its creation, but for those called "now". A request has its outcome
 * just before `on_acquired` is called; the fields from `pending` to `closed` always add up to
 * `accepted`.
 */
typedef struct redlock_stats {
    size_t size; /* sizeof(redlock_stats): set by the caller */

    /* Requests, by their outcome. */
    uint64_t refused;          /* calls that were refused */
    uint64_t accepted;         /* calls that were accepted */
    uint64_t pending;          /* under way now */
    uint64_t acquired;         /* REDLOCK_OK */
    uint64_t failed_held;      /* REDLOCK_EHELD */
    uint64_t failed_no_quorum; /* REDLOCK_ENOQUORUM */
    uint64_t failed_expired;   /* REDLOCK_EEXPIRED */
    uint64_t failed_no_access; /* REDLOCK_EACCESS */
    uint64_t failed_no_memory; /* REDLOCK_ENOMEM */
    uint64_t canceled;         /* REDLOCK_ECANCELED */
    uint64_t closed;           /* REDLOCK_ECLOSED */
    uint64_t tries;            /* tries of all requests */

    /* Held locks. A handover ends one, and begins another. */
    uint64_t held;         /* locks held now */
    uint64_t lost_gone;    /* lost: REDLOCK_ELOST */
    uint64_t lost_expired; /* lost: REDLOCK_EEXPIRED */
    uint64_t lost_closed;  /* lost: REDLOCK_ECLOSED */

    /* Renewals by the watchdog; not those superseded by a release or a later one. */
    uint64_t renewed;         /* succeeded in time */
    uint64_t renewals_failed; /* failed */
    uint64_t renewed_late;    /* failed, but succeeded by later answers */

    uint64_t extended;          /* extensions: REDLOCK_OK */
    uint64_t extensions_failed; /* extensions: any other status */

    /* Releases by the status of `on_released`, counted just before it, also if it is NULL. */
    uint64_t released;           /* REDLOCK_OK */
    uint64_t released_gone;      /* REDLOCK_ELOST */
    uint64_t released_no_quorum; /* REDLOCK_ENOQUORUM */
    uint64_t released_no_memory; /* REDLOCK_ENOMEM */

    /* The wait queue. */
    uint64_t pushes;          /* pushed grants that found their request */
    uint64_t pushes_returned; /* pushed grants that were given back */
    uint64_t handovers;       /* locks handed over inside the client */

    /* Durations. Each acquired request is in one of `acquire` and `wait`. */
    redlock_histogram acquire; /* from the call to the acquisition, by the first try, at once */
    redlock_histogram wait;    /* likewise, of all others: queued, or after a failed try */
    redlock_histogram renew;   /* from the start of a renewal or extension that succeeded in time
                                  to the decision */
    redlock_histogram release; /* from the call, or its turn, to the decision */
} redlock_stats;

/*
 * Fills in the statistics of a client; set stats->size to sizeof(redlock_stats) before. Allocates
 * nothing, and may be called until `on_closed`. Bytes beyond what this library knows are set to 0.
 * Refused with REDLOCK_EINVAL when the size is below sizeof(size_t).
 */
REDLOCK_EXPORT redlock_status redlock_client_stats(const redlock_client *client,
                                                   redlock_stats *stats);

/* Number of counters of votes, with room for new kinds of votes. */
#define REDLOCK_STATS_VOTES 32

/* Counters of one node since it became a node of the client, but for those called "now". */
typedef struct redlock_node_stats {
    size_t size;                /* sizeof(redlock_node_stats): set by the caller */
    const char *node;           /* as in redlock_node_info */
    bool connected;             /* whether commands are sent to the node now */
    bool trusted;               /* whether the node's grants count now */
    uint64_t connections;       /* connections established, with login */
    uint64_t disconnected;      /* connections that failed or ended */
    uint64_t replies;           /* answers, each perhaps for many locks, and messages */
    uint64_t bytes_sent;        /* as written to the sockets, before TLS */
    uint64_t bytes_received;    /* as read from the sockets, after TLS */
    uint64_t forbidden;         /* answers: the ACL refused a right */
    uint64_t pending_releases;  /* releases that are pending now */
    uint64_t releases_deferred; /* releases that failed, and became pending */
    uint64_t releases_retried;  /* pending releases that were answered */
    uint64_t given_up;          /* releases dropped, and left to the TTL */
    /*
     * Votes in rounds of all kinds, by redlock_vote; NONE is not counted. An answer after the
     * timeout counts in addition to TIMEOUT, a grant as LATE; a pushed grant in addition to its
     * denial.
     */
    uint64_t votes[REDLOCK_STATS_VOTES];
    /*
     * Round trips, from the queueing of a command to the reading of its answer: one for each
     * reading of the socket.
     */
    redlock_histogram round_trip;
} redlock_node_stats;

/*
 * Fills in the statistics of the node at `index`, from 0, in the order of redlock_client_nodes, as
 * redlock_client_stats does. REDLOCK_EINVAL also when there is no such node.
 */
REDLOCK_EXPORT redlock_status redlock_client_node_stats(const redlock_client *client, size_t index,
                                                        redlock_node_stats *stats);

/*
 * Receives `length` bytes of text, without a NUL, valid during the call. Must not call the library.
 */
typedef void redlock_write_cb(const char *text, size_t length, void *arg);

/*
 * Writes the statistics of a client and its nodes in the text format of Prometheus, by calling
 * `write` with one line after the other. Allocates nothing. See lib/doc/statistics.md.
 */
REDLOCK_EXPORT redlock_status redlock_stats_write(const redlock_client *client,
                                                  redlock_write_cb *write, void *arg);

#ifdef __cplusplus
}
#endif

#endif
