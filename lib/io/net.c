/*
 * The happy path: hiredis connects; conn_send appends an encoded command to the context's output
 * and marks the connection dirty; net_flush writes each dirty connection once; the read event,
 * armed once for the connection's life, reads and parses, and each reply goes to its request.
 *
 * On an error hiredis frees its context itself, at a time of its choosing, and calls the cleanup
 * hook: on_cleanup is the one place where a connection learns that its context is gone. on_cleanup
 * only marks the connection and wakes `closing`, an event of this file; from there the owner is
 * told, outside of any callback of hiredis.
 *
 * Replies of servers are not trusted: see io/reader.h.
 *
 * A subscription is kept from hiredis, which would store the callback in a table: there want of
 * memory leaves no callback, or NULL, unnoticed, and the next message aborts the process. Instead
 * SUBSCRIBE is appended to the output as bytes without a callback. A callback alone is queued for
 * the answer, and then, whenever it has run, for the next message.
 *
 * With TLS (io/tls.h) reading may write and writing may read, and bytes may wait in OpenSSL instead
 * of in the socket. Therefore each read is guarded against SIGPIPE as writes are, continues until
 * OpenSSL holds no more bytes, and continues a handshake that is not done; and the write event is
 * armed whenever bytes could not be written, whether or not hiredis has asked for it.
 */
#include "io/net.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/reader.h"
#include "io/sigpipe.h"
#include "io/tls.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

struct conn {
    struct net *net;
    redisAsyncContext *context; /* NULL once hiredis has freed it */
    struct tls_session *tls;    /* NULL: plain */
    const struct conn_listener *listener;
    void *owner;
    struct event readable, writable, closing;
    bool is_open; /* whether connected at least once */
    bool has_answered;
    bool is_timed;     /* whether heard_at belongs to the replies that are being read */
    uint64_t heard_at; /* when the latest reply was read */
    uint64_t replies;  /* number of replies so far */
    bool is_reading;   /* whether the read event is armed */
    bool is_closing;   /* whether on_closed is due */
    bool is_dirty;     /* whether in net->dirty */
    bool is_writing;   /* whether inside redisAsyncHandleWrite */
    bool awaits_writable;
    struct load load, own_load;       /* of the application, and of the client itself */
    struct conn_request next_message; /* request for the message that may come, never due */
    TAILQ_ENTRY(conn) dirty_link;
    char why[128];
    struct reader reader;
};

/* ---- replies, and the end of a connection ---- */

static struct load *load_of(struct conn *conn, const struct conn_request *request) {
    return request->claim == LOAD_OWN ? &conn->own_load : &conn->load;
}

static void note_heard(struct conn *conn) {
    conn->has_answered = true;
    if (!conn->is_timed) { /* once for all replies of one read from the socket */
        conn->is_timed = true;
        conn->heard_at = clock_now();
    }
}

static void await_message(struct conn *conn);

static void on_reply(redisAsyncContext *context, void *object, void *privdata) {
    struct conn *conn = context->data;
    struct conn_request *request = privdata;
    const redisReply *given = object;
    struct load *load = load_of(conn, request);
    bool has_room = load_remove(load, &conn->net->bounds, request->length);
    conn->replies++;
    /* Replies on a connection that is ending do not count: after a refused AUTH or SELECT the
       server still carries out commands, for another user or in another database. */
    if (given == NULL || conn->is_closing) {
        request->on_reply(request, conn->owner, NULL);
        return;
    }
    note_heard(conn);
    if (has_room) {
        conn->listener->on_room(conn->owner);
    }
    if (conn->reader.is_confirmed) {
        await_message(conn);
    }
    struct reply reply = reader_reply(given);
    request->on_reply(request, conn->owner, &reply);
}

static void on_message(redisAsyncContext *context, void *object, void *privdata) {
    (void)privdata;
    struct conn *conn = context->data;
    const redisReply *given = object;
    conn->replies++;
    if (given == NULL || conn->is_closing) {
        return;
    }
    note_heard(conn);
    if (given->type == REDIS_REPLY_ERROR) {
        conn_close(conn, given->str);
        return;
    }
    await_message(conn);
    conn->listener->on_message(conn->owner, given->str, (size_t)given->len);
}

/* Returns whether the connection stands but its TLS handshake has not ended. */
static bool is_shaking(const struct conn *conn) {
    return conn->tls != NULL && conn->is_open && !conn->tls->is_ready;
}

static void note_why(struct conn *conn, const char *why) {
    struct text text;
    text_init(&text, conn->why, sizeof(conn->why));
    text_append(&text, "%s%s", why, is_shaking(conn) ? " (in the TLS handshake)" : "");
}

/* Returns whether a plain connection was answered by a TLS alert (byte 0x15, quoted by hiredis). */
static bool is_answered_in_tls(const struct conn *conn) {
    const redisContext *c = &conn->context->c;
    return conn->tls == NULL && c->err == REDIS_ERR_PROTOCOL && strstr(c->errstr, "\\x15") != NULL;
}

/* Returns whether the server ended the connection without an answer or an error reply. */
static bool is_rejected(const struct conn *conn) {
    const redisContext *c = &conn->context->c;
    return conn_was_open(conn) && c->connection_type == REDIS_CONN_TCP && !conn->has_answered &&
           (c->err == REDIS_ERR_EOF || c->err == REDIS_ERR_IO);
}

/* Returns the likely cause of a rejection: a reset often overtakes the server's message. */
static const char *suspicion(const struct conn *conn) {
    return conn->tls == NULL ? "does this port want TLS, rediss://?"
                             : "does it want another tls_cert_file?";
}

static void explain_end(struct conn *conn) {
    const struct tls_session *tls = conn->tls;
    const char *why = conn->context->c.errstr;
    if (conn->reader.refusal != NULL) {
        note_why(conn, conn->reader.refusal);
    } else if (is_answered_in_tls(conn)) {
        note_why(conn, "it speaks TLS at this port: rediss://");
    } else if (tls != NULL && tls->methods->explain(tls, conn->why, sizeof(conn->why))) {
        return;
    } else if (is_rejected(conn)) {
        snprintf(conn->why, sizeof(conn->why), "%.60s, before any answer (%s)", why,
                 suspicion(conn));
    } else {
        note_why(conn, why);
    }
}

static void on_cleanup(void *arg) {
    struct conn *conn = arg;
    if (conn->why[0] == '\0') {
        explain_end(conn);
    }
    conn->context = NULL;
    event_del(&conn->readable);
    event_del(&conn->writable);
    if (conn->is_dirty) {
        TAILQ_REMOVE(&conn->net->dirty, conn, dirty_link);
        conn->is_dirty = false;
    }
    conn->is_closing = true;
    event_active(&conn->closing, EV_TIMEOUT, 0);
}

static void on_closing(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    struct conn *conn = arg;
    if (conn->context != NULL) {
        redisAsyncFree(conn->context); /* calls on_cleanup, which wakes `closing` once more */
        event_del(&conn->closing);
    }
    conn->listener->on_closed(conn->owner, conn->why);
}

void conn_close(struct conn *conn, const char *why) {
    if (!conn->is_closing) {
        conn->is_closing = true;
        note_why(conn, why);
        event_active(&conn->closing, EV_TIMEOUT, 0);
    }
}

void conn_destroy(struct conn *conn) {
    if (conn == NULL) {
        return;
    }
    conn->is_closing = true;
    if (conn->context != NULL) {
        redisAsyncFree(conn->context);
    }
    event_del(&conn->closing);
    if (conn->tls != NULL) {
        conn->tls->methods->end(conn->tls);
    }
    memory_free(conn->net->loop->allocator, conn);
}

/* ---- writing ---- */

static void await_writable(struct conn *conn) {
    if (!conn->awaits_writable) {
        conn->awaits_writable = event_add(&conn->writable, NULL) == 0;
    }
}

/*
 * Arms the write event for bytes left over: with TLS, hiredis sometimes waits to read, or for the
 * next net_flush, though there are bytes to write.
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

/* Writes the output. Returns true when the connection broke. */
static bool write_out(struct conn *conn) {
    if (conn->tls != NULL) {
        conn->tls->methods->begin(conn->tls);
    }
    conn->is_writing = true;
    redisAsyncHandleWrite(conn->context);
    conn->is_writing = false;
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

static void on_writable(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    struct conn *conn = arg;
    if (conn->is_closing) {
        return;
    }
    struct sigpipe_guard guard;
    sigpipe_block(&guard);
    sigpipe_restore(&guard, write_out(conn));
}

/* ---- reading ---- */

static void read_plain(struct conn *conn) {
    conn->is_timed = false;
    redisAsyncHandleRead(conn->context);
    if (!conn->is_closing && conn->context->c.reader->len > READER_BUFFER_MAX) {
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

/* Continues the handshake. Returns true when the server's identity has been verified. */
static bool shake(struct conn *conn) {
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
    if (shake(conn)) {
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

static void on_readable(evutil_socket_t fd, short events, void *arg) {
    (void)fd;
    (void)events;
    read_once(arg);
}

/* ---- the adapter: what hiredis asks of an event loop ---- */

static void add_read(void *arg) {
    struct conn *conn = arg;
    if (!conn->is_reading && event_add(&conn->readable, NULL) == 0) {
        conn->is_reading = true;
    }
}

static void del_read(void *arg) {
    (void)arg; /* the read event stays armed until the connection ends */
}

/* Returns whether bytes may wait to be written: a callback alone has none. */
static bool has_output(const struct conn *conn) {
    return conn->tls != NULL || sdslen(conn->context->c.obuf) > 0;
}

static void add_write(void *arg) {
    struct conn *conn = arg;
    bool socket_is_busy = conn->is_writing || !conn->is_open;
    if (socket_is_busy) {
        await_writable(conn);
    } else if (!conn->awaits_writable && !conn->is_dirty && has_output(conn)) {
        conn->is_dirty = true;
        TAILQ_INSERT_TAIL(&conn->net->dirty, conn, dirty_link);
    }
}

static void del_write(void *arg) {
    struct conn *conn = arg;
    if (conn->awaits_writable) {
        event_del(&conn->writable);
        conn->awaits_writable = false;
    }
}

static void on_connect(const redisAsyncContext *context, int status) {
    struct conn *conn = context->data;
    conn->is_open = status == REDIS_OK;
}

/* ---- opening and sending ---- */

void net_init(struct net *net, const struct loop *loop, const struct load_bounds *bounds) {
    *net = (struct net){.loop = loop, .bounds = *bounds};
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
    struct event_base *base = conn->net->loop->base;
    conn->context = context;
    event_assign(&conn->readable, base, context->c.fd, EV_READ | EV_PERSIST, on_readable, conn);
    event_assign(&conn->writable, base, context->c.fd, EV_WRITE | EV_PERSIST, on_writable, conn);
    event_assign(&conn->closing, base, -1, 0, on_closing, conn);
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

struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error) {
    struct conn *conn = memory_zalloc(net->loop->allocator, sizeof(*conn));
    if (conn == NULL) {
        error_set(error, REDLOCK_ENOMEM, "out of memory");
        return NULL;
    }
    conn->net = net;
    conn->listener = listener;
    conn->owner = owner;
    conn->next_message.sent_at = NANOS_NEVER;
    redisAsyncContext *context = begin_to_connect(address, error);
    if (context == NULL) {
        memory_free(net->loop->allocator, conn);
        return NULL;
    }
    if (address->tls != NULL) {
        const struct tls_methods *methods = address->tls->methods;
        conn->tls = methods->start(address->tls, context, address->name, error);
        if (conn->tls == NULL) {
            redisAsyncFree(context);
            memory_free(net->loop->allocator, conn);
            return NULL;
        }
    }
    attach(conn, context);
    return conn;
}

/* Returns whether a request is in hiredis' queue, by the status of that. If not, closes. */
static bool is_queued(struct conn *conn, const struct conn_request *request, int status) {
    const redisAsyncContext *context = conn->context;
    /* Out of memory, hiredis may queue the bytes without the callback: all later replies would
       go to the wrong requests. Bytes queued in this turn have not been written yet. */
    if (status != REDIS_OK || context->replies.tail == NULL ||
        context->replies.tail->privdata != request) {
        conn_close(conn, "out of memory");
        return false;
    }
    return true;
}

/* Queues a callback alone, as for the answer to a command of which no byte is sent. */
static bool queue_callback(struct conn *conn, redisCallbackFn *callback,
                           struct conn_request *request) {
    static const char no_command[] = "*1\r\n$1\r\n-\r\n"; /* hiredis looks for a name */
    int status = redisAsyncFormattedCommand(conn->context, callback, request, no_command, 0);
    return is_queued(conn, request, status);
}

static void await_message(struct conn *conn) {
    queue_callback(conn, on_message, &conn->next_message);
}

bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length) {
    struct load *load = load_of(conn, request);
    bool has_ended = conn->is_closing || conn->reader.channel != NULL;
    if (has_ended || !load_has_room(load, &conn->net->bounds, request->claim, request->length)) {
        return false;
    }
    int status = redisAsyncFormattedCommand(conn->context, on_reply, request, data, length);
    if (!is_queued(conn, request, status)) {
        return false;
    }
    load_add(load, request->length);
    return true;
}

bool conn_subscribe(struct conn *conn, struct conn_request *request, const char *channel,
                    const char *data, size_t length) {
    if (conn->is_closing || conn->reader.channel != NULL) {
        return false;
    }
    if (redisAppendFormattedCommand(&conn->context->c, data, length) != REDIS_OK) {
        conn_close(conn, "out of memory");
        return false;
    }
    if (!queue_callback(conn, on_reply, request)) {
        return false;
    }
    reader_subscribe(&conn->reader, channel);
    load_add(load_of(conn, request), request->length);
    return true;
}

bool conn_was_open(const struct conn *conn) {
    return conn->tls != NULL ? conn->tls->is_ready : conn->is_open;
}

bool conn_was_accepted(const struct conn *conn) {
    return conn->is_open;
}

uint64_t conn_oldest(const struct conn *conn) {
    if (conn->context == NULL || conn->context->replies.head == NULL) {
        return NANOS_NEVER;
    }
    const struct conn_request *request = conn->context->replies.head->privdata;
    return request->sent_at;
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
