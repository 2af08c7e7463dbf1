/*
 * The happy path: hiredis connects; conn_send collects encoded commands and marks the connection
 * dirty; net_flush passes the commands of each dirty connection to hiredis in one piece, and has
 * them written once; the read event, armed once for the connection's life, reads and parses, and
 * each reply goes to its request.
 *
 * The queue of requests that wait for a reply is ours, and so is the loop over replies. hiredis'
 * own loop would allocate a callback for each command, and compare the name of each command and
 * reply with subscriptions. When out of memory, it would queue bytes without a callback, so that
 * all later replies went to the wrong requests, or abort at a message. Its output buffer would be
 * allocated and grown anew in each turn, command by command. Only connecting, reading, writing and
 * parsing are left to hiredis.
 *
 * When a write fails, hiredis frees its context itself and calls the cleanup hook: on_cleanup is
 * the only place where a connection learns that its context is gone. It only marks the connection
 * and sets `closing`, a timer, which notifies requests and owner outside of any
 * callback of hiredis.
 *
 * Servers' replies are not trusted: see io/reader.h.
 *
 * With TLS (io/tls.h) reading may write and writing may read, and bytes may wait in OpenSSL instead
 * of in the socket. Therefore each read is guarded against SIGPIPE as writes are, goes on until
 * OpenSSL holds no more bytes, and drives a handshake that is not complete; and the write event is
 * armed whenever bytes could not be written, whether or not hiredis has asked for it.
 */
#include "io/net.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/histogram.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/reader.h"
#include "io/requests.h"
#include "io/sigpipe.h"
#include "io/tls.h"

#include <fcntl.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

/* Maximum size of the buffer of collected commands that is kept from turn to turn. */
#define COLLECTED_MAX (1024 * 1024)

struct conn {
    struct net *net;
    redisAsyncContext *context; /* NULL once hiredis has freed it */
    struct tls_session *tls;    /* NULL: plain */
    const struct conn_listener *listener;
    void *owner;
    struct fd_watch watch;
    struct timer closing; /* fires when on_closed is due */
    bool is_open;         /* whether the socket was ever connected */
    bool has_answered;
    bool is_timed;              /* whether heard_at is set for the replies that are being read */
    uint64_t heard_at;          /* when the latest reply was read */
    uint64_t replies;           /* number of replies so far */
    bool is_closing;            /* whether on_closed is due */
    bool is_dirty;              /* whether in net->dirty */
    bool is_writing;            /* whether inside redisAsyncHandleWrite */
    struct load load, own_load; /* of the application's commands, and of the client's own */
    struct requests requests;
    struct bytes collected;  /* commands not yet passed to hiredis */
    struct traffic *traffic; /* counters; NULL: none */
    TAILQ_ENTRY(conn) dirty_link;
    char why[128];
    struct reader reader;
};

/* ---- requests ---- */

static struct conn_request *take_request(struct conn *conn) {
    struct conn_request *request = requests_take(&conn->requests);
    conn->reader.awaited = conn->requests.count;
    return request;
}

static struct load *load_of(struct conn *conn, const struct conn_request *request) {
    return request->load_class == LOAD_OWN ? &conn->own_load : &conn->load;
}

/* Gives all requests a NULL reply, because no reply will come. */
static void answer_none(struct conn *conn) {
    while (conn->requests.count > 0) {
        struct conn_request *request = take_request(conn);
        load_remove(load_of(conn, request), &conn->net->bounds, request->length);
        request->on_reply(request, conn->owner, NULL);
    }
}

/* ---- replies ---- */

/* Records the arrival of the first reply in a read; `request` is NULL for a message. */
static __attribute__((noinline)) void record_arrival(struct conn *conn,
                                                     const struct conn_request *request) {
    conn->is_timed = true;
    conn->heard_at = clock_now();
    if (request != NULL && conn->traffic != NULL) {
        uint64_t took = nanos_sub(conn->heard_at, request->sent_at);
        histogram_record(&conn->traffic->round_trip, took);
        answer_time_record(&conn->traffic->answer_time, took);
    }
}

/* Records that a reply has come; `request` is NULL for a message. */
static void record_heard(struct conn *conn, const struct conn_request *request) {
    conn->has_answered = true;
    if (!conn->is_timed) {
        record_arrival(conn, request);
    }
}

static void take_reply(struct conn *conn, const redisReply *given) {
    struct conn_request *request = take_request(conn);
    bool has_room = load_remove(load_of(conn, request), &conn->net->bounds, request->length);
    record_heard(conn, request);
    /* A command was refused before, and there is plenty of room now: the owner can send again. */
    if (has_room) {
        conn->listener->on_room(conn->owner);
    }
    struct reply reply = reader_reply(given);
    request->on_reply(request, conn->owner, &reply);
}

/* Takes an unrequested reply: a message, or the error of a server that ends the connection. */
static void take_message(struct conn *conn, const redisReply *given) {
    if (given->type == REDIS_REPLY_ERROR) {
        conn_close(conn, given->str);
        return;
    }
    record_heard(conn, NULL);
    if (given->type == REDIS_REPLY_STRING) {
        conn->listener->on_message(conn->owner, given->str, (size_t)given->len);
    } else {
        conn->listener->on_change(conn->owner, given->str, (size_t)given->len);
    }
}

/* ---- the end of a connection ---- */

/* Returns whether the socket is connected but the TLS handshake is not complete. */
static bool is_shaking(const struct conn *conn) {
    return conn->tls != NULL && conn->is_open && !conn->tls->is_ready;
}

static void record_why(struct conn *conn, const char *why) {
    struct text text;
    text_init(&text, conn->why, sizeof(conn->why));
    text_append(&text, "%s%s", why, is_shaking(conn) ? " (in the TLS handshake)" : "");
}

/* Returns whether a plain connection got a TLS alert: byte 0x15, which hiredis quotes. */
static bool is_answered_in_tls(const struct conn *conn) {
    const redisContext *c = &conn->context->c;
    return conn->tls == NULL && c->err == REDIS_ERR_PROTOCOL && strstr(c->errstr, "\\x15") != NULL;
}

/* Returns whether the server ended the connection without any reply. */
static bool is_rejected(const struct conn *conn) {
    const redisContext *c = &conn->context->c;
    return conn_was_open(conn) && c->connection_type == REDIS_CONN_TCP && !conn->has_answered &&
           (c->err == REDIS_ERR_EOF || c->err == REDIS_ERR_IO);
}

/*
 * Returns the likely cause of a rejection, because a reset often overtakes the server's own
 * message. A server that replied on earlier connections speaks our protocol, so TLS is not the
 * cause; a server that is going down may still accept connections.
 */
static const char *suspicion(const struct conn *conn) {
    bool is_known = conn->traffic != NULL && conn->traffic->replies > 0;
    return is_known            ? "is it going down?"
           : conn->tls == NULL ? "is it going down, or does this port want TLS, rediss://?"
                               : "is it going down, or does it want another tls_cert_file?";
}

static void explain_end(struct conn *conn) {
    const struct tls_session *tls = conn->tls;
    const char *why = conn->context->c.errstr;
    if (conn->reader.refusal != NULL) {
        record_why(conn, conn->reader.refusal);
    } else if (is_answered_in_tls(conn)) {
        record_why(conn, "it speaks TLS at this port: rediss://");
    } else if (tls != NULL && tls->methods->explain(tls, conn->why, sizeof(conn->why))) {
        return;
    } else if (is_rejected(conn)) {
        snprintf(conn->why, sizeof(conn->why), "%.48s, before any answer (%s)", why,
                 suspicion(conn));
    } else {
        record_why(conn, why);
    }
}

/* Starts to end the connection: on_closing follows from the loop. */
static void end_conn(struct conn *conn) {
    conn->is_closing = true;
    timer_soon(&conn->closing);
}

static void on_cleanup(void *arg) {
    struct conn *conn = arg;
    if (conn->why[0] == '\0') {
        explain_end(conn);
    }
    conn->context = NULL;
    fd_watch_finish(&conn->watch);
    if (conn->is_dirty) {
        TAILQ_REMOVE(&conn->net->dirty, conn, dirty_link);
        conn->is_dirty = false;
    }
    end_conn(conn);
}

static void on_closing(void *arg) {
    struct conn *conn = arg;
    if (conn->context != NULL) {
        redisAsyncFree(conn->context); /* calls on_cleanup, which sets `closing` again */
        timer_finish(&conn->closing);
    }
    answer_none(conn);
    conn->listener->on_closed(conn->owner, conn->why);
}

void conn_close(struct conn *conn, const char *why) {
    if (!conn->is_closing) {
        record_why(conn, why);
        end_conn(conn);
    }
}

/* Frees a connection that has no hiredis context, or no longer has one. */
static void discard_conn(struct conn *conn) {
    bytes_finish(&conn->collected);
    requests_finish(&conn->requests);
    memory_free(conn->net->allocator, conn);
}

void conn_destroy(struct conn *conn) {
    if (conn == NULL) {
        return;
    }
    conn->is_closing = true;
    if (conn->context != NULL) {
        redisAsyncFree(conn->context);
    }
    timer_finish(&conn->closing);
    answer_none(conn);
    if (conn->tls != NULL) {
        conn->tls->methods->end(conn->tls);
    }
    discard_conn(conn);
}

/* ---- writing ---- */

/* Returns whether the loop waits until the socket takes more bytes. */
static bool awaits_writable(const struct conn *conn) {
    return (conn->watch.events & WATCH_WRITABLE) != 0;
}

/* Ends the connection if the loop refuses to wait for its events: nothing would arrive any more. */
static void await_events(struct conn *conn, unsigned events) {
    if (!fd_watch_set(&conn->watch, conn->watch.events | events)) {
        conn_close(conn, "the socket cannot be watched: out of memory, or of epoll watches");
    }
}

static void await_writable(struct conn *conn) {
    await_events(conn, WATCH_WRITABLE);
}

/*
 * Arms the write event for bytes left over. With TLS, hiredis sometimes waits to read, or for the
 * next net_flush, although there are bytes to write.
 */
static void await_rest(struct conn *conn) {
    if (conn->tls == NULL || conn->is_closing || !conn->is_open) {
        return;
    }
    bool is_unwritten = sdslen(conn->context->c.obuf) > 0;
    if (conn->tls->is_ready ? is_unwritten : conn->tls->methods->waits_to_write(conn->tls)) {
        await_writable(conn);
    }
}

/* Passes the collected commands to hiredis. Returns false when out of memory. */
static bool hand_on(struct conn *conn) {
    struct bytes *collected = &conn->collected;
    if (collected->length == 0) {
        return true;
    }
    redisContext *c = &conn->context->c;
    bool is_given = redisAppendFormattedCommand(c, collected->data, collected->length) == REDIS_OK;
    bytes_clear(collected);
    if (collected->capacity > COLLECTED_MAX) {
        bytes_finish(collected);
    }
    return is_given;
}

/* Writes the output. Returns whether the connection broke. */
static bool write_out(struct conn *conn) {
    if (!hand_on(conn)) {
        conn_close(conn, "out of memory"); /* hiredis writes nothing more after an error */
        return false;
    }
    if (conn->tls != NULL) {
        conn->tls->methods->begin(conn->tls);
    }
    size_t before = sdslen(conn->context->c.obuf);
    conn->is_writing = true;
    redisAsyncHandleWrite(conn->context);
    conn->is_writing = false;
    if (conn->context != NULL && conn->traffic != NULL) {
        conn->traffic->bytes_sent += before - sdslen(conn->context->c.obuf);
    }
    await_rest(conn);
    return conn->context == NULL;
}

void net_flush(struct net *net) {
    if (TAILQ_EMPTY(&net->dirty)) {
        return;
    }
    struct sigpipe_guard guard;
    bool failed = false;
    sigpipe_block(&guard);
    while (!TAILQ_EMPTY(&net->dirty)) {
        struct conn *conn = TAILQ_FIRST(&net->dirty);
        TAILQ_REMOVE(&net->dirty, conn, dirty_link);
        conn->is_dirty = false;
        if (!conn->is_closing) {
            failed |= write_out(conn);
        }
    }
    sigpipe_restore(&guard, failed);
}

static void write_rest(struct conn *conn) {
    if (conn->is_closing) {
        return;
    }
    struct sigpipe_guard guard;
    sigpipe_block(&guard);
    sigpipe_restore(&guard, write_out(conn));
}

/* ---- reading ---- */

/* Takes all complete replies. Returns false when the server broke the protocol. */
static bool take_replies(struct conn *conn) {
    void *object = NULL;
    int status = REDIS_OK;
    /* Replies on a connection that is ending do not count: after it refused AUTH or SELECT, the
       server still carries out commands, but as another user or in another database. */
    while (!conn->is_closing) {
        status = redisGetReplyFromReader(&conn->context->c, &object);
        if (status != REDIS_OK || object == NULL) {
            break;
        }
        conn->replies++;
        if (conn->requests.count > 0) {
            take_reply(conn, object);
        } else {
            take_message(conn, object);
        }
    }
    return status == REDIS_OK;
}

/* Reads once, and takes all complete replies. Returns false when the connection broke. */
static bool read_some(struct conn *conn) {
    redisContext *c = &conn->context->c;
    size_t length = c->reader->len;
    uint64_t replies = conn->replies;
    bool is_whole = redisBufferRead(c) == REDIS_OK;
    length = c->reader->len - length;
    is_whole = is_whole && take_replies(conn);
    if (conn->traffic != NULL) {
        conn->traffic->bytes_received += length;
        conn->traffic->replies += conn->replies - replies;
    }
    return is_whole;
}

static void read_plain(struct conn *conn) {
    const redisContext *c = &conn->context->c;
    conn->is_timed = false;
    if (!read_some(conn)) {
        explain_end(conn);
        end_conn(conn);
    } else if (!conn->is_closing && c->reader->len > READER_BUFFER_MAX) {
        conn_close(conn, "sent an answer without end");
    }
}

static void end_shaking(struct conn *conn) {
    char why[sizeof(conn->why)];
    conn_close(conn, "the server ended the connection");
    if (conn->tls->methods->explain(conn->tls, why, sizeof(why))) {
        memcpy(conn->why, why, sizeof(why));
    }
}

/* Continues the handshake. Returns whether the server's identity is verified. */
static bool continue_handshake(struct conn *conn) {
    const struct tls_methods *methods = conn->tls->methods;
    switch (methods->shake(conn->tls)) {
    case TLS_READY:
        return true;
    case TLS_WAITS_TO_READ:
        break;
    case TLS_WAITS_TO_WRITE:
        await_writable(conn);
        break;
    case TLS_FAILED:
        end_shaking(conn);
        break;
    }
    return false;
}

static void read_tls(struct conn *conn) {
    struct sigpipe_guard guard;
    sigpipe_block(&guard);
    conn->tls->methods->begin(conn->tls);
    if (continue_handshake(conn)) {
        do {
            read_plain(conn);
        } while (!conn->is_closing && conn->tls->methods->has_pending(conn->tls));
        await_rest(conn);
    }
    sigpipe_restore(&guard, conn->is_closing);
}

static void read_once(struct conn *conn) {
    if (conn->is_closing || !conn->is_open) {
        return;
    }
    if (conn->tls != NULL) {
        read_tls(conn);
    } else {
        read_plain(conn);
    }
}

void conn_read(struct conn *conn) {
    uint64_t before;
    do {
        before = conn->replies;
        read_once(conn);
    } while (conn->replies > before && conn->reader.channel == NULL);
}

static void on_ready(void *arg, unsigned events) {
    struct conn *conn = arg;
    if (events & WATCH_READABLE) {
        read_once(conn);
    }
    /* Reading may have ended the connection, or what it waited to write. */
    if (events & WATCH_WRITABLE && awaits_writable(conn)) {
        write_rest(conn);
    }
}

/* ---- the adapter: what hiredis asks of an event loop ---- */

static void add_read(void *arg) {
    struct conn *conn = arg;
    await_events(conn, WATCH_READABLE);
}

static void del_read(void *arg) {
    (void)arg; /* the read event stays armed until the connection ends: no epoll_ctl per command */
}

static void add_write(void *arg) {
    struct conn *conn = arg;
    /* hiredis asks while it writes when the socket is full: only then must the loop watch it. */
    bool socket_is_busy = conn->is_writing || !conn->is_open;
    if (socket_is_busy) {
        await_writable(conn);
    } else if (!awaits_writable(conn) && !conn->is_dirty) {
        conn->is_dirty = true;
        TAILQ_INSERT_TAIL(&conn->net->dirty, conn, dirty_link);
    }
}

static void del_write(void *arg) {
    struct conn *conn = arg;
    fd_watch_set(&conn->watch, conn->watch.events & ~(unsigned)WATCH_WRITABLE);
}

static void on_connect(const redisAsyncContext *context, int status) {
    struct conn *conn = context->data;
    conn->is_open = status == REDIS_OK;
}

/* ---- opening and sending ---- */

void net_init(struct net *net, redlock_loop *loop, const redlock_allocator *allocator,
              const struct load_bounds *bounds) {
    *net = (struct net){.loop = loop, .allocator = allocator, .bounds = *bounds};
    TAILQ_INIT(&net->dirty);
}

static redisAsyncContext *begin_to_connect(const struct conn_address *address,
                                           redlock_error *error) {
    redisAsyncContext *context = address->path != NULL
                                     ? redisAsyncConnectUnix(address->path)
                                     : redisAsyncConnect(address->host, address->port);
    if (context == NULL) {
        error_set(error, REDLOCK_ENOMEM, "out of memory");
        return NULL;
    }
    if (context->err != 0) {
        error_set(error, REDLOCK_ESYSTEM, "%s", context->errstr);
        redisAsyncFree(context);
        return NULL;
    }
    fcntl(context->c.fd, F_SETFD, FD_CLOEXEC);
    return context;
}

static void attach(struct conn *conn, redisAsyncContext *context) {
    conn->context = context;
    fd_watch_init(&conn->watch, conn->net->loop, context->c.fd, on_ready, conn);
    timer_init(&conn->closing, conn->net->loop, on_closing, conn);
    context->data = conn;
    context->ev.data = conn;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = on_cleanup;
    reader_attach(&conn->reader, context);
    redisAsyncSetConnectCallback(context, on_connect);
}

/* Allocates a connection. Returns NULL, with the reason in `error`, when out of memory. */
static struct conn *create_conn(struct net *net, redlock_error *error) {
    struct conn *conn = memory_zalloc(net->allocator, sizeof(*conn));
    if (conn != NULL) {
        conn->net = net;
        bytes_init(&conn->collected, net->allocator);
        if (requests_init(&conn->requests, net->allocator)) {
            return conn;
        }
        discard_conn(conn);
    }
    error_set(error, REDLOCK_ENOMEM, "out of memory");
    return NULL;
}

/* Starts TLS if the address asks for it. Returns false on failure, with the reason in `error`. */
static bool begin_tls(struct conn *conn, const struct conn_address *address,
                      redisAsyncContext *context, redlock_error *error) {
    if (address->tls != NULL) {
        conn->tls = address->tls->methods->start(address->tls, context, address->name, error);
    }
    return address->tls == NULL || conn->tls != NULL;
}

struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error) {
    struct conn *conn = create_conn(net, error);
    if (conn == NULL) {
        return NULL;
    }
    conn->listener = listener;
    conn->owner = owner;
    redisAsyncContext *context = begin_to_connect(address, error);
    if (context == NULL) {
        discard_conn(conn);
        return NULL;
    }
    if (!begin_tls(conn, address, context, error)) {
        redisAsyncFree(context);
        discard_conn(conn);
        return NULL;
    }
    attach(conn, context);
    return conn;
}

/* Queues a request, which counts in `load`, and its command. Returns false when out of memory. */
static bool queue(struct conn *conn, struct load *load, struct conn_request *request,
                  const char *data, size_t length) {
    if (!requests_make_room(&conn->requests)) {
        return false;
    }
    char *end = bytes_reserve(&conn->collected, length);
    if (end == NULL) {
        conn->collected.failed = false; /* commands collected before are complete */
        conn_close(conn, "out of memory");
        return false;
    }
    memcpy(end, data, length);
    conn->collected.length += length;
    requests_add(&conn->requests, request);
    conn->reader.awaited = conn->requests.count;
    load_add(load, request->length);
    add_write(conn);
    return true;
}

bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length) {
    struct load *load = load_of(conn, request);
    bool has_ended = conn->is_closing || conn->reader.channel != NULL;
    return !has_ended &&
           load_has_room(load, &conn->net->bounds, request->load_class, request->length) &&
           queue(conn, load, request, data, length);
}

bool conn_subscribe(struct conn *conn, struct conn_request *request, const char *channel,
                    const char *data, size_t length) {
    if (!conn_send(conn, request, data, length)) {
        return false;
    }
    reader_subscribe(&conn->reader, channel);
    return true;
}

bool conn_admits(struct conn *conn, uint32_t most) {
    return load_admits(&conn->load, &conn->net->bounds, most);
}

void conn_count(struct conn *conn, struct traffic *traffic) {
    conn->traffic = traffic;
}

bool conn_was_open(const struct conn *conn) {
    return conn->tls != NULL ? conn->tls->is_ready : conn->is_open;
}

bool conn_was_accepted(const struct conn *conn) {
    return conn->is_open;
}

uint64_t conn_oldest(const struct conn *conn) {
    const struct conn_request *oldest = requests_first(&conn->requests);
    return oldest != NULL ? oldest->sent_at : NANOS_NEVER;
}

uint64_t conn_heard_at(const struct conn *conn) {
    return conn->heard_at;
}

uint32_t conn_commands(const struct conn *conn) {
    return conn->load.commands + conn->own_load.commands;
}

size_t conn_bytes(const struct conn *conn) {
    return conn->load.bytes + conn->own_load.bytes;
}
