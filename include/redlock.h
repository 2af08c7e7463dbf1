/*
 * libredlock: distributed locks on N independent Redis masters, for programs with a libevent loop.
 *
 * The algorithm is Redlock ("Distributed Locks with Redis", redis.io/docs/manual/patterns/
 * distributed-locks, section "The Redlock Algorithm"); the comments cite its steps.
 *
 * Rules of the whole API:
 *
 *  - One thread. A client, its locks and its event_base belong to the thread that runs the loop.
 *  - No call blocks. A request is either refused at once (negative status, no callback follows) or
 *    accepted (REDLOCK_OK). An accepted request ends in exactly one callback: never zero, never
 *    two, never before the call has returned, always from the loop.
 *  - Every function may be called from inside any callback, redlock_client_close included. The log,
 *    trace and allocator hooks are not callbacks: they must not call the library.
 *  - A client that closes begins nothing any more, but lets go of what there is. Until `on_closed`
 *    has returned, lock handles are valid, and until it is called, redlock_release and
 *    redlock_cancel are accepted as before the close. After either call nothing is called for the
 *    lock but what is owed to a request: the callback of the release, or of the canceled
 *    acquisition, and of an extension that was under way. No on_lost comes any more, so its
 *    argument may be freed. lib/doc/calls.md has a table of calls and states.
 *  - Times in this header are in milliseconds (`_ms`); those in statistics are in nanoseconds.
 *  - Strings and structs passed in are copied; the caller may free them when the call returns.
 *  - Option and request structs begin with their size and are initialised with their _INIT macro,
 *    so that they can grow without breaking programs that were built against an older header; the
 *    structs of statistics, in which the caller sets the size, likewise.
 *  - After fork(), the child has no part in its parent's clients: on those, each call that begins
 *    something is refused with REDLOCK_EINVAL, redlock_validity_ms returns 0, and
 *    redlock_client_close does nothing. The child makes an event_base and clients of its own; the
 *    child neither runs nor frees the parent's event_base, because both processes would use one
 *    set of sockets. (A daemon therefore makes its client after it has forked.) exec is safe: it
 *    closes the descriptors. A process made without the C library's fork(), by a bare clone for
 *    instance, is not detected.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Marks the functions of the library. */
#if defined(__GNUC__) || defined(__clang__)
#define REDLOCK_EXPORT __attribute__((visibility("default")))
#else
#define REDLOCK_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION_MAJOR 1 /* of this header; see redlock_version */
#define REDLOCK_VERSION_MINOR 0 /* likewise */
#define REDLOCK_VERSION_PATCH 0 /* likewise */

/* Returns the version of the running library, "major.minor.patch". Static storage. */
REDLOCK_EXPORT const char *redlock_version(void);

/* ------------------------------------------------------------------------------------- statuses */

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

/* Outcome of a call or request: the names of REDLOCK_STATUS_MAP behind "REDLOCK_". */
typedef enum redlock_status {
/* An enumerator of redlock_status. */
#define REDLOCK_STATUS_ENUM(name, value, text) REDLOCK_##name = (value),
    REDLOCK_STATUS_MAP(REDLOCK_STATUS_ENUM)
#undef REDLOCK_STATUS_ENUM
} redlock_status;

/*
 * Returns one sentence for `status`. Never NULL, also for a number that is no status. Static
 * storage.
 */
REDLOCK_EXPORT const char *redlock_strerror(redlock_status status);

/* Returns the name of `status`, such as "REDLOCK_EHELD". Never NULL. Static storage. */
REDLOCK_EXPORT const char *redlock_status_name(redlock_status status);

/*
 * Returns whether the request that ended with `status` may succeed later: true for EHELD, ENOQUORUM
 * and EEXPIRED.
 */
REDLOCK_EXPORT bool redlock_is_retryable(redlock_status status);

/* A refusal, explained. */
typedef struct redlock_error {
    redlock_status status; /* negative */
    char message[256];     /* one sentence that names the option or argument at fault */
} redlock_error;

/* ---------------------------------------------------------------------------------------- hooks */

/*
 * The source of a client's memory. The three functions behave like malloc, realloc and free, with
 * `context` as an additional argument. They are called on the loop's thread only, also from inside
 * the library's functions, and must not call the library. hiredis and libevent keep their own
 * allocators.
 */
typedef struct redlock_allocator {
    void *(*malloc)(size_t size, void *context);                /* as malloc */
    void *(*realloc)(void *memory, size_t size, void *context); /* as realloc */
    void (*free)(void *memory, void *context);                  /* as free */
    void *context;                                              /* last argument of all three */
} redlock_allocator;

/* Weight of a line of the log. */
typedef enum redlock_log_level {
    REDLOCK_LOG_DEBUG = 0, /* each round, vote and change of state of a lock */
    REDLOCK_LOG_INFO = 1,  /* nodes that come and go */
    REDLOCK_LOG_WARN = 2,  /* losses of availability: a stalled node, a lost lock */
    REDLOCK_LOG_ERROR = 3  /* faults that an operator has to mend: wrong password, read-only node */
} redlock_log_level;

/*
 * Takes one line of the log. `line` has no newline and is valid during the call only. Lines are
 * short and of stable form ("node 127.0.0.1:6379: connected"); they never hold a password or a
 * token. Lines of REDLOCK_LOG_INFO and REDLOCK_LOG_WARN are limited, for each kind and node: a
 * burst of 20, then one a second, which tells how many were left out.
 *
 * The hook is called on the loop's thread, also from inside the library's functions: it must not
 * call any of them.
 */
typedef void redlock_log_cb(redlock_log_level level, const char *line, void *arg);

/* --------------------------------------------------------------------------------------- client */

struct event_base;                            /* of libevent */
typedef struct redlock_client redlock_client; /* the set of nodes, bound to one event_base */
typedef struct redlock_lock redlock_lock;     /* the handle of one lock */

/* Maximum number of nodes of a client. */
#define REDLOCK_MAX_NODES 32
/* Maximum length of a key, and of all keys of a lock together, in bytes. */
#define REDLOCK_MAX_KEY 65536
/* Maximum number of keys of a lock. */
#define REDLOCK_MAX_KEYS 64
/* Maximum number of permits of a semaphore. */
#define REDLOCK_MAX_PERMITS 256
/* Maximum number of owners that an inspection tells of those who wait in line. */
#define REDLOCK_MAX_QUEUE_OWNERS 8
/* Key in each node's database that records since when the node's memory is sound. */
#define REDLOCK_MARKER_KEY "redlock:marker"
/* Value of a key while readers share it: see redlock_mode. */
#define REDLOCK_SHARED_VALUE "shared"
/* Value of redlock_request.wait_ms: no limit. */
#define REDLOCK_FOREVER UINT64_MAX

/*
 * How a lock whose key the nodes have passed on becomes the next request's.
 *
 * The nodes keep a key that they have passed on for a second at the most, or for ttl_ms if that is
 * less, until the lock is renewed. A request with a watchdog may have the lock at once, with what
 * is certain to be left of that second by the nodes' clocks, as the guards know them; the renewal
 * follows within a quarter of it. A callback that keeps the loop busy for longer than that second
 * loses such a lock. Otherwise, and where min_hold_ms or lock_delay_ms is to keep the key for
 * longer whatever happens, the lock is first renewed, and then told: one round trip later.
 */
typedef enum redlock_handover {
    REDLOCK_HANDOVER_PUSH,   /* at once; without a watchdog, with the guards off, or with ttl_ms
                                below 100, as CONFIRM */
    REDLOCK_HANDOVER_CONFIRM /* only when it has been renewed */
} redlock_handover;

/*
 * The checks that decide whether a node's votes count. A node is only as good as its memory: a node
 * that has forgotten a lock grants it again. Therefore a node's grants, renewals included, do not
 * count (its vote is REDLOCK_VOTE_UNTRUSTED) for max_ttl_ms after one of these events, and an
 * acquisition or renewal under way takes back what the node granted before:
 *
 *   - The server was restarted. ("Distributed Locks with Redis", section "Performance, crash
 *     recovery and fsync", asks the operator to delay restarts instead.) Detected by INFO on each
 *     new connection.
 *   - The memory was emptied, exchanged (SWAPDB), or restored from a snapshot. Detected by
 *     REDLOCK_MARKER_KEY, which is then missing, not the one that was known, or older. The very
 *     first client of all waits for max_ttl_ms too: an emptied memory looks like a new one.
 *   - The server's clock moved against the client's by more than `drift` allows.
 *   - The server was a replica, be it for a moment, and of a replica of its own. Detected by the
 *     marker, if it is that of another server, and by the replication id, which changes then. (A
 *     first replica that connects to a master changes it too. This costs the trust only of clients
 *     that had not looked for three seconds.)
 *
 * The client checks a node before the first vote on each connection, and once a second. Each of
 * these events but a restart can stay undetected for one second; on a slow connection for two
 * seconds and node_timeout_ms at the most. Not detected are
 *
 *   - the eviction or deletion of a single key (the log warns of a maxmemory-policy that may evict
 *     keys);
 *   - a reload of a running server from a snapshot that is younger than the latest confirmation of
 *     its marker (DEBUG RELOAD NOSAVE within a second after a SAVE);
 *   - what is undone before any client looks: two exchanges of databases, a clock that jumps and
 *     comes back;
 *   - an exchange for a database to which the marker was copied (COPY);
 *   - that a server was a replica for a moment, if its repl-backlog-ttl is less than 3 s, and no
 *     client looks before that time is over;
 *   - by a new client, which has nothing to compare with: an earlier jump of a node's clock, and
 *     any of these events that no running client has noticed that knew the node before, if the
 *     memory that came has a marker of the same run.
 *
 * Where the node forbids INFO in scripts, replication ids are not compared.
 *
 * "?durable=yes" in a node's URI waives the first two checks: the node's operator promises that the
 * server loses nothing (appendfsync always) and is not made a replica for a moment. Whatever the
 * guards, a replica's votes do not count (a master that is made a writable replica is noticed
 * within a second, unless the node forbids INFO), and a server listed as two nodes is counted
 * once.
 *
 * So a lock lives through the restart of one node of three, and of all of them one after the other,
 * each max_ttl_ms after the one before. It is lost if a quorum is not left meanwhile.
 *
 * All clients of a key must agree on max_ttl_ms, and have their guards on.
 */
typedef enum redlock_guards {
    REDLOCK_GUARDS_ON, /* a node that does not permit INFO, TIME or the marker is not trusted */
    REDLOCK_GUARDS_LENIENT, /* a check that the node forbids its user counts as passed */
    REDLOCK_GUARDS_OFF      /* none: the operator takes care, as the Redlock article asks */
} redlock_guards;

/* A field of an event: a text, or a number where `text` is NULL. */
typedef struct redlock_event_field {
    const char *name; /* such as "round" */
    const char *text; /* NULL: the field is a number */
    uint64_t number;  /* durations in nanoseconds; flags 0 or 1 */
} redlock_event_field;

/*
 * An event in the life of a client, for a trace: one of those that lib/doc/tracing.md lists. All
 * texts are valid during the call of the hook only.
 */
typedef struct redlock_event {
    const redlock_client *client; /* to tell clients apart */
    const char *name;             /* such as "vote_cast" */
    uint64_t time_ns;             /* CLOCK_BOOTTIME, in nanoseconds */
    uint64_t request; /* number of the request that the event is of, in the order in which the
                         client has accepted them, from 1, and behind 2^32 - 1 from 1 again;
                         0: of none */
    const char *node; /* the node that the event is of; "" */
    const redlock_event_field *fields; /* as lib/doc/tracing.md lists them */
    size_t field_count;                /* number of fields */
} redlock_event;

/*
 * Takes one event. The hook is called on the loop's thread, also from inside the library's
 * functions: it must not call any of them.
 */
typedef void redlock_trace_cb(const redlock_event *event, void *arg);

/* Options of a client. Initialise with REDLOCK_OPTIONS_INIT, then set `nodes` and `node_count`. */
typedef struct redlock_options {
    size_t size; /* sizeof(redlock_options): set by the macro */

    /*
     * URIs of the independent masters. 5 is usual, and odd numbers are best, because the quorum is
     * node_count / 2 + 1. Each URI is
     *     redis://[user[:password]@]host[:port][/db]     or     unix:///path[?db=n]
     * with %XX escapes, and IPv6 addresses in brackets. "redis://:password@host" is the password of
     * the default user; a socket may have a login too, unix://user:password@/path. Port 6379 and
     * db 0 unless given. ?durable=yes: see redlock_guards. Two URIs with the same host, port and db
     * (or the same socket and db) are refused; a server that has two addresses in the list is
     * counted once (redlock_guards). Names are looked up without blocking the loop. rediss:// is
     * redis:// over TLS; a build of the library without TLS refuses such a node with a message that
     * names the missing parts.
     */
    const char *const *nodes;
    size_t node_count; /* 1 to REDLOCK_MAX_NODES */

    /*
     * Time that a round waits for votes after it was written; 50. A renewal by the watchdog waits
     * for half of the validity that is left instead.
     */
    uint64_t node_timeout_ms;
    /*
     * Time of silence after which a node that owes an answer is disconnected, and connected again;
     * 1000. Lower bound: see redlock_request.wait_replicas. Also the time after which an unanswered
     * lookup of a name is begun anew; each further one in a row may take twice as long, up to 5 s.
     */
    uint64_t stall_timeout_ms;
    uint64_t max_ttl_ms; /* longest TTL that a request may ask for; 30000 */
    double drift;        /* allowance for clock rates, share of the TTL, 0 to 0.5; 0.01 */

    /*
     * Bounds of the random delay before a retry: retry_delay_ms before the first one, doubled with
     * each retry, up to retry_delay_max_ms. If retry_delay_max_ms is much larger than
     * retry_delay_ms, clients that were served a moment ago are served again, and others may
     * starve.
     */
    uint64_t retry_delay_ms;         /* 200 */
    uint64_t retry_delay_max_ms;     /* at least retry_delay_ms; 200 */
    uint64_t reconnect_delay_ms;     /* likewise, before connecting to a node again; 50 */
    uint64_t reconnect_delay_max_ms; /* at least reconnect_delay_ms; 2000 */

    /*
     * Bounds per node. A command beyond them is not sent, and the node's vote is UNREACHABLE.
     * Commands that take or inspect locks may fill three quarters of the room: the rest is reserved
     * for renewals and releases. Each command that waits for its answer takes 1.5 to 1.7 KB of this
     * process (with keys of 16 bytes): with the default of max_commands a silent node costs up to
     * 110 MB, until stall_timeout_ms has passed.
     */
    uint32_t max_commands; /* commands sent and not answered; 65536 */
    size_t max_bytes;      /* their bytes, and those of releases to be sent later; 16 MiB */

    const char *name; /* client name that the servers list; "redlock"; NULL: none */

    redlock_log_cb *log;         /* NULL: no log */
    void *log_arg;               /* argument of the hook */
    redlock_log_level log_level; /* lowest level that is logged; REDLOCK_LOG_INFO */

    const redlock_allocator *allocator; /* NULL: malloc, realloc and free */

    redlock_guards guards; /* REDLOCK_GUARDS_ON */

    /*
     * TLS, for nodes at rediss://. The server's certificate must be signed by a trusted authority,
     * and its subjectAltName must name the host or address of the URI; TLS 1.2 is the oldest
     * version accepted. No command, and no password, is sent before the certificate has been
     * checked. The files are in PEM form. redlock_client_create reads them once, and refuses a file
     * that it cannot use, and an encrypted key.
     */
    const char *tls_ca_file;   /* trusted authorities; NULL, both: those of the system */
    const char *tls_ca_path;   /* folder of trusted authorities, prepared by `openssl rehash` */
    const char *tls_cert_file; /* certificate of this client, and its chain; NULL: none */
    const char *tls_key_file;  /* key of that certificate; NULL: the key is in tls_cert_file too */

    /*
     * Time for which the nodes keep the counter of a fenced lock that is not used; 0: for ever. The
     * default is 7 days, or max_ttl_ms where that is longer; any other value below max_ttl_ms is
     * refused. A counter that has expired begins anew at the time in microseconds, by the nodes'
     * clocks, as far as the client knows them by its guards, or else by the client's own: this is
     * above its past values, if these were not ahead of the time by more than fence_idle_ms. A
     * client whose own clock is ahead can put counters ahead until it knows the nodes' clocks, or
     * always with guards off, by a day at most; a node that lies by three days at most. So keep at
     * least three days.
     *
     * A counter takes some 130 bytes at each node, in addition to its key's name, from the first
     * acquisition on: a thousand new keys a second, of jobs for instance, come to 80 GB in 7 days.
     * For keys that are used once, choose a shorter time, or a fence of a key that stays, such as
     * that of the jobs' queue, or none.
     */
    uint64_t fence_idle_ms;

    /*
     * Name of the application, at most 64 printable ASCII characters without spaces; NULL: none.
     * The name stands in the value of each key that the client holds (for a reader: in the list of
     * readers), behind the random token and a '/'. Operators see it there, and redlock_inspect
     * tells it.
     */
    const char *owner;

    /*
     * Time for which a closing client goes on sending releases, and waits for nodes to confirm
     * them; see redlock_client_close. 5000.
     */
    uint64_t close_timeout_ms;

    /*
     * How a lock is handed over to a request that waits in line (redlock_request.wait_ms), and how
     * many requests of this client may be handed one lock in a row, inside the client, before the
     * nodes pass it on to the next client; 0: none. REDLOCK_HANDOVER_PUSH, 64.
     */
    redlock_handover handover;
    uint32_t max_local_handoffs; /* 0: none */

    /*
     * Hook that is called for each event, some thirty for one acquisition and release at five
     * nodes; NULL: none. For an investigation, not for always: see redlock_client_stats.
     */
    redlock_trace_cb *trace;
    void *trace_arg; /* argument of the hook */
} redlock_options;

/*
 * A value of REDLOCK_OPTIONS_INIT, labelled with its field. C99 and C++20 check the label; older
 * C++ assigns by position, so the values stand in the order of the fields.
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
            REDLOCK_OPTION(node_count, 0), REDLOCK_OPTION(node_timeout_ms, 50),                    \
            REDLOCK_OPTION(stall_timeout_ms, 1000), REDLOCK_OPTION(max_ttl_ms, 30000),             \
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
            REDLOCK_OPTION(trace_arg, NULL)                                                        \
    }

/*
 * Makes a client on `base` and begins to connect to its nodes. Requests may be made at once: they
 * wait for the connections. Where so many nodes have names that the others are no quorum, they also
 * wait until each name was looked up, and the server was found at one of its addresses or at none;
 * from node_timeout_ms on, only while no quorum is connected; and for wait_ms at the most, or
 * stall_timeout_ms without. Nodes that are not found by then are UNREACHABLE. (redlock_inspect and
 * redlock_check_fence do not wait for lookups.)
 *
 * `base` must outlive the client. `error` may be NULL; otherwise, on failure, it receives the
 * status and a sentence that names the option at fault (a node's URI is named by its index; its
 * password is never repeated).
 *
 * Returns
 *   REDLOCK_OK       *client is the caller's until redlock_client_close
 *   REDLOCK_EINVAL   an option is not valid, or names a file that cannot be used; *client is NULL
 *   REDLOCK_ENOMEM   *client is NULL
 *   REDLOCK_ESYSTEM  libsodium or the loop refused a service; *client is NULL
 */
REDLOCK_EXPORT redlock_status redlock_client_create(struct event_base *base,
                                                    const redlock_options *options,
                                                    redlock_client **client, redlock_error *error);

/*
 * Tells that a client is closed: no callback and no line of the log follows. Called once, from the
 * loop. The client and its lock handles are valid until the callback returns, and freed then; in
 * the callback each call that begins or ends something is refused with REDLOCK_ECLOSED. What the
 * allocator's functions need must outlive the callback.
 */
typedef void redlock_closed_cb(void *arg);

/*
 * Closes the client. All of this happens from the loop, some hundred locks in each iteration:
 *
 *   1. A pending acquisition or extension ends with REDLOCK_ECLOSED. The holder of a lock is told
 *      by on_lost, with REDLOCK_ECLOSED, and then the lock is released. Releases under way end with
 *      their own result, within node_timeout_ms. A lock that the application releases or cancels
 *      first ends as without the close.
 *   2. The client waits until the nodes that answer have been sent all releases, and have confirmed
 *      them; until close_timeout_ms after this call at the latest.
 *   3. `on_closed` (may be NULL) is called, and everything is freed.
 *
 * From this call on, every call that begins something is refused with REDLOCK_ECLOSED, and the
 * validity of locks is 0. Lock handles are valid until `on_closed` has returned; redlock_release
 * and redlock_cancel are accepted until it is called, for a lock that the close has released, too.
 * The loop must run until `on_closed`. A second close is ignored, and so is NULL.
 */
REDLOCK_EXPORT void redlock_client_close(redlock_client *client, redlock_closed_cb *on_closed,
                                         void *arg);

/*
 * Tells that a client is closed, as redlock_closed_cb does, and whether keys are left. `unreleased`
 * counts the releases that were not confirmed, one for each node and lock: by nodes that were down,
 * refused, or did not answer within close_timeout_ms, or for which more releases were to be
 * remembered than max_bytes allows, or 65,536. At those nodes the keys may stay until their TTL
 * ends. 0: no key is left.
 */
typedef void redlock_drained_cb(uint64_t unreleased, void *arg);

/* Closes the client as redlock_client_close does. `on_drained` (may be NULL) tells what is left. */
REDLOCK_EXPORT void redlock_client_drain(redlock_client *client, redlock_drained_cb *on_drained,
                                         void *arg);

/*
 * Returns why the last refused call on this client, or on one of its locks, was refused: a sentence
 * that names the argument at fault. Valid until the next refused call. Never NULL; "" before any
 * refusal.
 */
REDLOCK_EXPORT const char *redlock_client_error(const redlock_client *client);

/*
 * State of one node, as the client knows it now. The node's name is alike in logs, traces, reports,
 * views and statistics: its URI without scheme, login and durability, "127.0.0.1:6379",
 * "127.0.0.1:6379/2" with a database other than 0, "/path", "/path?db=2". Two nodes of a client
 * have two names. A name has printable ASCII only: other bytes of a path, and spaces, quotes and
 * '\', '%', '?', '#', '@', stand as %XX.
 */
typedef struct redlock_node_info {
    const char *node;      /* the name: valid until the node has left, and the loop runs again */
    bool connected;        /* whether commands are sent to the node */
    const char *reason;    /* cause when not connected, or ""; valid until the loop runs again */
    uint32_t commands;     /* number of commands sent and not answered yet */
    size_t bytes;          /* bytes of those commands */
    size_t release_debts;  /* number of releases still to be sent to the node */
    uint64_t disconnected; /* number of connections that failed or ended so far */
    bool trusted;          /* whether the node's grants count: see redlock_guards */
    const char *distrust;  /* cause when not trusted, or ""; valid until the loop runs again */
    uint64_t distrust_ms;  /* time until trusted again; 0: until something else changes */
    bool joining;          /* in the next list only: see redlock_client_change_nodes */
    bool leaving;          /* not in the next list */
} redlock_node_info;

/*
 * Fills in up to `capacity` entries of `infos`: the nodes in the order of the options, then the
 * nodes that are joining. For health pages and tests. `infos` may be NULL when `capacity` is 0.
 *
 * Returns the number of nodes, which may be more than `capacity`.
 */
REDLOCK_EXPORT size_t redlock_client_nodes(const redlock_client *client, redlock_node_info *infos,
                                           size_t capacity);

/*
 * Takes the result of redlock_client_ready. Statuses:
 *   REDLOCK_OK         a quorum of the nodes is connected and trusted
 *   REDLOCK_ENOQUORUM  there was no quorum within timeout_ms
 *   REDLOCK_EACCESS    so many nodes refuse the client's login, its database or a right that the
 *                      others are no quorum: returned at once
 *   REDLOCK_ECLOSED
 * For the causes see redlock_client_nodes.
 */
typedef void redlock_ready_cb(redlock_status status, void *arg);

/*
 * Calls `on_ready` (required) from the loop, once, as soon as an acquisition can succeed: a quorum
 * of the nodes, of both lists during a change, is connected, and its grants count (redlock_guards).
 * Rights to commands and keys show only when a request needs them; `redlock doctor` checks them
 * all. For programs that serve only then, or that report why they cannot. No request has to wait
 * for this call.
 *
 * `timeout_ms` bounds the time until then. 0: reports the current state in the loop's next
 * iteration; REDLOCK_FOREVER: no limit. New masters grant nothing for max_ttl_ms, so wait for
 * longer than that where masters may be new.
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EINVAL, REDLOCK_ENOMEM, REDLOCK_ECLOSED, or
 * REDLOCK_EBUSY while 1024 such calls wait (redlock_client_error says why).
 */
REDLOCK_EXPORT redlock_status redlock_client_ready(redlock_client *client, uint64_t timeout_ms,
                                                   redlock_ready_cb *on_ready, void *arg);

/*
 * Begins to change the list of nodes while locks are in use: to replace a master for good, or to
 * have more or fewer masters.
 *
 * Quorums of two lists need not meet (of 1 to 5 and of 2 to 6: 1, 2, 3 and 4, 5, 6), so no client
 * may go from one list to the other in one step. In between, the client is joint: it needs a quorum
 * of both lists ("In Search of an Understandable Consensus Algorithm", section 6). Two clients that
 * are one step apart exclude each other. So, for all clients of the same keys:
 *
 *   1. Call redlock_client_change_nodes on each client. (A client that starts meanwhile is made
 *      with the old list, and becomes joint at once.)
 *   2. When all clients are joint, wait for one max_ttl_ms: locks acquired before, at the old nodes
 *      alone, have ended by then, or were renewed at both lists.
 *   3. Call redlock_client_commit_nodes on each client. Begin the next change when all clients have
 *      committed.
 *
 * From step 1 on, commands are sent to the nodes of both lists. Held locks are given at once to the
 * nodes that join, and are renewed by a quorum of both lists; the outcome of a release is decided
 * by the old list. A server in both lists must be written alike in both, and keeps its connection.
 * Nodes that join have to be trusted before they grant anything (redlock_guards): where a majority
 * of the next list is new, the new nodes should be up, and known to some client, one max_ttl_ms
 * before. Where a majority of the old list leaves, a lock that is held at the commit keeps its key
 * there for the rest of its TTL: so long clients that are still joint wait for it, also when it is
 * released.
 *
 * `nodes` are `node_count` URIs, as in redlock_options. redlock_client_nodes tells which nodes are
 * joining and leaving.
 *
 * Returns
 *   REDLOCK_OK       the client is joint
 *   REDLOCK_EINVAL   a URI is not valid, or names the server of an earlier one (both named by their
 *                    index), or both lists together have more than REDLOCK_MAX_NODES nodes
 *   REDLOCK_EBUSY    the nodes are being changed already
 *   REDLOCK_ENOMEM, REDLOCK_ECLOSED
 * After a refusal nothing has changed, and redlock_client_error says why.
 */
REDLOCK_EXPORT redlock_status redlock_client_change_nodes(redlock_client *client,
                                                          const char *const *nodes,
                                                          size_t node_count);

/*
 * Ends a change of nodes: the next list takes the place of the old one, and the nodes that are in
 * the old list alone are disconnected. See redlock_client_change_nodes.
 *
 * Returns
 *   REDLOCK_OK       the next list is in force
 *   REDLOCK_EINVAL   the nodes are not being changed
 *   REDLOCK_EBUSY    less than max_ttl_ms has passed since redlock_client_change_nodes
 *   REDLOCK_ECLOSED
 * After a refusal nothing has changed, and redlock_client_error says why.
 */
REDLOCK_EXPORT redlock_status redlock_client_commit_nodes(redlock_client *client);

/*
 * Ends a change of nodes by going back to the old list: safe as long as no client has committed.
 *
 * Returns REDLOCK_OK; REDLOCK_EINVAL when the nodes are not being changed; or REDLOCK_ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_client_abandon_nodes(redlock_client *client);

/* ---------------------------------------------------------------------------------------- locks */

/*
 * Tells how a request ended, or (redlock_request.on_lost) that a held lock is lost. `lock` is the
 * handle of the request, and `arg` the argument that was passed with the callback.
 *
 * Called from the loop, after the call that made the request has returned. When the handle ends
 * with this callback (a failed acquisition, a release), redlock_explain, redlock_report and
 * redlock_key may still be called on `lock` until the callback returns.
 */
typedef void redlock_cb(redlock_lock *lock, redlock_status status, void *arg);

/*
 * The way a key is held: by one holder alone, or shared by readers.
 *
 * Readers share a key with each other only. All of them together hold it with the value
 * REDLOCK_SHARED_VALUE. Each node lists them in the sorted set "<key>::readers", with the time at
 * which each reader's share expires; the key expires with the last of them. Other clients, also
 * those of another make, find a key that is taken.
 *
 * A writer holds the key alone.
 *
 * Readers and writers that stand in line (redlock_request.wait_ms) have one queue, together with
 * exclusive requests for the key, and its order is theirs: readers that follow each other in the
 * queue get the key together, a writer alone. While anybody stands in line, readers that do not
 * stand in line are not admitted beside other readers. So a writer that waits for a reader that
 * stays keeps other readers out until wait_ms is over.
 *
 * A writer that does not stand in line, and has more tries to come (retries, or a node without
 * queues), leaves a note at each node where it finds readers, "<key>::writer". While the note is
 * there, the node admits no reader that it does not list already, and the writer gets the key when
 * the listed readers have gone. The note expires soon after the writer's next try was due (within
 * retry_delay_max_ms and two node_timeout_ms), and within one ttl_ms: readers wait no longer than
 * this for a writer that has given up. Such writers do not wait for each other in any order, and
 * after one writer readers and writers compete evenly.
 *
 * Readers and writers have one key, neither `keys` nor `permits`; readers have no `min_hold_ms`.
 */
typedef enum redlock_mode {
    REDLOCK_EXCLUSIVE, /* one holder; without a place in line, readers may keep it out for ever */
    REDLOCK_READER,    /* many holders; not `fenced`: a fence is for a key held alone */
    REDLOCK_WRITER     /* one holder; readers make room for it */
} redlock_mode;

/* One acquisition. Initialise with REDLOCK_REQUEST_INIT, then set at least `key`. */
typedef struct redlock_request {
    size_t size; /* sizeof(redlock_request): set by the macro */

    /*
     * Name of the resource, any bytes; the Redis key. Refused, because the library uses them:
     * REDLOCK_MARKER_KEY, "redlock:waiting", and names that end in "::fence", "::readers",
     * "::writer", "::queue" or "::permits".
     */
    const char *key;
    size_t key_length; /* bytes, 1 to REDLOCK_MAX_KEY; 0: `key` is a C string */

    uint64_t ttl_ms; /* time for which the nodes keep the key unless renewed; 10000 */

    /*
     * Bounds on the waiting for a key that others hold. `wait_ms` bounds the time from the call to
     * the last try (REDLOCK_FOREVER: no limit), `retries` the number of tries after the first. A
     * bound that is 0 does not count; if both are 0, there is one try.
     *
     * With `retries`, tries follow each other after random delays: see
     * redlock_options.retry_delay_ms. With `wait_ms` alone the request stands in line: each node
     * keeps a queue of those who wait for the key, in the order of their calls, and a release gives
     * the key to the first of them and tells it so. Nobody who came later is served before, unless
     * a holder let the key expire, or the client that has the lock hands it to its own requests
     * first, those that were waiting when it acquired the lock (max_local_handoffs). A request
     * whose process has died is passed over; one that was given the key and hangs keeps it for a
     * second at the most. A process that hangs in line keeps out readers, who could share the key
     * with others, for up to 5 s, and each further one for about 1 s more. Where a node or its
     * ACL does not permit the queue (lib/doc/operating.md, Rights) the request polls it instead.
     *
     * A request for several keys stands in line for the first of them that somebody has, and for
     * the next one when that comes free; it gets all of them at once, and has none before. So that
     * such a request gets in between many that want one of its keys each, a key that comes free is
     * kept for it, for 1/32 of the time that it has waited, 1 s at the most.
     *
     * Polled, and not queued, are also: wait_replicas, and keys longer than 4096 bytes (of several
     * keys: all together, with six bytes more for each). A client of another make, or a request
     * without wait_ms, may find the key free in between, and take it: one release in 128 leaves the
     * key to anybody, for 1 to 100 ms, however many stand in line.
     */
    uint64_t wait_ms;
    uint32_t retries; /* tries after the first */

    /* Validity that an acquisition, renewal or extension must exceed: otherwise it has failed. */
    uint64_t min_validity_ms;

    /*
     * Whether to renew the lock every third of its TTL until it is released or lost. The first
     * renewal comes at a random instant within the first third, so that locks that were acquired
     * together are not renewed together. A renewal that fails is tried again after nearly half of
     * the time that is left, and at once when a node comes up.
     */
    bool watchdog;
    /*
     * Time after the acquisition within which renewals may begin; 0: no limit. Only with watchdog.
     * A program that hangs with its loop still running holds the key no longer than max_hold_ms +
     * ttl_ms.
     */
    uint64_t max_hold_ms;

    /*
     * Callback for the loss of the lock; may be NULL. Called once, from the loop, when the lock is
     * lost while held; at the latest when its validity ends, unless the loop is kept busy elsewhere
     * (only fencing protects against that).
     *   REDLOCK_ELOST     so many nodes said that the key is gone, or is another's, that no quorum
     *                     is left
     *   REDLOCK_EEXPIRED  the validity ended, and no renewal had succeeded
     *   REDLOCK_ECLOSED   the client is closing, and releases the lock next
     * After REDLOCK_ELOST and REDLOCK_EEXPIRED the handle remains the application's to release;
     * after REDLOCK_ECLOSED it may be released, and ends with the client if it is not. Never called
     * after redlock_release.
     */
    redlock_cb *on_lost;
    void *on_lost_arg; /* argument of the callback */

    /*
     * Whether to give the lock a fence: a number larger than that of every acquisition of the key,
     * by any client, that was completed before this acquisition began, whatever became of the
     * validity of the earlier one. A resource that refuses numbers smaller than the largest it has
     * seen is safe from holders that do not know yet that they have lost the lock (Kleppmann, "How
     * to do distributed locking", 2016). A fence takes one round trip when the counters of a quorum
     * agree, as they do unless acquisitions overlap or nodes were away; otherwise two, and seldom
     * more. All clients of a key must ask for a fence.
     */
    bool fenced;

    /*
     * Keys of a lock of several keys, all different, instead of `key`. Each node takes all of them
     * or none, so that requests for keys that overlap, in whatever order, never wait for each other
     * with half of their keys. To other clients each of them is a key like any other. The lock is
     * lost when so many nodes lack any of the keys that no quorum has all of them. The lock has one
     * fence, larger than all earlier fences of all its keys.
     */
    const char *const *keys;
    const size_t *key_lengths; /* bytes; NULL, or 0 for a key: the key is a C string */
    size_t key_count;          /* 1 to REDLOCK_MAX_KEYS; 0 with `key` */

    /*
     * Time for which the key stays taken at least, also where it is released earlier; counted, like
     * the validity, from before the try that acquired it. At most ttl_ms; 0: the release frees the
     * key. For work that no client may do again too soon (a job that many machines would start). A
     * key that stays has a value without a holder: zeros in place of the token, and the owner.
     */
    uint64_t min_hold_ms;

    /*
     * Time for which the nodes keep the key after the validity has ended; 0: no longer. Only a
     * holder that vanished delays the next one, so that the commands it had sent have time to
     * arrive; a release frees the key at once. (The lock-delay of "The Chubby lock service",
     * section 2.4: for resources that cannot check a fence.) The sum of ttl_ms and lock_delay_ms is
     * at most max_ttl_ms.
     */
    uint64_t lock_delay_ms;

    /*
     * Number of replicas, for masters with replicas, that must confirm a node's grant or renewal
     * (WAIT) within half of node_timeout_ms; otherwise the node's vote is UNTRUSTED. 0: none. A
     * replica that is promoted is then likely to have the key, which makes failover less dangerous,
     * but not safe: any replica may be promoted. The price is a round trip to the replicas, during
     * which the node's other commands of this client wait too. For such a silence a node must not
     * be dropped: a request to a client whose stall_timeout_ms is less than its node_timeout_ms
     * (twice the time of a WAIT) is refused with REDLOCK_EINVAL.
     */
    uint32_t wait_replicas;

    /*
     * Number of permits, up to REDLOCK_MAX_PERMITS, if the key is that of a semaphore; 0: the key
     * is that of a lock. So many clients may hold the semaphore at once. Its permits are the locks
     * of the keys "<key>:0", "<key>:1" and so on. The request takes any permit that is free, and
     * the handle is then that of this permit's lock: redlock_key tells which, and the lock is
     * renewed, extended, released and inspected like any other. The fence of a permit is larger
     * than those of the earlier holders of the same permit.
     *
     * A try asks for one permit. Nodes that cannot grant it tell which permits are free, and one of
     * those is tried at once: this uses up no retry, but after four such tries in a row there is a
     * pause as before any retry. Requests with `wait_ms` alone stand in one line for all permits of
     * the semaphore. A release tells the first of them which permit has come free, and reserves one
     * for it; the request then asks for it, which is a round trip more than a lock takes that is
     * handed over. The status REDLOCK_EHELD means that all permits are taken, as far
     * as the last try was told; redlock_explain says who has the permit that was tried last.
     *
     * All clients of a key must agree on the number: where they do not, the largest number rules.
     * The lock of `key` itself is separate from the permits. The length of `key` is at most
     * four bytes less than REDLOCK_MAX_KEY.
     */
    uint32_t permits;

    redlock_mode mode; /* way the key is held; REDLOCK_EXCLUSIVE */

    /*
     * Whether the nodes watch the key while it is held (client tracking, Redis 6.0), and tell at
     * once when anybody deletes, replaces or expires it, which else the next renewal finds out.
     * Then the lock is renewed early: nodes that lack the key get it again while a quorum has it;
     * otherwise `on_lost` comes at once. Needs the watchdog; not for readers. The price is two
     * short commands to each node behind the acquisition and behind each renewal. Keys longer than
     * 4096 bytes are not watched. A node that does not permit this (lib/doc/operating.md, Rights)
     * tells nothing, and is named once in the log.
     */
    bool watch_key;
} redlock_request;

/* The defaults of redlock_request. */
#define REDLOCK_REQUEST_INIT                                                                       \
    {                                                                                              \
        sizeof(redlock_request), NULL, 0, 10000, 0, 0, 0, false, 0, NULL, NULL, false, NULL, NULL, \
            0, 0, 0, 0, 0, REDLOCK_EXCLUSIVE, false                                                \
    }

/*
 * Asks all nodes at once for the key, with a fresh random token for each try (Redlock steps 1 to
 * 5). The key is acquired when a quorum has granted it and, by a fresh reading of the clock, more
 * than min_validity_ms of validity is left. After a failed try the key is released at once on every
 * node that may have it.
 *
 * `lock` may be NULL; otherwise *lock is set before the call returns, for redlock_cancel.
 *
 * `on_acquired` (required) is called with
 *   REDLOCK_OK         the lock is held; the handle is the application's until redlock_release
 *   REDLOCK_EHELD      others hold the key; the nodes that failed, or were too late, could not
 *                      alone have prevented a quorum
 *   REDLOCK_ENOQUORUM  those nodes could: too few answered in time, or too many refused
 *   REDLOCK_EACCESS    so many nodes refuse the client that no quorum is left: its login (wrong,
 *                      missing, or not wanted), its database, or a right of its user
 *   REDLOCK_EEXPIRED   a quorum granted the key, but too slowly: no validity was left
 *   REDLOCK_ECANCELED, REDLOCK_ECLOSED, REDLOCK_ENOMEM
 * Unless the status is REDLOCK_OK, the handle ends with the callback. redlock_explain tells why.
 *
 * REDLOCK_EACCESS ends the request at once, whatever is left of wait_ms and retries: an operator
 * has to mend the nodes' URIs or users. While a password is changed node by node, a minority that
 * refuses it is borne as nodes that are down.
 *
 * With wait_ms, the last try begins within wait_ms of the call, and the callback comes at the
 * latest two node_timeout_ms later: one for the try, one to learn which nodes denied it and why.
 * For a fenced lock, one more node_timeout_ms is added each time that counters are raised.
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EINVAL (redlock_client_error names the field),
 * REDLOCK_ENOMEM or REDLOCK_ECLOSED; then *lock is NULL.
 */
REDLOCK_EXPORT redlock_status redlock_acquire(redlock_client *client,
                                              const redlock_request *request,
                                              redlock_cb *on_acquired, void *arg,
                                              redlock_lock **lock);

/*
 * Cancels an acquisition: `on_acquired` follows with REDLOCK_ECANCELED, and the nodes that may have
 * granted the key are sent a release.
 *
 * Returns REDLOCK_OK, also while the client closes; REDLOCK_EINVAL when the lock is not being
 * acquired any more; or REDLOCK_ECLOSED when the client is closed (inside on_closed).
 */
REDLOCK_EXPORT redlock_status redlock_cancel(redlock_lock *lock);

/*
 * Extends a held lock: its key is to live `ttl_ms` from now on every node that still has the lock's
 * token. 0: the TTL of the request, or of the last extension that succeeded.
 *
 * An extension needs a quorum of nodes with the token, and never creates a key. It never shortens
 * the lock: where more than ttl_ms is left, the longer time stays. Once the extension has
 * succeeded, the watchdog, if on, renews with ttl_ms.
 *
 * `on_extended` (may be NULL) is called with
 *   REDLOCK_OK         validity counts from this call
 *   REDLOCK_ELOST      no quorum has the key any more; on_lost follows
 *   REDLOCK_ENOQUORUM  not enough nodes answered within node_timeout_ms; the lock keeps the
 *                      validity it had, or gains some when the answers come later
 *   REDLOCK_EEXPIRED   granted, but too slowly
 *   REDLOCK_ENOMEM     the extension could not be sent; the lock keeps the validity it had
 *   REDLOCK_ECANCELED  the lock was released meanwhile
 *   REDLOCK_ECLOSED
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EBUSY while another extension is under way,
 * REDLOCK_ELOST when the lock is lost, REDLOCK_EINVAL when the lock is not held or ttl_ms is out of
 * bounds, or REDLOCK_ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_extend(redlock_lock *lock, uint64_t ttl_ms,
                                             redlock_cb *on_extended, void *arg);

/*
 * Releases a lock, held or lost, on all nodes, and consumes the handle: it must not be used after
 * this call, except inside `on_released`. A renewal under way is overtaken; an extension under way
 * ends with REDLOCK_ECANCELED. A node that cannot be reached is sent the release when it comes
 * back, for one TTL.
 *
 * `on_released` (may be NULL) is called with
 *   REDLOCK_OK         a quorum still had the lock's token: the lock was held to the end
 *   REDLOCK_ELOST      so many nodes had lost the key that no quorum had it: another client may
 *                      have held the lock at the same time
 *   REDLOCK_ENOQUORUM  not enough nodes answered within node_timeout_ms to tell
 *   REDLOCK_ENOMEM     the release could not be sent: the key is free when its TTL is over
 *
 * A lock may be released while the client closes, too, before or after its on_lost is called with
 * REDLOCK_ECLOSED: `on_released` tells the result of the one release that the nodes are sent.
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EINVAL while the lock is being acquired (use
 * redlock_cancel), or with REDLOCK_ECLOSED when the client is closed (inside on_closed).
 */
REDLOCK_EXPORT redlock_status redlock_release(redlock_lock *lock, redlock_cb *on_released,
                                              void *arg);

/*
 * Returns the time, in ms rounded down, for which the lock is still certain to be held, by a fresh
 * reading of the clock; 0 when it is not held. This is the TTL, less the time since the round that
 * granted it began, less drift, ttl * drift + 2 ms (Redlock step 3).
 */
REDLOCK_EXPORT uint64_t redlock_validity_ms(const redlock_lock *lock);

/*
 * Returns the fence of a fenced lock, above 0 and below 2^53, from its acquisition to the end of
 * the handle; 0 for any other lock. Write the fence with each change made under the lock.
 *
 * Each node keeps a counter beside the key, "<key>::fence", which outlives the lock. A grant sets
 * the counter to the larger of its successor and the time in microseconds. The fence is the
 * largest counter among the grants; before the acquisition is told, the counters of a quorum are
 * raised to it, where the key is still this lock's. (The maximum alone would not do: of counters 5,
 * 0, 0, 0, 0 nodes 1, 2 and 3 make 6, 1, 1, the fence 6; and then 3, 4 and 5 make 2, 1, 1.) A node
 * whose counter turns out to be larger does not count towards that quorum: another holder may have
 * had this fence there. Then all counters are raised to the larger one.
 *
 * Counters follow the clock: one that is more than three days ahead of the nodes' clocks (as the
 * guards know them, or without guards INFO, and never of clocks that only a minority shows; where
 * no node tells its clock: of the client's own) was ruined, or is a lie. That node's vote is
 * REDLOCK_VOTE_ERROR, its detail names the counter, and nobody is raised to it. Nor is anybody
 * raised to a counter that is more than two days ahead, as long as a quorum of the other nodes can
 * be had. The remedy is to delete the key of the counter at that node; where all are ahead, by a
 * clock that was years wrong, at all nodes, and to reset what the resource remembers. A client that
 * no node tells its clock, and whose own clock is days behind, gets no fenced lock of a key that
 * others have used.
 */
REDLOCK_EXPORT uint64_t redlock_fence(const redlock_lock *lock);

/*
 * Returns the lock's key, of several keys the first: *length bytes, any of which may be NUL;
 * `length` may be NULL. "" when `lock` is NULL. For a permit: the permit's own key, such as
 * "<key>:3"; while the permit is being acquired, the key that is tried, valid until the loop goes
 * on.
 */
REDLOCK_EXPORT const char *redlock_key(const redlock_lock *lock, size_t *length);

/*
 * Returns key number `index`, from 0, of a lock of several keys, in the order of the request, as
 * redlock_key does; NULL when the lock has fewer keys.
 */
REDLOCK_EXPORT const char *redlock_key_at(const redlock_lock *lock, size_t index, size_t *length);

/* ----------------------------------------------------------------------------- looking at locks */

/* One node's answer about a key. The texts are valid until the callback returns. */
typedef struct redlock_node_view {
    const char *node;      /* "127.0.0.1:6379" */
    bool answered;         /* whether the node answered, can be trusted, and has no ruined counter;
                              if not, see `detail` */
    bool held;             /* whether the key is there, with an expiry */
    const char *owner;     /* redlock_options.owner of the holder, printable; "" */
    uint64_t ttl_ms;       /* rest of the key's TTL */
    uint64_t fence;        /* counter of the key; 0: none */
    const char *detail;    /* why there is no answer, or why the key is no lock; "" */
    uint32_t readers;      /* number of readers that share the key; 0: free, or held alone */
    uint32_t queue_length; /* number of places in the key's queue; 0 also where the user may not
                              look at the queue */
} redlock_node_view;

/* The answers of all nodes, and the result. The texts are valid until the callback returns. */
typedef struct redlock_view {
    bool held;                      /* whether a quorum holds it for the same holder or readers */
    const char *owner;              /* redlock_options.owner of the holder; "" */
    uint64_t ttl_ms;                /* time for which a quorum still holds it */
    uint64_t fence;                 /* of the newest fenced acquisition that was told; 0: none */
    const redlock_node_view *nodes; /* in the order of redlock_client_nodes */
    size_t node_count;              /* number of nodes */
    uint32_t readers; /* number of readers that a quorum lists, when shared; `owner` is then "" */

    /*
     * Those who wait in line for the key (redlock_request.wait_ms), or for the permits of the
     * semaphore of this name, if nobody waits for the key. Requests of one client may have
     * one place together. Nodes may differ, because places are taken and left at one node after the
     * other. `queue_length` is the largest number of places that each node of a quorum has at
     * least: the median, if all nodes have answered. `queue_owners` are the redlock_options.owner
     * ("": none) of the places that a quorum has among its first eight, in the order in which they
     * will be served. No node's order counts more than another's: places are ordered by their
     * tickets, which are the same at all nodes. An owner with several places is told as often.
     * `status` does not tell whether more answers could change these fields.
     */
    uint32_t queue_length;
    const char *const *queue_owners; /* the first to be served in front */
    size_t queue_owner_count;        /* 0 to REDLOCK_MAX_QUEUE_OWNERS, and to `queue_length` */
} redlock_view;

/*
 * Tells the result of redlock_inspect. `view` is valid until the callback returns. Statuses:
 *   REDLOCK_OK         the nodes that did not answer could not change who holds the key
 *   REDLOCK_ENOQUORUM  the nodes that did not answer could change who holds the key
 *   REDLOCK_ECLOSED
 */
typedef void redlock_inspect_cb(redlock_status status, const redlock_view *view, void *arg);

/*
 * Asks all nodes who holds a key and who waits for it, and calls `on_view` (required) within
 * node_timeout_ms. For operators and tests: the answer may be out of date when it is told. No token
 * is told.
 *
 * `key` has `key_length` bytes; 0: `key` is a C string.
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EINVAL, REDLOCK_ENOMEM or REDLOCK_ECLOSED
 * (redlock_client_error says why).
 */
REDLOCK_EXPORT redlock_status redlock_inspect(redlock_client *client, const char *key,
                                              size_t key_length, redlock_inspect_cb *on_view,
                                              void *arg);

/*
 * Tells the result of redlock_check_fence. Statuses:
 *   REDLOCK_OK         no client had been told a larger fence of the key when the nodes answered
 *   REDLOCK_ELOST      a client was told a larger fence, or is about to be
 *   REDLOCK_ENOQUORUM  too few nodes answered to tell
 *   REDLOCK_ECLOSED
 */
typedef void redlock_fence_cb(redlock_status status, void *arg);

/*
 * Asks the nodes whether `fence` is still the newest fence of a key, and calls `on_fence`
 * (required) within node_timeout_ms. For a resource that is handed a fence and can ask, but cannot
 * keep a number; if it can, use redlock_gate. (As CheckSequencer in "The Chubby lock service for
 * loosely-coupled distributed systems", OSDI 2006, section 2.4.)
 *
 * A node whose counter is not a whole number from 0 to 2^53 - 1 counts as one that did not answer.
 * A counter that was deleted or has expired counts as 0: where a quorum of the others is not beyond
 * an old fence, that fence passes as the newest until the next fenced lock.
 *
 * `key` has `key_length` bytes; 0: `key` is a C string.
 *
 * Returns REDLOCK_OK, or refuses with REDLOCK_EINVAL, REDLOCK_ENOMEM or REDLOCK_ECLOSED
 * (redlock_client_error says why).
 */
REDLOCK_EXPORT redlock_status redlock_check_fence(redlock_client *client, const char *key,
                                                  size_t key_length, uint64_t fence,
                                                  redlock_fence_cb *on_fence, void *arg);

/*
 * The record that a resource keeps with each of its objects, in the same transaction, to refuse
 * holders that have lost the lock. Initialise with REDLOCK_GATE_INIT.
 */
typedef struct redlock_gate {
    uint64_t fence; /* largest fence seen so far */
} redlock_gate;

/* A gate that has seen no fence. */
#define REDLOCK_GATE_INIT                                                                          \
    { 0 }

/*
 * Returns whether to accept a request that carries `fence`: true if no larger fence was accepted
 * before; then `gate` remembers this one.
 */
static inline bool redlock_gate_admit(redlock_gate *gate, uint64_t fence) {
    if (fence < gate->fence) {
        return false;
    }
    gate->fence = fence;
    return true;
}

/* -------------------------------------------------------------------------------------- reports */

/* One node's answer in the last round of a lock. */
typedef enum redlock_vote {
    REDLOCK_VOTE_NONE,        /* no answer yet when the others had already decided */
    REDLOCK_VOTE_GRANTED,     /* done */
    REDLOCK_VOTE_DENIED,      /* the key is held by another; for a reader also: others wait */
    REDLOCK_VOTE_WRONG_TYPE,  /* the key exists but is no lock: it is not a string */
    REDLOCK_VOTE_NO_EXPIRY,   /* the key exists but is no lock: it never expires */
    REDLOCK_VOTE_MISSING,     /* the key was to be renewed or released, and was not there */
    REDLOCK_VOTE_ERROR,       /* the server refused the command, or the login sent before it:
                                 `detail` is the server's text, or says why */
    REDLOCK_VOTE_TIMEOUT,     /* no answer within node_timeout_ms */
    REDLOCK_VOTE_UNREACHABLE, /* nothing was sent: no connection, or over a bound; see `detail` */
    REDLOCK_VOTE_REFUSED,     /* nothing was sent: the server refuses the login or the database,
                                 and `detail` is the server's text */
    REDLOCK_VOTE_BROKEN,      /* the connection broke before the answer: outcome unknown */
    REDLOCK_VOTE_UNTRUSTED,   /* done, or perhaps done, but the vote does not count: see
                                 redlock_guards and redlock_request.wait_replicas */
    REDLOCK_VOTE_LATE         /* done, but the answer came when the round was over */
} redlock_vote;

/* One node's vote, and the reason for it. */
typedef struct redlock_node_report {
    const char *node;   /* "127.0.0.1:6379" */
    redlock_vote vote;  /* NONE, if the others had decided before */
    uint64_t ttl_ms;    /* DENIED: rest of the TTL of the other holder's key, or of the writer's
                           note; 0: not known.
                           UNTRUSTED: time until trusted again; 0: until something else changes */
    const char *detail; /* ERROR, UNREACHABLE, REFUSED, BROKEN, UNTRUSTED: the reason in words;
                           "" */
} redlock_node_report;

/*
 * Fills in up to `capacity` entries of `reports`: the votes of the lock's last round, in the order
 * of redlock_client_nodes. The texts are valid until the callback ends from which this function is
 * called; outside of a callback, until the current turn of the loop ends.
 *
 * Returns the number of nodes, which may be more than `capacity`; 0 when `lock` is NULL.
 */
REDLOCK_EXPORT size_t redlock_report(const redlock_lock *lock, redlock_node_report *reports,
                                     size_t capacity);

/*
 * Returns one sentence for a log or an operator: what became of the lock or request, and then the
 * report of its last round, such as "not acquired: no retry is left after 3 tries in 412 ms, 3 of 5
 * nodes are needed; 1 granted (10.0.0.1:6379); 2 held by another, for 7310 ms more at most
 * (10.0.0.2:6379, 10.0.0.3:6379); 2 unreachable: Connection refused (10.0.0.4:6379, ...)". What
 * ended a request may be "canceled", "the client was closed", "wait_ms is over" and others. Valid
 * until the next call of redlock_explain on the same client. Never NULL.
 */
REDLOCK_EXPORT const char *redlock_explain(const redlock_lock *lock);

/* ----------------------------------------------------------------------------------- statistics */

/* Number of buckets of a histogram. */
#define REDLOCK_HISTOGRAM_BUCKETS 256

/*
 * Durations, counted in log-linear buckets: eight from each power of two of nanoseconds to the
 * next, from 1024 ns on. Bucket i counts the durations above the bound of bucket i - 1, and up to
 * its own (redlock_histogram_bound_ns); shorter ones than 1024 ns count in the first, and longer
 * ones than 2^42 ns (73 minutes) in the last. So a quantile is known to an eighth. Histograms of
 * several clients, or times, may be added up (redlock_histogram_merge), and the fields of an
 * earlier copy subtracted.
 */
typedef struct redlock_histogram {
    uint64_t count;                              /* number of durations: the sum of all buckets */
    uint64_t sum_ns;                             /* sum of the durations, in nanoseconds */
    uint64_t buckets[REDLOCK_HISTOGRAM_BUCKETS]; /* number of durations in each */
} redlock_histogram;

/*
 * Returns the longest duration, in nanoseconds, that bucket `bucket` counts; UINT64_MAX for the
 * last one, and beyond.
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
 * Counters of a client since its creation, but for those called "now". Set `size` to
 * sizeof(redlock_stats) before the call of redlock_client_stats.
 *
 * A request counts as accepted when redlock_acquire returns, and has its outcome just before its
 * `on_acquired` is called. Between callbacks, and inside of them, each accepted request is in
 * exactly one of the fields from `pending` to `closed`, so that these add up to `accepted`.
 */
typedef struct redlock_stats {
    size_t size; /* sizeof(redlock_stats): set by the caller */

    /* Requests. */
    uint64_t refused;          /* calls of redlock_acquire that were not accepted */
    uint64_t accepted;         /* calls of redlock_acquire that were */
    uint64_t pending;          /* of these now under way */
    uint64_t acquired;         /* ended with REDLOCK_OK */
    uint64_t failed_held;      /* ended with REDLOCK_EHELD */
    uint64_t failed_no_quorum; /* ended with REDLOCK_ENOQUORUM */
    uint64_t failed_expired;   /* ended with REDLOCK_EEXPIRED */
    uint64_t failed_no_access; /* ended with REDLOCK_EACCESS */
    uint64_t failed_no_memory; /* ended with REDLOCK_ENOMEM */
    uint64_t canceled;         /* ended with REDLOCK_ECANCELED */
    uint64_t closed;           /* ended with REDLOCK_ECLOSED */
    uint64_t tries;            /* tries, each with a token of its own */

    /* Held locks. One that is handed to the next request ends, and begins anew. */
    uint64_t held;         /* locks that are held now */
    uint64_t lost_gone;    /* lost with REDLOCK_ELOST */
    uint64_t lost_expired; /* lost with REDLOCK_EEXPIRED */
    uint64_t lost_closed;  /* lost with REDLOCK_ECLOSED */

    /*
     * Renewals by the watchdog. One that is overtaken by a release, an extension or a later renewal
     * is in none of these.
     */
    uint64_t renewed;         /* that succeeded in time */
    uint64_t renewals_failed; /* that did not: the next one follows, or the loss */
    uint64_t renewed_late;    /* failed ones that succeeded by answers that came later */

    uint64_t extended;          /* extensions that ended with REDLOCK_OK */
    uint64_t extensions_failed; /* extensions that ended with any other status */

    /* Releases, as their `on_released` was told, or would have been: counted just before. */
    uint64_t released;           /* REDLOCK_OK */
    uint64_t released_gone;      /* REDLOCK_ELOST */
    uint64_t released_no_quorum; /* REDLOCK_ENOQUORUM */
    uint64_t released_no_memory; /* REDLOCK_ENOMEM */

    /* Waiting in line. */
    uint64_t pushes;          /* grants that nodes pushed, and that found their request */
    uint64_t pushes_returned; /* those that found none, and were given back */
    uint64_t handovers;       /* locks handed from one request of the client to the next */

    /* Durations. Those of `acquire` and `wait` together are of all acquired requests. */
    redlock_histogram acquire; /* from the call to the acquisition, by the first try, at once */
    redlock_histogram wait;    /* likewise, of all others: in line, or after a failed try */
    redlock_histogram renew;   /* from the start of a renewal or extension that succeeded in time
                                  to the vote that decided it */
    redlock_histogram release; /* from the call, or its turn, to the vote that decided it */
} redlock_stats;

/*
 * Fills in the statistics of a client. They are always kept, in memory that the client has from its
 * creation; this call copies them, allocates nothing, and may be made in any callback, until
 * `on_closed`. Bytes of `stats` beyond what this library knows are set to 0.
 *
 * Returns REDLOCK_OK, or REDLOCK_EINVAL when an argument is NULL, or stats->size is below
 * sizeof(size_t).
 */
REDLOCK_EXPORT redlock_status redlock_client_stats(const redlock_client *client,
                                                   redlock_stats *stats);

/* Number of counters of votes: there may be as many kinds of votes one day. */
#define REDLOCK_STATS_VOTES 32

/*
 * Counters of one node since it became a node of the client, but for those called "now". Set `size`
 * to sizeof(redlock_node_stats) before the call of redlock_client_node_stats.
 */
typedef struct redlock_node_stats {
    size_t size;             /* sizeof(redlock_node_stats): set by the caller */
    const char *node;        /* as in redlock_node_info */
    bool connected;          /* whether commands are sent to the node now */
    bool trusted;            /* whether the node's grants count now */
    uint64_t connections;    /* connections that stood, login included */
    uint64_t disconnected;   /* connections that failed or ended */
    uint64_t replies;        /* answers to commands, each perhaps for many locks, and messages */
    uint64_t bytes_sent;     /* as written to the sockets, before TLS */
    uint64_t bytes_received; /* as read from the sockets, after TLS */
    uint64_t forbidden;      /* answers by which the ACL refused the client a right */
    uint64_t release_debts;  /* releases that are to be sent again now */
    uint64_t debts;          /* releases that did not get through, to be sent again */
    uint64_t debts_paid;     /* of these those that the node has answered */
    uint64_t given_up;       /* releases that were not remembered, and left to the TTL */
    /*
     * Votes in rounds of all kinds, by redlock_vote. A node that is silent at the end of its time
     * counts as TIMEOUT, and its answer afterwards once more: a grant as LATE. A grant that is
     * pushed follows the denial that gave the place in line. NONE is not counted.
     */
    uint64_t votes[REDLOCK_STATS_VOTES];
    /*
     * Round trips, from the instant at which a command was queued to that at which its answer was
     * read. Each reading of the socket measures one, that of its first answer.
     */
    redlock_histogram round_trip;
} redlock_node_stats;

/*
 * Fills in the statistics of the node at `index`, from 0, in the order of redlock_client_nodes; as
 * redlock_client_stats does.
 *
 * Returns REDLOCK_OK, or REDLOCK_EINVAL also when there is no such node.
 */
REDLOCK_EXPORT redlock_status redlock_client_node_stats(const redlock_client *client, size_t index,
                                                        redlock_node_stats *stats);

/*
 * Takes a piece of a text: `length` bytes, without a NUL, valid during the call. Must not call the
 * library.
 */
typedef void redlock_write_cb(const char *text, size_t length, void *arg);

/*
 * Writes the statistics of a client and its nodes in the text format of Prometheus, by calling
 * `write` with one line after the other. Names begin with "redlock_", units are seconds and bytes;
 * a histogram has a bucket for each power of two of nanoseconds, from 66 us to 69 s. Allocates
 * nothing. (Several clients in one page would be one metric twice: give each a page, or write one's
 * own from redlock_client_stats.)
 *
 * Returns REDLOCK_OK, or REDLOCK_EINVAL when `client` or `write` is NULL.
 */
REDLOCK_EXPORT redlock_status redlock_stats_write(const redlock_client *client,
                                                  redlock_write_cb *write, void *arg);

#ifdef __cplusplus
}
#endif

#endif
