/*
 * libredlock: distributed locks on N independent Redis masters, for programs with an event loop.
 *
 * The algorithm is Redlock ("Distributed Locks with Redis", redis.io/docs/manual/patterns/
 * distributed-locks, section "The Redlock Algorithm"); the comments cite its steps.
 *
 * The calls that each program needs come first, then options and requests. Fences, inspection,
 * nodes and statistics have headers of their own, which this one includes.
 *
 * Rules of the whole API:
 *
 *  - One thread. A client, its locks and its event_base belong to the thread that runs the loop.
 *  - No call blocks. A request is either refused at once (negative status, no callback follows)
 *    or accepted (REDLOCK_OK). An accepted request ends in exactly one callback: never before the
 *    call has returned, always from the loop.
 *  - A refused request changes nothing, and redlock_client_error says why. Reasons besides those
 *    in the comments: REDLOCK_EINVAL (an argument), REDLOCK_ENOMEM, REDLOCK_ECLOSED (the client
 *    closes).
 *  - Every function may be called from inside any callback, redlock_client_close included. The
 *    log, trace and allocator hooks must not call the library.
 *  - Lock handles are valid until the client's `on_closed` has returned. redlock_release and
 *    redlock_cancel are accepted until it is called; after either, on_lost is not called any more,
 *    so its argument may be freed. lib/doc/calls.md has a table of calls and states.
 *  - Times are in milliseconds (`_ms`), in statistics in nanoseconds.
 *  - Strings and structs passed in are copied.
 *  - Structs of options, requests and statistics may grow: they begin with their size, set by
 *    their _INIT macro, or by the caller.
 *  - After fork(), the child must not use its parent's clients: calls are refused with
 *    REDLOCK_EINVAL, the validity is 0, a close does nothing. A bare clone is not detected. See
 *    lib/doc/operating.md, Fork.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the functions of the library. */
#if defined(__GNUC__) || defined(__clang__)
#define REDLOCK_EXPORT __attribute__((visibility("default")))
#else
#define REDLOCK_EXPORT
#endif

/* All statuses: name, value, one sentence. Zero is success, errors are negative. */
#define REDLOCK_STATUS_MAP(XX)                                                                     \
    XX(OK, 0, "success")                                                                           \
    XX(EINVAL, -1, "an argument or option is not valid")                                           \
    XX(ENOMEM, -2, "out of memory")                                                                \
    XX(EHELD, -3, "the key is held by another")                                                    \
    XX(ENOQUORUM, -4, "too few nodes answered to decide")                                          \
    XX(EEXPIRED, -5, "the validity time ended first")                                              \
    XX(ELOST, -6, "a quorum of the nodes no longer holds the lock for us")                         \
    XX(ECANCELED, -7, "the request was canceled")                                                  \
    XX(ECLOSED, -8, "the client was closed")                                                       \
    XX(EBUSY, -9, "something that is under way has to end first")                                  \
    XX(ESYSTEM, -10, "the operating system or a library refused a service")                        \
    XX(EACCESS, -11, "too many nodes refuse the client's login, database or rights")

/* Outcome of a call or request: the names of REDLOCK_STATUS_MAP after "REDLOCK_". */
typedef enum redlock_status {
/* An enumerator of redlock_status. */
#define REDLOCK_STATUS_ENUM(name, value, text) REDLOCK_##name = (value),
    REDLOCK_STATUS_MAP(REDLOCK_STATUS_ENUM)
#undef REDLOCK_STATUS_ENUM
} redlock_status;

/* Returns one sentence for `status`, also for an unknown one. Never NULL. Static storage. */
REDLOCK_EXPORT const char *redlock_strerror(redlock_status status);

/* A refusal, explained. */
typedef struct redlock_error {
    redlock_status status; /* negative */
    char message[256];     /* one sentence that names the option or argument at fault */
} redlock_error;

/* -------------------------------------------------------------------------------------- clients */

struct event_base;                              /* of libevent */
typedef struct redlock_client redlock_client;   /* a set of nodes, on one event_base */
typedef struct redlock_lock redlock_lock;       /* the handle of one lock */
typedef struct redlock_options redlock_options; /* of a client: see below */
typedef struct redlock_request redlock_request; /* one acquisition: see below */

/*
 * Creates a client on `base`, which must outlive it, and begins to connect to its nodes. Requests
 * may be made at once, and wait for the connections. If a quorum needs names to be resolved, they
 * wait for all names, or, after node_timeout_ms, for a connected quorum; at most for wait_ms
 * (stall_timeout_ms if that is 0).
 *
 * `error` may be NULL; otherwise it receives, on failure, the status and a sentence that names the
 * option at fault (a node's URI by its index; passwords are never repeated).
 *
 * Returns REDLOCK_OK, and *client is the caller's until redlock_client_close. Otherwise *client is
 * NULL: REDLOCK_EINVAL also for a file that cannot be used, REDLOCK_ESYSTEM when libsodium or the
 * loop fails.
 */
REDLOCK_EXPORT redlock_status redlock_client_create(struct event_base *base,
                                                    const redlock_options *options,
                                                    redlock_client **client, redlock_error *error);

/*
 * Returns why the last refused call on this client or its locks was refused, with the argument at
 * fault. Valid until the next refused call. Never NULL; "" before any refusal.
 */
REDLOCK_EXPORT const char *redlock_client_error(const redlock_client *client);

/*
 * Reports that a client is closed. Called once, from the loop; only calls of the allocator follow.
 * The client and its lock handles are freed when it returns; inside it, all calls that change
 * something are refused with REDLOCK_ECLOSED.
 */
typedef void redlock_closed_cb(void *arg);

/*
 * Closes the client, from the loop, which must run until `on_closed`:
 *
 *   1. Pending acquisitions and extensions end with REDLOCK_ECLOSED. Holders are notified by
 *      on_lost, with REDLOCK_ECLOSED, and then their locks are released. Releases under way end
 *      with their own result, within node_timeout_ms.
 *   2. The client waits until the nodes that answer have confirmed all releases, at most for
 *      close_timeout_ms from this call.
 *   3. `on_closed` (may be NULL) is called, and everything is freed.
 *
 * From this call on, the validity of locks is 0, and calls that begin something are refused with
 * REDLOCK_ECLOSED, but not redlock_cancel and redlock_release, also for a lock that the close has
 * released. A second close is ignored, and so is NULL.
 */
REDLOCK_EXPORT void redlock_client_close(redlock_client *client, redlock_closed_cb *on_closed,
                                         void *arg);

/* ---------------------------------------------------------------------------------------- locks */

/*
 * Reports from the loop how a request ended, or (redlock_request.on_lost) that a held lock is lost.
 * `lock` is the handle of the request, `arg` the argument passed with the callback. If the handle
 * ends with it (a failed acquisition, a release), it can still be read in the callback, by
 * redlock_explain.
 */
typedef void redlock_cb(redlock_lock *lock, redlock_status status, void *arg);

/*
 * Asks all nodes at once for the key, with a fresh random token for each try (Redlock steps 1 to
 * 5). The key is acquired when a quorum has granted it and, by a fresh reading of the clock, more
 * than min_validity_ms of validity is left. A failed try is released at once on every node that may
 * have granted it.
 *
 * `lock` may be NULL; otherwise *lock is set before the call returns, to NULL by a refusal.
 *
 * `on_acquired` (required) is called with
 *   REDLOCK_OK         the lock is held; the handle is the application's until redlock_release
 *   REDLOCK_EHELD      others hold the key; the nodes that failed, or were too late, could not
 *                      alone have prevented a quorum
 *   REDLOCK_ENOQUORUM  those nodes could
 *   REDLOCK_EACCESS    at once: no quorum is left without nodes that refuse the client's login,
 *                      its database or a right
 *   REDLOCK_EEXPIRED   a quorum granted the key, but too slowly: no validity was left
 *   REDLOCK_ECANCELED, REDLOCK_ECLOSED, REDLOCK_ENOMEM
 * Unless the status is REDLOCK_OK, the handle ends with the callback.
 *
 * With wait_ms, the last try begins within wait_ms of the call, and ends at most two
 * node_timeout_ms later, one more for each raising of counters, if the loop keeps up.
 */
REDLOCK_EXPORT redlock_status redlock_acquire(redlock_client *client,
                                              const redlock_request *request,
                                              redlock_cb *on_acquired, void *arg,
                                              redlock_lock **lock);

/*
 * Releases a lock, held or lost, on all nodes, and consumes the handle, which must not be used
 * after this call, except inside `on_released`. An extension under way ends with REDLOCK_ECANCELED.
 * A node that cannot be reached is sent the release when it comes back, for one TTL.
 *
 * `on_released` (may be NULL) is called with
 *   REDLOCK_OK         a quorum still had the lock's token: the lock was held to the end
 *   REDLOCK_ELOST      no quorum had it any more: another client may have held the lock too
 *   REDLOCK_ENOQUORUM  not known: not enough nodes answered within node_timeout_ms
 *   REDLOCK_ENOMEM     could not be sent: the key is free when its TTL is over, or before
 *
 * Refused with REDLOCK_EINVAL while the lock is being acquired (use redlock_cancel), with
 * REDLOCK_ECLOSED only inside on_closed.
 */
REDLOCK_EXPORT redlock_status redlock_release(redlock_lock *lock, redlock_cb *on_released,
                                              void *arg);

/*
 * Extends a held lock: its key is to live `ttl_ms` from now on every node that still has the lock's
 * token. 0: the TTL of the request, or of the last extension that succeeded. Never creates a key,
 * and never shortens the lock. Once it has succeeded, the watchdog renews with ttl_ms.
 *
 * `on_extended` (may be NULL) is called with
 *   REDLOCK_OK         a quorum extended it: validity from this call, or a renewal's end
 *   REDLOCK_ELOST      no quorum has the key any more; on_lost follows
 *   REDLOCK_ENOQUORUM  not enough nodes answered within node_timeout_ms; the lock keeps the
 *                      validity it had, or gains some when the answers come later
 *   REDLOCK_EEXPIRED   granted, but too slowly
 *   REDLOCK_ENOMEM     it could not be sent; the lock keeps the validity it had
 *   REDLOCK_ECANCELED  the lock was released meanwhile
 *   REDLOCK_ECLOSED
 *
 * Refused with REDLOCK_EBUSY during another extension, REDLOCK_ELOST when the lock is lost, and
 * REDLOCK_EINVAL when it is not held.
 */
REDLOCK_EXPORT redlock_status redlock_extend(redlock_lock *lock, uint64_t ttl_ms,
                                             redlock_cb *on_extended, void *arg);

/*
 * Cancels an acquisition, and releases the key where it may have been granted: `on_acquired`
 * follows with REDLOCK_ECANCELED. Refused with REDLOCK_EINVAL when the lock is not being acquired
 * any more, with REDLOCK_ECLOSED only inside on_closed.
 */
REDLOCK_EXPORT redlock_status redlock_cancel(redlock_lock *lock);

/*
 * Returns the time, in ms rounded down, for which the lock is still certain to be held, by a fresh
 * reading of the clock; 0 when it is not held. This is the TTL, less the time since the round that
 * granted it began, less ttl * drift + 2 ms (Redlock step 3).
 */
REDLOCK_EXPORT uint64_t redlock_validity_ms(const redlock_lock *lock);

/*
 * Returns the fence of a fenced lock, above 0 and below 2^53, from its acquisition to the end of
 * the handle; 0 for any other lock. Write it with each change made under the lock.
 *
 * An acquisition takes a range of 64 fences, and requests to which its client hands the lock on
 * (max_local_handoffs) have the next ones. Each node keeps a counter, "<key>::fence": a grant sets
 * it to the range's end, the larger of 64 more and the time in microseconds.
 *
 * A counter more than three days ahead of the nodes' clocks does not count (REDLOCK_VOTE_ERROR; see
 * examples/fences.md).
 */
REDLOCK_EXPORT uint64_t redlock_fence(const redlock_lock *lock);

/*
 * Returns one sentence for a log or an operator: what ended the request, and the report of its last
 * round. Valid until the next redlock_explain on the client. Never NULL. See lib/doc/calls.md,
 * Reasons.
 */
REDLOCK_EXPORT const char *redlock_explain(const redlock_lock *lock);

/* ----------------------------------------------------------------------------------- more calls */

/*
 * Reports that a client is closed, as redlock_closed_cb does. `unreleased` is the number of
 * releases that were not confirmed in time or were dropped, one for each node and lock. Those keys
 * may stay until their TTL ends.
 */
typedef void redlock_drained_cb(uint64_t unreleased, void *arg);

/* Closes the client as redlock_client_close does. `on_drained` may be NULL. */
REDLOCK_EXPORT void redlock_client_drain(redlock_client *client, redlock_drained_cb *on_drained,
                                         void *arg);

/*
 * Returns the lock's key, of several keys the first: *length bytes, any of which may be NUL;
 * `length` may be NULL. "" when `lock` is NULL. Of a permit: its own key, such as "<key>:3"; while
 * it is being acquired, the key that is tried, valid until the loop goes on.
 */
REDLOCK_EXPORT const char *redlock_key(const redlock_lock *lock, size_t *length);

/*
 * Returns key number `index`, from 0, in the order of the request, as redlock_key does; NULL when
 * the lock has fewer keys.
 */
REDLOCK_EXPORT const char *redlock_key_at(const redlock_lock *lock, size_t index, size_t *length);

/*
 * Returns whether a request that ended with `status` may succeed later: EHELD, ENOQUORUM, EEXPIRED.
 */
REDLOCK_EXPORT bool redlock_is_retryable(redlock_status status);

/* Returns the name of `status`, such as "REDLOCK_EHELD". Never NULL. Static storage. */
REDLOCK_EXPORT const char *redlock_status_name(redlock_status status);

#define REDLOCK_VERSION_MAJOR 1 /* of this header; see redlock_version */
#define REDLOCK_VERSION_MINOR 0 /* likewise */
#define REDLOCK_VERSION_PATCH 0 /* likewise */

/* Returns the version of the running library, "major.minor.patch". Static storage. */
REDLOCK_EXPORT const char *redlock_version(void);

/* ------------------------------------------------------------------------------------ constants */

/* Maximum number of nodes of a client. */
#define REDLOCK_MAX_NODES 32
/* Maximum length of a key, and of all keys of a lock together, in bytes. */
#define REDLOCK_MAX_KEY 65536
/* Maximum number of keys of a lock. */
#define REDLOCK_MAX_KEYS 64
/* Maximum number of permits of a semaphore. */
#define REDLOCK_MAX_PERMITS 256
/* Key in each node's database that records since when the node's memory is sound. */
#define REDLOCK_MARKER_KEY "redlock:marker"
/* Value of a key while readers share it: see redlock_mode. */
#define REDLOCK_SHARED_VALUE "shared"
/* Value of redlock_request.wait_ms: no limit. */
#define REDLOCK_FOREVER UINT64_MAX

/* -------------------------------------------------------------------------------------- options */

/*
 * The source of a client's memory. Called on the loop's thread only, also from inside the library's
 * functions. hiredis and libevent keep their own allocators.
 */
typedef struct redlock_allocator {
    void *(*malloc)(size_t size, void *context);                /* as malloc */
    void *(*realloc)(void *memory, size_t size, void *context); /* as realloc */
    void (*free)(void *memory, void *context);                  /* as free */
    void *context;                                              /* last argument of all three */
} redlock_allocator;

/* Severity of a line of the log. */
typedef enum redlock_log_level {
    REDLOCK_LOG_DEBUG = 0, /* each round, vote and change of state of a lock */
    REDLOCK_LOG_INFO = 1,  /* nodes that come and go */
    REDLOCK_LOG_WARN = 2,  /* losses of availability: a stalled node, a lost lock */
    REDLOCK_LOG_ERROR = 3  /* faults for an operator to repair: wrong password, read-only node */
} redlock_log_level;

/*
 * Receives one line of the log, without a newline, valid during the call. Called on the loop's
 * thread, also from inside the library's functions. Lines never contain a password or a token;
 * those of INFO and WARN are limited in rate. See lib/doc/operating.md, The log.
 */
typedef void redlock_log_cb(redlock_log_level level, const char *line, void *arg);

/* A field of an event: a text, or a number where `text` is NULL. */
typedef struct redlock_event_field {
    const char *name; /* such as "round" */
    const char *text; /* NULL: the field is a number */
    uint64_t number;  /* durations in nanoseconds; flags 0 or 1 */
} redlock_event_field;

/*
 * An event in the life of a client: see lib/doc/tracing.md. Texts are valid during the call of the
 * hook only.
 */
typedef struct redlock_event {
    const redlock_client *client; /* to distinguish clients */
    const char *name;             /* such as "vote_cast" */
    uint64_t time_ns;             /* CLOCK_BOOTTIME, in nanoseconds */
    uint64_t request; /* number of the request, in the order of acceptance: starts at 1 and
                         wraps from 2^32 - 1 to 1; 0: none */
    const char *node; /* name of the node; "": of no node */
    const redlock_event_field *fields; /* as lib/doc/tracing.md lists them */
    size_t field_count;                /* number of fields */
} redlock_event;

/* Receives one event. Called on the loop's thread, also from inside the library's functions. */
typedef void redlock_trace_cb(const redlock_event *event, void *arg);

/*
 * When the client reports a lock that the nodes have passed on to a waiting request. They reserve
 * the key for 1 s, at most ttl_ms, until the lock is renewed. See examples/waiting.md, Two options.
 */
typedef enum redlock_handover {
    REDLOCK_HANDOVER_PUSH,   /* at once: a callback that blocks the loop for longer than that loses
                                the lock. As CONFIRM without a watchdog or guards, with min_hold_ms
                                or lock_delay_ms, and with ttl_ms below 100 */
    REDLOCK_HANDOVER_CONFIRM /* after a renewal, one round trip later */
} redlock_handover;

/*
 * The checks that decide whether a node's votes count. A node that may have forgotten a lock, after
 * a restart, a loss or exchange of its memory, a clock jump or a time as a replica, does not vote
 * (REDLOCK_VOTE_UNTRUSTED) for max_ttl_ms, on which all clients of a key must agree, with guards
 * on. For events that are noticed late or never, see lib/doc/operating.md, Which votes count.
 */
typedef enum redlock_guards {
    REDLOCK_GUARDS_ON, /* a node that does not permit INFO, TIME or the marker is not trusted */
    REDLOCK_GUARDS_LENIENT, /* a check that the node forbids its user counts as passed */
    REDLOCK_GUARDS_OFF      /* none: the operator takes care, as the Redlock article asks */
} redlock_guards;

/* Options of a client. Initialise with REDLOCK_OPTIONS_INIT, then set `nodes` and `node_count`. */
struct redlock_options {
    size_t size; /* sizeof(redlock_options): set by the macro */

    /*
     * URIs of the independent masters; the quorum is node_count / 2 + 1. Each URI is
     *     redis://[user[:password]@]host[:port][/db]
     *     unix://[user:password@]/path[?db=n]
     * with %XX escapes, and IPv6 addresses in brackets; rediss:// is redis:// over TLS.
     * ":password@" is for the default user. Port 6379 and db 0 unless given. ?durable=yes
     * waives the guards of restarts and memory: see lib/doc/operating.md, Which votes count. Two
     * URIs with the same host, port and db, or socket and db, are refused.
     */
    const char *const *nodes;
    size_t node_count; /* 1 to REDLOCK_MAX_NODES */

    /*
     * Time that a node has to answer, after the write and after its answer to an earlier command.
     * 0, the default: its usual answer time and four deviations (RFC 6298), or 250 ms if that is
     * more; 50 ms once another node has denied. Before any answer: 1 s. A watchdog's renewal waits
     * for half of the validity left.
     */
    uint64_t node_timeout_ms;
    /*
     * Silence after which a node that owes an answer is disconnected. 0, the default: twice that
     * time, at least 1 s; 3 s while connecting. Also the timeout of a name's lookup (0: 1 s),
     * doubled for each further one, up to 5 s.
     */
    uint64_t stall_timeout_ms;
    uint64_t max_ttl_ms; /* longest TTL that a request may ask for; 30000 */
    double drift;        /* allowance for clock rates, share of the TTL, 0 to 0.5; 0.01 */

    /*
     * Bounds of the random delay before a retry: doubled with each retry, from the first to the
     * second. See lib/doc/operating.md, Tuning.
     */
    uint64_t retry_delay_ms;         /* 200 */
    uint64_t retry_delay_max_ms;     /* at least retry_delay_ms; 200 */
    uint64_t reconnect_delay_ms;     /* likewise, before connecting to a node again; 50 */
    uint64_t reconnect_delay_max_ms; /* at least reconnect_delay_ms; 2000 */

    /*
     * Bounds per node. A command beyond them is not sent, and the node's vote is UNREACHABLE. 1/4
     * of the room is reserved for renewals and releases. New requests wait, in order and up to
     * wait_ms, while 1/8 is taken at so many nodes that no quorum is free. See lib/doc/sizing.md.
     */
    uint32_t max_commands; /* unanswered commands; 65536 */
    size_t max_bytes;      /* their bytes, and those of pending releases; 16 MiB */

    const char *name; /* client name that the servers list; "redlock"; NULL: none */

    redlock_log_cb *log;         /* NULL: no log */
    void *log_arg;               /* its argument */
    redlock_log_level log_level; /* lowest level logged; REDLOCK_LOG_INFO */

    const redlock_allocator *allocator; /* NULL: malloc, realloc and free */

    redlock_guards guards; /* REDLOCK_GUARDS_ON */

    /*
     * TLS, for nodes at rediss://. The server's certificate must be signed by a trusted authority,
     * and its subjectAltName must name the URI's host; nothing is sent before. PEM files, read once
     * by redlock_client_create, which refuses those it cannot use, and encrypted keys.
     */
    const char *tls_ca_file;   /* trusted authorities; NULL, both: those of the system */
    const char *tls_ca_path;   /* folder of trusted authorities, prepared by `openssl rehash` */
    const char *tls_cert_file; /* certificate of this client, and its chain; NULL: none */
    const char *tls_key_file;  /* key of that certificate; NULL: the key is in tls_cert_file too */

    /*
     * Time for which the nodes keep the counter of an unused fenced key; 0: for ever. 7 days, or
     * max_ttl_ms if that is longer; other values below max_ttl_ms are refused. Keep at least three
     * days: wrong clocks can put counters that far ahead. See lib/doc/sizing.md.
     */
    uint64_t fence_idle_ms;

    /*
     * Name of the application, at most 64 printable ASCII characters without spaces; NULL: none.
     * Part of the value of each key that the client holds (of a reader: of its entry in the list),
     * after the random token and a '/'. redlock_inspect reports it.
     */
    const char *owner;

    /* How long a closing client waits for connected nodes to confirm releases; 5000. */
    uint64_t close_timeout_ms;

    redlock_handover handover; /* REDLOCK_HANDOVER_PUSH */
    /*
     * Number of waiting requests of this client that may get a lock in a row before the nodes pass
     * it to the oldest of all; 0: none. 64.
     */
    uint32_t max_local_handoffs;

    /* Hook for each event; NULL: none. For investigations: see lib/doc/tracing.md. */
    redlock_trace_cb *trace;
    void *trace_arg; /* argument of the hook */

    /* Requests that may wait to be sent; more get REDLOCK_EBUSY. 1048576. */
    uint32_t max_unsent;

    /*
     * Time without use after which a client closes its connections, until the next call; 0, the
     * default: never. See lib/doc/sizing.md.
     */
    uint64_t idle_close_ms;
};

/*
 * A default, labelled with its field. C99 and C++20 check the label; older C++ assigns by position,
 * so the defaults are in the order of the fields.
 */
#if !defined(__cplusplus) || __cplusplus >= 202002L
#define REDLOCK_OPTION(field, value) .field = value
#else
#define REDLOCK_OPTION(field, value) value
#endif

/* The defaults of redlock_options. */
#define REDLOCK_OPTIONS_INIT                                                                       \
    {                                                                                              \
        REDLOCK_OPTION(size, sizeof(redlock_options)), REDLOCK_OPTION(nodes, NULL),                \
            REDLOCK_OPTION(node_count, 0), REDLOCK_OPTION(node_timeout_ms, 0),                     \
            REDLOCK_OPTION(stall_timeout_ms, 0), REDLOCK_OPTION(max_ttl_ms, 30000),                \
            REDLOCK_OPTION(drift, 0.01), REDLOCK_OPTION(retry_delay_ms, 200),                      \
            REDLOCK_OPTION(retry_delay_max_ms, 200), REDLOCK_OPTION(reconnect_delay_ms, 50),       \
            REDLOCK_OPTION(reconnect_delay_max_ms, 2000), REDLOCK_OPTION(max_commands, 65536),     \
            REDLOCK_OPTION(max_bytes, 16u << 20), REDLOCK_OPTION(name, "redlock"),                 \
            REDLOCK_OPTION(log, NULL), REDLOCK_OPTION(log_arg, NULL),                              \
            REDLOCK_OPTION(log_level, REDLOCK_LOG_INFO), REDLOCK_OPTION(allocator, NULL),          \
            REDLOCK_OPTION(guards, REDLOCK_GUARDS_ON), REDLOCK_OPTION(tls_ca_file, NULL),          \
            REDLOCK_OPTION(tls_ca_path, NULL), REDLOCK_OPTION(tls_cert_file, NULL),                \
            REDLOCK_OPTION(tls_key_file, NULL),                                                    \
            REDLOCK_OPTION(fence_idle_ms, UINT64_C(604800000)), REDLOCK_OPTION(owner, NULL),       \
            REDLOCK_OPTION(close_timeout_ms, 5000),                                                \
            REDLOCK_OPTION(handover, REDLOCK_HANDOVER_PUSH),                                       \
            REDLOCK_OPTION(max_local_handoffs, 64), REDLOCK_OPTION(trace, NULL),                   \
            REDLOCK_OPTION(trace_arg, NULL), REDLOCK_OPTION(max_unsent, 1048576),                  \
            REDLOCK_OPTION(idle_close_ms, 0)                                                       \
    }

/* ------------------------------------------------------------------------------------- requests */

/*
 * How a key is held. Readers share it with each other only; foreign clients find it taken. Requests
 * that queue have one wait queue in all modes. Readers and writers have one key, neither `keys` nor
 * `permits`; readers have no `min_hold_ms`. See examples/readers.md.
 */
typedef enum redlock_mode {
    REDLOCK_EXCLUSIVE, /* one holder; if it does not queue, readers may keep it out for ever */
    REDLOCK_READER,    /* many holders; not `fenced`: a fence is for a key held alone */
    REDLOCK_WRITER     /* one holder; readers make room for it */
} redlock_mode;

/* One acquisition. Initialise with REDLOCK_REQUEST_INIT, then set at least `key`. */
struct redlock_request {
    size_t size; /* sizeof(redlock_request): set by the macro */

    /*
     * Name of the resource, any bytes; the Redis key. Refused, because the library uses them:
     * REDLOCK_MARKER_KEY, "redlock:waiting", "redlock:queues", and names that end in "::fence",
     * "::readers", "::writer", "::queue" or "::permits".
     */
    const char *key;
    size_t key_length; /* bytes, 1 to REDLOCK_MAX_KEY; 0: `key` is a C string */

    uint64_t ttl_ms; /* time for which the nodes keep the key unless renewed; 10000 */

    /*
     * Bounds on the waiting for a key that others hold. `wait_ms` bounds the time from the call to
     * the last try (REDLOCK_FOREVER: no limit), `retries` the number of tries after the first. A
     * bound that is 0 does not count; if both are 0, there is one try.
     *
     * With `retries`, tries follow each other after random delays (redlock_options.retry_delay_ms).
     * With `wait_ms` alone the request queues: a release gives the key to the first waiter, in the
     * order of the calls, and notifies it. Foreign clients, requests that do not queue, and
     * requests of the client that has the lock may be served first. See examples/waiting.md; for
     * several keys, examples/several.md.
     *
     * Requests poll instead with wait_replicas, with keys longer than 4096 bytes (several keys:
     * together, plus six bytes each), and where a node or its ACL does not permit the queue.
     */
    uint64_t wait_ms;
    uint32_t retries; /* tries after the first */

    /* Validity that an acquisition, renewal or extension must exceed: otherwise it has failed. */
    uint64_t min_validity_ms;

    /*
     * Whether to renew the lock every third of its TTL until it is released or lost; first at a
     * random instant within the first third. A failed renewal is tried again after nearly half of
     * the time that is left, and at once when a node connects.
     */
    bool watchdog;
    /*
     * Time after the acquisition within which renewals may begin, for programs that hang while
     * their loop runs: the key is held no longer than max_hold_ms + ttl_ms. 0: no limit. Only with
     * watchdog.
     */
    uint64_t max_hold_ms;

    /*
     * Callback for the loss of the lock; may be NULL. Called once, at the latest when the validity
     * ends, unless the loop is busy (only a fence protects against that).
     *   REDLOCK_ELOST     no quorum is left: at the other nodes the key is gone, or is another's
     *   REDLOCK_EEXPIRED  the validity ended, and no renewal had succeeded
     *   REDLOCK_ECLOSED   the client is closing, and releases the lock next
     * The application must still release the handle; after REDLOCK_ECLOSED it need not.
     */
    redlock_cb *on_lost;
    void *on_lost_arg; /* argument of the callback */

    /*
     * Whether to give the lock a fence: a number larger than that of every acquisition of the key
     * that completed before this one began (before its range was taken: redlock_fence). A resource
     * that refuses smaller numbers than it has seen is safe from holders that have lost the lock
     * unknowingly (Kleppmann, "How to do distributed locking", 2016). All clients of a key must ask
     * for a fence. See examples/fences.md.
     */
    bool fenced;

    /*
     * Keys of a lock of several keys, all different, instead of `key`. Each node takes all or none,
     * so their order does not matter. The lock is lost when no quorum has all of them. It has one
     * fence, larger than all earlier fences of all its keys.
     */
    const char *const *keys;
    const size_t *key_lengths; /* bytes; NULL, or 0 for a key: the key is a C string */
    size_t key_count;          /* 1 to REDLOCK_MAX_KEYS; 0 with `key` */

    /*
     * Minimum time for which the key stays taken, even if it is released earlier, from before the
     * try that acquired it; at most ttl_ms. A key that stays has zeros in place of the token. See
     * examples/stay.md.
     */
    uint64_t min_hold_ms;

    /*
     * Time for which the nodes keep the key after the validity has ended, unless it is released:
     * for resources that cannot check a fence (the lock-delay of "The Chubby lock service", section
     * 2.4). ttl_ms + lock_delay_ms is at most max_ttl_ms.
     */
    uint64_t lock_delay_ms;

    /*
     * Number of a master's replicas that must confirm its grant or renewal (WAIT) within half of
     * node_timeout_ms; otherwise its vote is UNTRUSTED. Failover becomes less dangerous, but not
     * safe. Refused with REDLOCK_EINVAL if stall_timeout_ms is less than node_timeout_ms, because
     * the node is silent meanwhile. See examples/replicas.md.
     */
    uint32_t wait_replicas;

    /*
     * Number of permits, up to REDLOCK_MAX_PERMITS, if the key is that of a semaphore; 0: it is
     * that of a lock. The permits are the locks of the keys "<key>:0", "<key>:1" and so on; the
     * request takes a free one, and the handle is then that permit's lock (redlock_key).
     * REDLOCK_EHELD: the last try found no free one. After a denied permit, up to four free ones in
     * a row are tried at once, which uses up no retry. See examples/permits.md.
     *
     * All clients of a key must agree on the number; otherwise the largest applies. The lock of
     * `key` itself is separate. The length of `key` is at most REDLOCK_MAX_KEY - 4.
     */
    uint32_t permits;

    redlock_mode mode; /* way the key is held; REDLOCK_EXCLUSIVE */

    /*
     * Whether the nodes watch the held key (client tracking, Redis 6.0), and notify the client at
     * once when anybody deletes, replaces or expires it (not: SWAPDB). Nodes that lack it then get
     * it again while a quorum has it; otherwise on_lost is called, by the validity's end. Needs the
     * watchdog; not for readers or keys over 4096 bytes. Costs each node two short commands per
     * acquisition and renewal.
     */
    bool watch_key;
};

/* The defaults of redlock_request. */
#define REDLOCK_REQUEST_INIT                                                                       \
    {                                                                                              \
        REDLOCK_OPTION(size, sizeof(redlock_request)), REDLOCK_OPTION(key, NULL),                  \
            REDLOCK_OPTION(key_length, 0), REDLOCK_OPTION(ttl_ms, 10000),                          \
            REDLOCK_OPTION(wait_ms, 0), REDLOCK_OPTION(retries, 0),                                \
            REDLOCK_OPTION(min_validity_ms, 0), REDLOCK_OPTION(watchdog, false),                   \
            REDLOCK_OPTION(max_hold_ms, 0), REDLOCK_OPTION(on_lost, NULL),                         \
            REDLOCK_OPTION(on_lost_arg, NULL), REDLOCK_OPTION(fenced, false),                      \
            REDLOCK_OPTION(keys, NULL), REDLOCK_OPTION(key_lengths, NULL),                         \
            REDLOCK_OPTION(key_count, 0), REDLOCK_OPTION(min_hold_ms, 0),                          \
            REDLOCK_OPTION(lock_delay_ms, 0), REDLOCK_OPTION(wait_replicas, 0),                    \
            REDLOCK_OPTION(permits, 0), REDLOCK_OPTION(mode, REDLOCK_EXCLUSIVE),                   \
            REDLOCK_OPTION(watch_key, false)                                                       \
    }

#ifdef __cplusplus
}
#endif

/* These can also be included alone. */
#include "redlock/fences.h"
#include "redlock/inspection.h"
#include "redlock/nodes.h"
#include "redlock/statistics.h"

#endif
