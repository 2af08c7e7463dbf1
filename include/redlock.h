/*
 * libredlock: distributed locks on N independent Redis masters, for programs with a libevent loop.
 *
 * The algorithm is Redlock ("Distributed Locks with Redis", redis.io/docs/manual/patterns/
 * distributed-locks, section "The Redlock Algorithm"); the comments cite its steps.
 *
 * Rules that hold for the whole API:
 *
 *  - One thread. A client, its locks and its event_base belong to the thread that runs the loop.
 *  - Nothing waits. A call either refuses at once (negative status, nothing will follow), or it is
 *    accepted (REDLOCK_OK) and ends in exactly one callback: never zero, never two, never before
 *    the call has returned, always from the loop.
 *  - Every function may be called from inside any callback, close included (the log and
 *    allocator hooks are no callbacks).
 *  - Times in this header are in milliseconds (`_ms`).
 *  - Strings and structs passed in are copied; the caller may free them when the call returns.
 *  - Option and request structs begin with their size and are initialised with their _INIT macro,
 *    so that they can grow without breaking programs that were built against an older header.
 *  - A child of fork() has no part in its parent's clients: there every call that begins something
 *    is refused with REDLOCK_EINVAL, redlock_validity_ms is 0, and redlock_client_close does
 *    nothing. A child makes an event_base and clients of its own, and neither runs nor frees the
 *    parent's event_base, because both would use one set of sockets. (So a daemon makes its client
 *    after it has forked.) exec is safe: the descriptors are closed by it. A process made past the
 *    C library's fork(), by a bare clone for instance, is not noticed.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define REDLOCK_EXPORT __attribute__((visibility("default")))
#else
#define REDLOCK_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_VERSION_MAJOR 0
#define REDLOCK_VERSION_MINOR 1
#define REDLOCK_VERSION_PATCH 0

/* The version of the library that is running, as "major.minor.patch". */
REDLOCK_EXPORT const char *redlock_version(void);

/* ------------------------------------------------------------------------------------- statuses */

/* Every status: name, value, one sentence. Zero is success, errors are negative. */
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
    XX(ESYSTEM, -10, "the operating system or a library refused a service")

typedef enum redlock_status {
#define REDLOCK_STATUS_ENUM(name, value, text) REDLOCK_##name = (value),
    REDLOCK_STATUS_MAP(REDLOCK_STATUS_ENUM)
#undef REDLOCK_STATUS_ENUM
} redlock_status;

/* One sentence for a status. Never NULL, also for a number that is no status. Static storage. */
REDLOCK_EXPORT const char *redlock_strerror(redlock_status status);

/* The status's name, such as "REDLOCK_EHELD". Never NULL. Static storage. */
REDLOCK_EXPORT const char *redlock_status_name(redlock_status status);

/* Whether the same request may succeed later: EHELD, ENOQUORUM and EEXPIRED. */
REDLOCK_EXPORT bool redlock_is_retryable(redlock_status status);

/* What was refused, and one sentence that names the option or argument at fault. */
typedef struct redlock_error {
    redlock_status status;
    char message[256];
} redlock_error;

/* ---------------------------------------------------------------------------------------- hooks */

/*
 * Where a client's memory comes from. The three functions behave like malloc, realloc and free,
 * with `context` handed through; they are called on the loop's thread only. hiredis and libevent
 * keep allocating in their own ways.
 */
typedef struct redlock_allocator {
    void *(*malloc)(size_t size, void *context);
    void *(*realloc)(void *memory, size_t size, void *context);
    void (*free)(void *memory, void *context);
    void *context;
} redlock_allocator;

typedef enum redlock_log_level {
    REDLOCK_LOG_DEBUG = 0, /* each change of state of a lock */
    REDLOCK_LOG_INFO = 1,  /* nodes that come and go */
    REDLOCK_LOG_WARN = 2,  /* what costs availability: a stalled node, a lost lock */
    REDLOCK_LOG_ERROR = 3  /* what an operator has to mend: wrong password, read-only node */
} redlock_log_level;

/*
 * One line of the log, without a newline, valid during the call only. Lines are short and of
 * stable form ("node 127.0.0.1:6379: connected"). They never hold a password or a token. May be
 * called from inside the library's functions, so it must not call any of them; nor may the
 * allocator.
 */
typedef void redlock_log_cb(redlock_log_level level, const char *line, void *arg);

/* --------------------------------------------------------------------------------------- client */

struct event_base;                            /* libevent's */
typedef struct redlock_client redlock_client; /* the set of nodes, bound to one event_base */
typedef struct redlock_lock redlock_lock;     /* the handle of one lock */

/* The most nodes that one client can have. */
#define REDLOCK_MAX_NODES 32
/* The longest key, in bytes; and the longest that the keys of one lock may be together. */
#define REDLOCK_MAX_KEY 65536
/* The most keys of one lock. */
#define REDLOCK_MAX_KEYS 64
/* The most permits that one semaphore can have. */
#define REDLOCK_MAX_PERMITS 256
/* The key that tells, in each node's database, since when the node's memory is sound. */
#define REDLOCK_MARKER_KEY "redlock:marker"
/* What a key holds while readers share it: see redlock_mode. */
#define REDLOCK_SHARED_VALUE "shared"
/* For wait_ms: no limit. */
#define REDLOCK_FOREVER UINT64_MAX

/*
 * Which nodes' votes count. A node is only as good as its memory: one that has forgotten a lock
 * grants it again. So a node grants nothing to us (its vote is REDLOCK_VOTE_UNTRUSTED) for
 * max_ttl_ms after
 *   - it was restarted ("Distributed Locks with Redis", section "Performance, crash recovery and
 *     fsync", where it is the operator who delays restarts); INFO tells on each new connection;
 *   - its memory was emptied: then REDLOCK_MARKER_KEY is gone. The very first client of all waits
 *     for it too: nobody can tell a memory that was emptied from one that is new;
 *   - its clock moved against ours by more than drift allows (then it renews nothing either);
 *   - it was a replica, be it for a moment: the marker that it has then is that of another server.
 * Each is looked at before the first vote on a connection, and once a second: a FLUSHALL or a jump
 * of the clock can go unseen for a second, on a slow connection for two seconds and
 * node_timeout_ms at the most. Two things are not noticed: that a single key was evicted or
 * deleted (the log warns of a maxmemory-policy that may do so); and, by a client that is new and
 * has nothing to compare with, that a node's clock had jumped before. "?durable=yes" in a node's
 * URI waives the first two of the list: its operator promises that it loses nothing (appendfsync
 * always), and is not made a replica for a moment. A replica, and a server that is two of the
 * nodes, never counts (twice), whatever the guards.
 *
 * All clients of a key must agree on max_ttl_ms, and have their guards on.
 */
typedef enum redlock_guards {
    REDLOCK_GUARDS_ON, /* a node that does not permit INFO, TIME or the marker is not trusted */
    REDLOCK_GUARDS_LENIENT, /* what a node's user may not ask is taken to be well */
    REDLOCK_GUARDS_OFF      /* the operator takes care, as the paper has it */
} redlock_guards;

/*
 * Options of a client. Initialise with REDLOCK_OPTIONS_INIT, then set `nodes` and `node_count`.
 */
typedef struct redlock_options {
    size_t size; /* sizeof(redlock_options): set by the macro */

    /*
     * The independent masters, 1 to REDLOCK_MAX_NODES of them; 5 is usual, and odd numbers are
     * best, for the quorum is node_count / 2 + 1. Each is
     *     redis://[user[:password]@]host[:port][/db]     or     unix:///path[?db=n]
     * with %XX escapes and IPv6 addresses in brackets; ?durable=yes: see redlock_guards.
     * "redis://:password@host" is the password of the default user; a socket may have a login too,
     * unix://user:password@/path. Port 6379 and db 0 unless given. Names are looked up without
     * blocking the loop. rediss:// is redis:// over TLS; where this build of the library has no
     * TLS, such a node is refused with a message that says what is missing.
     */
    const char *const *nodes;
    size_t node_count;

    /*
     * How long a round waits for votes after it was written; 50. The watchdog's renewals have half
     * of the validity that is left instead.
     */
    uint64_t node_timeout_ms;
    /* A node silent for so long is dropped and reconnected; 1000. See wait_replicas. */
    uint64_t stall_timeout_ms;
    uint64_t max_ttl_ms; /* no request may ask for a longer TTL; 30000 */
    double drift;        /* allowance for clock rates, share of the TTL, 0 to 0.5; 0.01 */

    /*
     * The first retry comes after a random time up to retry_delay_ms; this bound doubles with each
     * retry, up to retry_delay_max_ms. Where that is much larger, those who were served a moment
     * ago are served again, and others may starve.
     */
    uint64_t retry_delay_ms;         /* 200 */
    uint64_t retry_delay_max_ms;     /* at least retry_delay_ms; 200 */
    uint64_t reconnect_delay_ms;     /* likewise for connecting to a node again; 50 */
    uint64_t reconnect_delay_max_ms; /* 2000 */

    /*
     * Bounds per node: what is over them is not sent, and the node's vote is UNREACHABLE. To take
     * locks, and to look at them, is three quarters of the room: the rest is for renewals and
     * releases.
     */
    uint32_t max_commands; /* commands sent and not answered; 65536 */
    size_t max_bytes;      /* their bytes, and those of releases to be sent later; 16 MiB */

    const char *name; /* what the servers list as the client's name; "redlock"; NULL: none */

    redlock_log_cb *log; /* may be NULL */
    void *log_arg;
    redlock_log_level log_level; /* the least level that is logged; REDLOCK_LOG_INFO */

    const redlock_allocator *allocator; /* NULL: malloc, realloc and free */

    redlock_guards guards; /* REDLOCK_GUARDS_ON */

    /*
     * TLS, for nodes at rediss://. The server's certificate must be signed by a trusted authority
     * and be for the host or number that the URI names, in its subjectAltName; TLS 1.2 is the
     * least. Nothing is sent, the password least of all, before that is settled. The files are in
     * PEM form, and read once, by redlock_client_create, which refuses what it cannot use. An
     * encrypted key is refused.
     */
    const char *tls_ca_file;   /* trusted authorities; NULL, both: those of the system */
    const char *tls_ca_path;   /* a folder of them, prepared by `openssl rehash` */
    const char *tls_cert_file; /* this client's certificate, and its chain; NULL: none */
    const char *tls_key_file;  /* its key; NULL: it is in tls_cert_file too */

    /*
     * How long the nodes keep the counters of fenced locks that nobody uses; 0: for ever. The
     * default is 7 days, or max_ttl_ms where that is longer; any other value below max_ttl_ms is
     * refused. A counter that is gone begins anew at the wall clock's microseconds, above its past.
     */
    uint64_t fence_idle_ms;

    /*
     * The application's name for itself, at most 64 printable ASCII characters without spaces. It
     * stands in the value of each key that it holds (of a reader: in the list of readers), behind
     * the random token and a '/', for an operator to see and for redlock_inspect to tell. NULL:
     * none.
     */
    const char *owner;

    /*
     * How long a closing client goes on sending releases, and waits for nodes to confirm them; see
     * redlock_client_close. 5000.
     */
    uint64_t close_timeout_ms;
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
            REDLOCK_OPTION(close_timeout_ms, 5000)                                                 \
    }

/*
 * Makes a client on `base` and begins to connect to its nodes; requests may be made at once: they
 * wait for the connection, but not for a name that is being looked up (its node is UNREACHABLE
 * until then). The base must outlive the client.
 *
 * `error` may be NULL; otherwise, on failure, it holds the status and a sentence that names the
 * option at fault (a node's URI is named by its index, and its password is never repeated).
 *
 * REDLOCK_OK, and *client is the caller's until redlock_client_close;
 * REDLOCK_EINVAL, REDLOCK_ENOMEM, REDLOCK_ESYSTEM (libsodium or the loop refused), and *client is
 * NULL.
 */
REDLOCK_EXPORT redlock_status redlock_client_create(struct event_base *base,
                                                    const redlock_options *options,
                                                    redlock_client **client, redlock_error *error);

/* Called when a closed client is gone. The client and all its locks are already freed. */
typedef void redlock_closed_cb(void *arg);

/*
 * Closes the client. All from the loop, some hundred locks in one iteration: a pending acquisition
 * or extension ends with REDLOCK_ECLOSED; the holder of a lock is told by its on_lost, with
 * REDLOCK_ECLOSED, and then the lock is released; releases under way end with their own result,
 * within node_timeout_ms. Then the client waits until the nodes that answer have been sent all
 * releases, and have confirmed them, until close_timeout_ms after this call at the latest. Then
 * everything is freed, and `on_closed` (may be NULL) is called.
 *
 * From this call on, every other call on the client is refused with REDLOCK_ECLOSED, and lock
 * handles die with the client. The loop must run until on_closed. A second close is ignored.
 */
REDLOCK_EXPORT void redlock_client_close(redlock_client *client, redlock_closed_cb *on_closed,
                                         void *arg);

/*
 * Called as redlock_closed_cb. `unreleased` counts the releases that no node has confirmed, one for
 * each node and lock: nodes that were down, refused, or did not answer within close_timeout_ms. At
 * those nodes the keys may stay until their TTL ends. 0: nothing is left.
 */
typedef void redlock_drained_cb(uint64_t unreleased, void *arg);

/* Closes the client as redlock_client_close does, and tells whether something is left. */
REDLOCK_EXPORT void redlock_client_drain(redlock_client *client, redlock_drained_cb *on_drained,
                                         void *arg);

/*
 * Why the last call on this client, or on one of its locks, was refused: a sentence that names
 * the argument at fault. Valid until the next refused call. Never NULL; "" before any refusal.
 */
REDLOCK_EXPORT const char *redlock_client_error(const redlock_client *client);

/* What is known of one node now. */
typedef struct redlock_node_info {
    const char *node;      /* "127.0.0.1:6379" or "/path": lives as long as the client */
    bool connected;        /* whether commands are sent to it */
    const char *reason;    /* why not; "" when connected; valid until the loop runs again */
    uint32_t commands;     /* sent to it and not answered yet */
    size_t bytes;          /* their bytes */
    size_t release_debts;  /* releases that it still has to be sent */
    uint64_t disconnected; /* how often a connection to it failed or ended so far */
    bool trusted;          /* whether its grants count, by what is known of it */
    const char *distrust;  /* why not; "" when trusted; valid until the loop runs again */
    uint64_t distrust_ms;  /* for how long still; 0: until something else changes */
    bool joining;          /* it is in the next list alone: see redlock_client_change_nodes */
    bool leaving;          /* it is not in the next list */
} redlock_node_info;

/*
 * Fills in up to `capacity` entries, in the order of the options' nodes, then those that are
 * joining; returns the number of nodes. For health pages and tests. May be called with NULL and 0.
 */
REDLOCK_EXPORT size_t redlock_client_nodes(const redlock_client *client, redlock_node_info *infos,
                                           size_t capacity);

/*
 * Has the client's locks move to other nodes while they are in use: to replace a master for good,
 * or to have more of them, or fewer. Quorums of two lists need not meet (of 1 to 5 and of 2 to 6:
 * 1, 2, 3 and 4, 5, 6), so no client may go from one to the other in one step. In between it is
 * joint: it needs a quorum of both ("In Search of an Understandable Consensus Algorithm", section
 * 6). Two clients that are one step apart exclude each other. So, for all clients of the same keys:
 *
 *   1. redlock_client_change_nodes on each of them. (A client that starts meanwhile is made with
 *      the old list, and joint at once.)
 *   2. When all are joint, wait for one max_ttl_ms: what was locked before, at the old nodes alone,
 *      is over or was renewed at both.
 *   3. redlock_client_commit_nodes on each: the next list takes the place of the old one, whose
 *      other nodes are left. The next change begins when all have done so.
 *
 * From step 1 on everything is sent to the nodes of both lists. Locks that are held are given to
 * the nodes that join at once and are renewed by a quorum of both; a release goes by the old list.
 * A server in both lists must be written alike in both, and keeps its connection. Nodes that join
 * have to be trusted before they grant anything (redlock_guards): where a majority of the next
 * list is new, those should be up, and known to some client, one max_ttl_ms before.
 *
 * Each is done at once, from inside any callback, or refused, and then nothing has changed:
 *   REDLOCK_EINVAL   a URI is at fault, named by its index; both lists have more than
 *                    REDLOCK_MAX_NODES nodes together; or, to end it, nothing is being changed
 *   REDLOCK_EBUSY    nodes are being changed already; to commit: less than max_ttl_ms has passed
 *   REDLOCK_ENOMEM, REDLOCK_ECLOSED
 * and redlock_client_error says why. redlock_client_nodes tells who is joining and leaving.
 */
REDLOCK_EXPORT redlock_status redlock_client_change_nodes(redlock_client *client,
                                                          const char *const *nodes,
                                                          size_t node_count);
REDLOCK_EXPORT redlock_status redlock_client_commit_nodes(redlock_client *client);

/* Back to the old list: safe as long as no client has committed. The same refusals. */
REDLOCK_EXPORT redlock_status redlock_client_abandon_nodes(redlock_client *client);

/* ---------------------------------------------------------------------------------------- locks */

/*
 * How each request ends. `status` says how; `lock` is the handle it was about. When the handle
 * ends with this callback (a failed acquisition, a release), it may still be asked
 * (redlock_explain, redlock_report, redlock_key) until the callback returns.
 */
typedef void redlock_cb(redlock_lock *lock, redlock_status status, void *arg);

/*
 * How a key is to be held. Readers share it with each other and with nobody else. So they hold it,
 * all together, with the value REDLOCK_SHARED_VALUE, and are listed at each node, in the sorted set
 * "<key>::readers", with the time at which the share of each lapses: the key is there until the
 * last of them does. Everybody else, also a client of another make, finds a key that is taken.
 *
 * A writer holds it alone. As long as it finds readers, and has more tries to come, it leaves a
 * note at the node, "<key>::writer": then no reader is let in that is not in already, and the
 * writer gets the key when those have gone. The note lapses by itself, soon after the next try was
 * due (that is at most retry_delay_max_ms and two node_timeout_ms), and within one ttl_ms: so long
 * may readers wait for a writer that has given up. Writers do not wait for each other in any
 * order, and after one of them readers and writers compete evenly.
 *
 * A writer that waits for a reader that stays keeps other readers out until wait_ms is over.
 *
 * Readers and writers have one key, neither `keys` nor `permits`; and readers no `min_hold_ms`.
 */
typedef enum redlock_mode {
    REDLOCK_EXCLUSIVE, /* one holder; readers that keep coming may keep it out */
    REDLOCK_READER,    /* may not be `fenced`: a fence is for who holds a key alone */
    REDLOCK_WRITER     /* one holder, for whom readers make room */
} redlock_mode;

/* One acquisition. Initialise with REDLOCK_REQUEST_INIT, then set at least `key`. */
typedef struct redlock_request {
    size_t size; /* sizeof(redlock_request): set by the macro */

    /*
     * The resource's name, any bytes; on the wire it is the Redis key. Some names are kept for the
     * library, and refused: REDLOCK_MARKER_KEY, and those that end in "::fence", "::readers" or
     * "::writer".
     */
    const char *key;
    size_t key_length; /* 1 to REDLOCK_MAX_KEY; 0: key is a C string, take strlen */

    uint64_t ttl_ms; /* how long the nodes keep the key unless renewed; 10000 */

    /*
     * How long to go on trying. Both 0: one try. `wait_ms` bounds the time from the call to the
     * last try (REDLOCK_FOREVER: no bound), `retries` the number of tries after the first; one
     * that is 0 does not bound. The delay before each retry is drawn at random.
     */
    uint64_t wait_ms;
    uint32_t retries;

    /* An acquisition, renewal or extension that leaves no more validity than this has failed. */
    uint64_t min_validity_ms;

    /*
     * Renew the lock every third of its TTL until it is released or lost; the first time at a
     * random instant within the first third, so that locks that were acquired together are not
     * renewed together. A renewal that fails is tried again after nearly half of the time that is
     * left, and at once when a node comes up. `max_hold_ms` (0: no
     * bound) is for how long after the acquisition renewals may begin: a program that hangs with
     * its loop still running holds the key no longer than max_hold_ms + ttl_ms.
     */
    bool watchdog;
    uint64_t max_hold_ms;

    /*
     * Called once, on the loop, when the lock is lost while held, at the latest when its validity
     * ends (as far as the loop is not kept busy elsewhere: only fencing protects against that).
     *   REDLOCK_ELOST     so many nodes said the key is gone or another's that no quorum is left
     *   REDLOCK_EEXPIRED  the validity ended, and no renewal had succeeded
     *   REDLOCK_ECLOSED   the client is closing, the handle dies with it
     * Except after ECLOSED, the handle still is the application's to release. May be NULL.
     */
    redlock_cb *on_lost;
    void *on_lost_arg;

    /*
     * Give the lock a fence: a number that is larger than that of every acquisition of the key, by
     * any client, that was completed before this one began, whatever became of its validity. A
     * resource that refuses smaller numbers than it has seen is safe from holders that do not know
     * yet that they have lost the lock (Kleppmann, "How to do distributed locking", 2016). It
     * takes one round trip when the counters of a quorum agree, as they do unless acquisitions
     * overlap or nodes were away, and two otherwise, seldom more. All clients of a key must ask for
     * it.
     */
    bool fenced;

    /*
     * Several keys in one lock, instead of `key`: key_count of them, 1 to REDLOCK_MAX_KEYS, all
     * different; key_lengths may be NULL, and a length 0: then the key is a C string. Each node
     * takes all of them or none, so that requests for keys that overlap, in whatever order, never
     * wait for each other with half of them. To other clients each is a key as any other. The lock
     * is lost when so many nodes lack any of them that no quorum has all; its one fence is larger
     * than those of all of them before.
     */
    const char *const *keys;
    const size_t *key_lengths;
    size_t key_count;

    /*
     * The key stays taken for at least so long, also where it is released earlier; counted, like
     * the validity, from before the try that got it. For work that must not be done again too
     * soon, whoever does it (a job that many machines would start). At most ttl_ms; 0: not at all.
     * A key that stays has a value that is nobody's: zeros for the token, and the owner.
     */
    uint64_t min_hold_ms;

    /*
     * The nodes keep the key for so long after the validity has ended, so that only a holder that
     * vanished delays the next one: what it had sent before has time to arrive. (The lock-delay of
     * "The Chubby lock service", section 2.4: for resources that cannot check a fence.) A release
     * frees the key at once. ttl_ms and this together are at most max_ttl_ms; 0: no longer.
     */
    uint64_t lock_delay_ms;

    /*
     * Above 0, for masters with replicas: a node's grant or renewal counts only if so many of its
     * replicas confirm it within half of node_timeout_ms (WAIT); otherwise its vote is UNTRUSTED.
     * Then a replica that is promoted is likely to have the key, which makes failover less
     * dangerous, and not safe: any replica may be promoted. It costs a round trip to the replicas,
     * for which whatever else this client asked of the node waits too. Such a node must not be
     * taken for a silent one: a client whose stall_timeout_ms is less than its node_timeout_ms
     * (twice the time of a WAIT) is refused with REDLOCK_EINVAL.
     */
    uint32_t wait_replicas;

    /*
     * Above 0, and up to REDLOCK_MAX_PERMITS: the key is that of a semaphore, which so many may
     * hold at once. Its permits are the locks of the keys "<key>:0", "<key>:1" and so on; the
     * request takes any that is free, and from then on the handle is that of this lock: redlock_key
     * tells which, and it is renewed, extended, released and inspected like any other. A fence is
     * that of its permit: it is larger than those of the earlier holders of the same permit.
     *
     * A try asks for one permit. Nodes that cannot grant it tell which are free, and one of those
     * is tried at once: that uses up no retry, but after four in a row there is a pause as before
     * any retry. REDLOCK_EHELD: all are taken, as far as the last try was told; redlock_explain
     * says who has the permit that it was about.
     *
     * All clients of a key must agree on the number: where they do not, the largest one rules. The
     * lock of the key itself is another one. The key may be four bytes shorter than otherwise.
     */
    uint32_t permits;

    redlock_mode mode; /* alone, or shared with other readers; REDLOCK_EXCLUSIVE */
} redlock_request;

#define REDLOCK_REQUEST_INIT                                                                       \
    {                                                                                              \
        sizeof(redlock_request), NULL, 0, 10000, 0, 0, 0, false, 0, NULL, NULL, false, NULL, NULL, \
            0, 0, 0, 0, 0, REDLOCK_EXCLUSIVE                                                       \
    }

/*
 * Asks all nodes at once for the key, with a fresh random token for each try (Redlock steps 1 to
 * 5). The key is acquired when a quorum granted it and more than min_validity_ms of validity is
 * left by a fresh reading of the clock. After a try that failed, the key is released at once on
 * every node that may have it.
 *
 * `on_acquired` (required) is called with
 *   REDLOCK_OK         the lock is held; the handle is the application's until redlock_release
 *   REDLOCK_EHELD      others hold the key, and the nodes that failed, or were too late, would not
 *                      have been in the way alone
 *   REDLOCK_ENOQUORUM  they would have: too few nodes answered in time, or too many refused
 *   REDLOCK_EEXPIRED   a quorum granted it, but too slowly: no validity was left
 *   REDLOCK_ECANCELED, REDLOCK_ECLOSED, REDLOCK_ENOMEM
 * and, when it is not OK, the handle ends with the callback. redlock_explain tells why.
 * With wait_ms, the last try begins within wait_ms of the call, and the callback comes at the
 * latest two node_timeout_ms later: one for the try, one to learn who denied it; of a fenced lock,
 * one more for each time that counters are raised.
 *
 * `lock` may be NULL; otherwise it is set, for redlock_cancel, before the call returns.
 *
 * Refuses with REDLOCK_EINVAL (redlock_client_error names the field), ENOMEM, ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_acquire(redlock_client *client,
                                              const redlock_request *request,
                                              redlock_cb *on_acquired, void *arg,
                                              redlock_lock **lock);

/*
 * Ends an acquisition that is under way: its callback follows with REDLOCK_ECANCELED, and what it
 * had been granted is released. REDLOCK_EINVAL when the lock is not being acquired any more.
 */
REDLOCK_EXPORT redlock_status redlock_cancel(redlock_lock *lock);

/*
 * Extends a held lock: its key is to live `ttl_ms` from now (0: the TTL it has: the request's, or
 * that of the last extension that succeeded) on every node that still has our token. Needs a quorum
 * of such nodes; never creates a key. It never shortens: where more than ttl_ms is left, that
 * stays. The watchdog, if on, renews with ttl_ms once the extension has succeeded.
 *
 * `on_extended` (may be NULL) is called with
 *   REDLOCK_OK         validity counts from this call
 *   REDLOCK_ELOST      a quorum is gone; on_lost follows
 *   REDLOCK_ENOQUORUM  not enough nodes answered within node_timeout_ms; the lock keeps the
 *                      validity it had, or gains some when the answers come later
 *   REDLOCK_EEXPIRED   granted, but too slowly
 *   REDLOCK_ENOMEM     it could not be sent; the lock keeps the validity it had
 *   REDLOCK_ECANCELED  the lock was released meanwhile;  REDLOCK_ECLOSED
 * Refuses with REDLOCK_EBUSY while another extension is under way, REDLOCK_ELOST when the lock is
 * lost, REDLOCK_EINVAL when it is not held or ttl_ms is out of bounds, REDLOCK_ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_extend(redlock_lock *lock, uint64_t ttl_ms,
                                             redlock_cb *on_extended, void *arg);

/*
 * Releases a lock, held or lost, on all nodes, and consumes the handle: it must not be used after
 * this call but inside the callback. A renewal under way is overtaken; an extension under way
 * ends with REDLOCK_ECANCELED. A node that cannot be reached is sent the release again when it
 * comes back, for one TTL.
 *
 * `on_released` (may be NULL) is called with
 *   REDLOCK_OK         a quorum still had our token: the lock was ours to the end
 *   REDLOCK_ELOST      so many nodes had lost it that no quorum had it: what was done under the
 *                      lock may not have been alone
 *   REDLOCK_ENOQUORUM  not enough nodes answered within node_timeout_ms to tell
 *   REDLOCK_ENOMEM     it could not be sent: the key is free when its TTL is over
 * Refuses with REDLOCK_EINVAL while the lock is being acquired (redlock_cancel does that), and
 * with REDLOCK_ECLOSED: then the handle is the closing client's.
 */
REDLOCK_EXPORT redlock_status redlock_release(redlock_lock *lock, redlock_cb *on_released,
                                              void *arg);

/*
 * For how long, by a fresh reading of the clock, the lock is still certain to be ours, rounded
 * down; 0 when it is not held. TTL less what has passed since the round that granted it began,
 * less drift (Redlock step 3): ttl * drift + 2 ms.
 */
REDLOCK_EXPORT uint64_t redlock_validity_ms(const redlock_lock *lock);

/*
 * The fence of a fenced lock, above 0 and below 2^53, from its acquisition to the end of the
 * handle; 0 for any other. Write it beside whatever is done under the lock.
 *
 * How: with the key each node keeps a counter, "<key>::fence", which outlives the lock. Granting
 * sets it to the larger of one more and the client's wall clock; the fence is the largest that was
 * granted, and a quorum's counters are raised to it, where the key still is ours, before the
 * acquisition is told. (The maximum alone would not do: of counters 5, 0, 0, 0, 0 nodes 1, 2 and 3
 * make 6, 1, 1, the fence 6; and then 3, 4 and 5 make 2, 1, 1.) A counter that turns out to be
 * larger does not count: another holder may have had that fence there. All are raised to it then.
 */
REDLOCK_EXPORT uint64_t redlock_fence(const redlock_lock *lock);

/*
 * The lock's key: *length bytes, any of them may be NUL (length may be NULL). "" for NULL. Of a
 * permit: its own, such as "<key>:3"; while that is being acquired, the one that is tried, and
 * valid until the loop goes on.
 */
REDLOCK_EXPORT const char *redlock_key(const redlock_lock *lock, size_t *length);

/* The same of a lock of several keys, in the order of the request; NULL when there are fewer. */
REDLOCK_EXPORT const char *redlock_key_at(const redlock_lock *lock, size_t index, size_t *length);

/* ------------------------------------------------------------------------------ looking at locks
 */

/* What one node says of a key. */
typedef struct redlock_node_view {
    const char *node;   /* "127.0.0.1:6379" */
    bool answered;      /* and can be trusted; else `detail` says why not */
    bool held;          /* the key is there, with an expiry */
    const char *owner;  /* redlock_options.owner of who holds it, printable; "" */
    uint64_t ttl_ms;    /* what the key has left */
    uint64_t fence;     /* the key's counter; 0: none */
    const char *detail; /* why it did not answer, or what there is that is no lock; "" */
    uint32_t readers;   /* how many share the key; 0: nobody, or it is held alone */
} redlock_node_view;

/* What all of them say. The texts are valid until the callback returns. */
typedef struct redlock_view {
    bool held;                      /* a quorum of the nodes holds it for the same holder(s) */
    const char *owner;              /* of that holder; "" */
    uint64_t ttl_ms;                /* for how long a quorum still holds it */
    uint64_t fence;                 /* of the newest fenced acquisition that was told; 0: none */
    const redlock_node_view *nodes; /* in the order of redlock_client_nodes */
    size_t node_count;
    uint32_t readers; /* held by readers: so many a quorum has; `owner` is "" */
} redlock_view;

/*
 * REDLOCK_OK: `view` is what the nodes that did not answer could not change;
 * REDLOCK_ENOQUORUM: they could; REDLOCK_ECLOSED.
 */
typedef void redlock_inspect_cb(redlock_status status, const redlock_view *view, void *arg);

/*
 * Asks all nodes who holds a key (key_length bytes; 0: a C string), and calls back within
 * node_timeout_ms. For operators and tests: what it says may be over when it is told. No token is
 * told.
 * Refuses with REDLOCK_EINVAL, ENOMEM, ECLOSED (redlock_client_error).
 */
REDLOCK_EXPORT redlock_status redlock_inspect(redlock_client *client, const char *key,
                                              size_t key_length, redlock_inspect_cb *on_view,
                                              void *arg);

/*
 * REDLOCK_OK         nobody was told a larger fence of the key when the nodes answered
 * REDLOCK_ELOST      somebody was, or is about to be
 * REDLOCK_ENOQUORUM  too few nodes answered to tell;  REDLOCK_ECLOSED
 */
typedef void redlock_fence_cb(redlock_status status, void *arg);

/*
 * For a resource that is handed a fence, and can ask: is it still the newest of its key? (As
 * CheckSequencer in "The Chubby lock service for loosely-coupled distributed systems", OSDI 2006,
 * section 2.4.) A resource that can keep a number needs no question: redlock_gate.
 * Refuses with REDLOCK_EINVAL, ENOMEM, ECLOSED.
 */
REDLOCK_EXPORT redlock_status redlock_check_fence(redlock_client *client, const char *key,
                                                  size_t key_length, uint64_t fence,
                                                  redlock_fence_cb *on_fence, void *arg);

/*
 * What a resource keeps beside each of its objects to refuse holders that have lost the lock: the
 * largest fence that it has seen. Keep it with the object, in the same transaction.
 */
typedef struct redlock_gate {
    uint64_t fence;
} redlock_gate;

/* Before anything else was seen. */
#define REDLOCK_GATE_INIT                                                                          \
    { 0 }

/* Whether to let in who brings this fence: one that is as large as any that was let in before. */
static inline bool redlock_gate_admit(redlock_gate *gate, uint64_t fence) {
    if (fence < gate->fence) {
        return false;
    }
    gate->fence = fence;
    return true;
}

/* ---------------------------------------------------------------------------- why it went so */

/* What one node said in the last round of a lock. */
typedef enum redlock_vote {
    REDLOCK_VOTE_NONE,        /* had not answered when the others had already decided */
    REDLOCK_VOTE_GRANTED,     /* did it */
    REDLOCK_VOTE_DENIED,      /* the key is held by another, or (to a reader) waited for */
    REDLOCK_VOTE_WRONG_TYPE,  /* the key exists but is no lock: it is not a string; or its counter
                                 (of a fenced lock) is out of range */
    REDLOCK_VOTE_NO_EXPIRY,   /* the key exists but is no lock: it never expires */
    REDLOCK_VOTE_MISSING,     /* the key was to be renewed or released, and was not there */
    REDLOCK_VOTE_ERROR,       /* the server refused: detail is its own text, or says why */
    REDLOCK_VOTE_TIMEOUT,     /* no answer within node_timeout_ms */
    REDLOCK_VOTE_UNREACHABLE, /* nothing was sent: no connection, or over a bound; see detail */
    REDLOCK_VOTE_BROKEN,      /* the connection broke before the answer: outcome unknown */
    REDLOCK_VOTE_UNTRUSTED,   /* it did it, or may have, but that does not count: redlock_guards, or
                                 redlock_request.wait_replicas */
    REDLOCK_VOTE_LATE         /* did it, but its answer came when the round was over */
} redlock_vote;

typedef struct redlock_node_report {
    const char *node;   /* "127.0.0.1:6379" */
    redlock_vote vote;  /* its vote */
    uint64_t ttl_ms;    /* DENIED: what the other holder's key, or the writer's note, has left; 0
                           when not known;
                           UNTRUSTED: for how long still; 0: until something else changes */
    const char *detail; /* ERROR, UNREACHABLE, BROKEN, UNTRUSTED: why, in words; "" */
} redlock_node_report;

/*
 * What each node said in the lock's last round, in the order of redlock_client_nodes. Fills in up
 * to `capacity` entries and returns the number of nodes. The texts are valid until the callback
 * (or, outside of one, the current turn of the loop) ends.
 */
REDLOCK_EXPORT size_t redlock_report(const redlock_lock *lock, redlock_node_report *reports,
                                     size_t capacity);

/*
 * The same as one sentence for a log or an operator, such as "not acquired after 3 tries in
 * 412 ms, 3 of 5 nodes are needed; 1 granted (10.0.0.1:6379); 2 held by another, for 7310 ms more
 * at most (10.0.0.2:6379, 10.0.0.3:6379); 2 unreachable: Connection refused (10.0.0.4:6379, ...)".
 * Valid until the next call of redlock_explain on the same client. Never NULL.
 */
REDLOCK_EXPORT const char *redlock_explain(const redlock_lock *lock);

#ifdef __cplusplus
}
#endif

#endif
