/*
 * Connections over the simulated network, which behave like the real ones (lib/io/net.c): net_flush
 * sends what was queued; a connection that ends, for whatever reason, first gives a NULL reply for
 * each unanswered command, then calls on_closed from the loop.
 */
#include "io/net.h"

#include "check.h"
#include "network.h"
#include "process.h"
#include "words.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An unanswered command. */
struct pending {
    STAILQ_ENTRY(pending) link;
    struct conn_request *request;
    uint64_t sent_at; /* by the process's clock */
};
STAILQ_HEAD(pending_list, pending);

struct conn {
    struct net *net;
    struct event_base *process;
    struct link *link; /* NULL: broken */
    struct heard_channel heard;
    const struct conn_listener *listener;
    void *owner;
    struct occurrence readable, closing;
    struct message_list inbox;
    struct pending_list pending;
    struct bytes out;
    bool is_open, is_closing, is_dirty, is_subscribed;
    uint64_t heard_at; /* by the process's clock */
    struct answer_time *answer_time;
    struct load load, own_load; /* commands of the application; of the client itself */
    TAILQ_ENTRY(conn) dirty_link;
    char why[128];
};

void net_init(struct net *net, redlock_loop *loop, const redlock_allocator *allocator,
              const struct load_bounds *bounds) {
    *net = (struct net){.loop = loop, .allocator = allocator, .bounds = *bounds};
    TAILQ_INIT(&net->dirty);
}

/* ---- the end of a connection ---- */

static void undirty(struct conn *conn) {
    if (conn->is_dirty) {
        TAILQ_REMOVE(&conn->net->dirty, conn, dirty_link);
        conn->is_dirty = false;
    }
}

static struct conn_request *take_pending(struct conn *conn) {
    struct pending *pending = STAILQ_FIRST(&conn->pending);
    struct conn_request *request = pending->request;
    STAILQ_REMOVE_HEAD(&conn->pending, link);
    memory_free(conn->net->allocator, pending);
    return request;
}

static struct load *load_of(struct conn *conn, const struct conn_request *request) {
    return request->load_class == LOAD_OWN ? &conn->own_load : &conn->load;
}

/* Returns true when there is plenty of room again. */
static bool unload(struct conn *conn, const struct conn_request *request) {
    struct load *load = load_of(conn, request);
    return load_remove(load, &conn->net->bounds, request->length);
}

void conn_count(struct conn *conn, struct traffic *traffic) {
    conn->answer_time = &traffic->answer_time; /* simulated traffic has no other statistics */
}

void conn_abandon(struct conn *conn) {
    struct message *message;
    while ((message = STAILQ_FIRST(&conn->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&conn->inbox, link);
        message_free(message);
    }
}

/* Does what hiredis does when it frees a context. */
static void end(struct conn *conn) {
    if (conn->link != NULL) {
        link_close(conn->link);
        conn->link = NULL;
    }
    undirty(conn);
    while (!STAILQ_EMPTY(&conn->pending)) {
        struct conn_request *request = take_pending(conn);
        unload(conn, request);
        request->on_reply(request, conn->owner, NULL);
    }
    conn_abandon(conn);
}

/* The library learns now that the connection is no more. */
static void forget_channel(struct conn *conn) {
    if (conn->heard.server != NULL) {
        LIST_REMOVE(&conn->heard, link);
        conn->heard.server = NULL;
    }
}

static void on_closing(void *owner) {
    struct conn *conn = owner;
    end(conn);
    forget_channel(conn);
    conn->listener->on_closed(conn->owner, conn->why);
}

void conn_close(struct conn *conn, const char *why) {
    if (!conn->is_closing) {
        conn->is_closing = true;
        snprintf(conn->why, sizeof(conn->why), "%s", why);
        process_notify(conn->process, &conn->closing);
    }
}

/* Ends a connection that broke while it was read. */
static void broke(struct conn *conn, const char *why) {
    conn_close(conn, why);
    end(conn);
}

void conn_destroy(struct conn *conn) {
    if (conn == NULL) {
        return;
    }
    conn->is_closing = true;
    end(conn);
    forget_channel(conn);
    process_forget(conn->process, &conn->closing);
    process_forget(conn->process, &conn->readable);
    bytes_finish(&conn->out);
    memory_free(conn->net->allocator, conn);
}

/* ---- reading and writing ---- */

static void write_out(struct conn *conn) {
    if (conn->out.length > 0) {
        link_send(conn->link, conn->out.data, conn->out.length);
        bytes_clear(&conn->out);
    }
}

static void deliver(struct conn *conn, struct answer *answer) {
    struct pending *pending = STAILQ_FIRST(&conn->pending);
    check_delivered(conn->link, answer, pending->sent_at);
    struct conn_request *request = take_pending(conn);
    conn->heard_at = tempo_read(&conn->process->clock, conn->process->world->now);
    answer_time_record(conn->answer_time, nanos_sub(conn->heard_at, request->sent_at));
    if (unload(conn, request)) {
        conn->listener->on_room(conn->owner);
    }
    request->on_reply(request, conn->owner, &answer->reply);
}

static void remember_channel(struct conn *conn) {
    struct network *network = conn->process->network;
    if (conn->heard.server == NULL) {
        conn->heard.server = conn->link->server;
        memcpy(conn->heard.name, conn->link->channel, sizeof(conn->heard.name));
        LIST_INSERT_HEAD(&network->heard_channels[conn->process->index], &conn->heard, link);
    }
}

static void deliver_published(struct conn *conn, const struct message *message) {
    conn->heard_at = tempo_read(&conn->process->clock, conn->process->world->now);
    remember_channel(conn);
    check_pushed(conn->process, conn->link->server->master.index, message->bytes, message->length);
    conn->listener->on_message(conn->owner, message->bytes, message->length);
}

static void read_message(struct conn *conn, struct message *message) {
    struct answer *answer;
    switch (message->kind) {
    case MESSAGE_CONNECTED:
        conn->is_open = true;
        write_out(conn);
        break;
    case MESSAGE_ANSWERS:
        STAILQ_FOREACH(answer, &message->answers, link) {
            if (!conn->is_closing) {
                deliver(conn, answer);
            }
        }
        break;
    case MESSAGE_PUBLISHED:
        deliver_published(conn, message);
        break;
    case MESSAGE_REFUSED:
        broke(conn, "Connection refused");
        break;
    default:
        broke(conn, "Connection reset by peer");
        break;
    }
}

void conn_read(struct conn *conn) {
    struct message *message;
    while (!conn->is_closing && (message = STAILQ_FIRST(&conn->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&conn->inbox, link);
        read_message(conn, message);
        message_free(message);
    }
}

static void on_readable(void *owner) {
    conn_read(owner);
}

void conn_arrived(struct conn *conn, struct message *message) {
    STAILQ_INSERT_TAIL(&conn->inbox, message, link);
    process_notify(conn->process, &conn->readable);
}

/* ---- sending ---- */

void net_flush(struct net *net) {
    while (!TAILQ_EMPTY(&net->dirty)) {
        process_may_be_preempted(process_of(net->loop)); /* before it is written */
        struct conn *conn = TAILQ_FIRST(&net->dirty);
        undirty(conn);
        if (!conn->is_closing) {
            write_out(conn);
        }
    }
}

static unsigned server_of(const struct conn_address *address) {
    return (unsigned)address->port - SIM_FIRST_PORT;
}

struct conn *conn_open(struct net *net, const struct conn_address *address,
                       const struct conn_listener *listener, void *owner, redlock_error *error) {
    struct event_base *process = process_of(net->loop);
    struct conn *conn = memory_zalloc(net->allocator, sizeof(*conn));
    if (conn == NULL) {
        error_set(error, REDLOCK_ENOMEM, "out of memory");
        return NULL;
    }
    if (process_is_refused(process)) {
        memory_free(net->allocator, conn);
        error_set(error, REDLOCK_ESYSTEM, "Too many open files");
        return NULL;
    }
    if (address->host != NULL && strcmp(address->host, SIM_NOBODY) == 0) {
        memory_free(net->allocator, conn);
        error_set(error, REDLOCK_ESYSTEM, "Connection refused");
        return NULL;
    }
    conn->net = net;
    conn->process = process;
    conn->listener = listener;
    conn->owner = owner;
    STAILQ_INIT(&conn->inbox);
    STAILQ_INIT(&conn->pending);
    bytes_init(&conn->out, net->allocator);
    occurrence_init(&conn->readable, on_readable, conn, true);
    occurrence_init(&conn->closing, on_closing, conn, true);
    conn->link = link_open(process->network, process, server_of(address), conn);
    return conn;
}

static bool queue(struct conn *conn, struct conn_request *request, const char *data,
                  size_t length) {
    struct pending *pending = memory_alloc(conn->net->allocator, sizeof(*pending));
    size_t before = conn->out.length;
    if (pending == NULL) {
        return false;
    }
    bytes_append(&conn->out, data, length);
    if (conn->out.failed || conn->out.length != before + length) {
        memory_free(conn->net->allocator, pending);
        return false;
    }
    pending->request = request;
    pending->sent_at = tempo_read(&conn->process->clock, conn->process->world->now);
    STAILQ_INSERT_TAIL(&conn->pending, pending, link);
    return true;
}

static bool send(struct conn *conn, struct conn_request *request, const char *data, size_t length) {
    if (!queue(conn, request, data, length)) {
        conn_close(conn, "out of memory");
        return false;
    }
    check_sent(conn->link, data, length);
    load_add(load_of(conn, request), request->length);
    if (conn->is_open && !conn->is_dirty) {
        conn->is_dirty = true;
        TAILQ_INSERT_TAIL(&conn->net->dirty, conn, dirty_link);
    }
    return true;
}

bool conn_send(struct conn *conn, struct conn_request *request, const char *data, size_t length) {
    struct load *load = load_of(conn, request);
    bool has_ended = conn->is_closing || conn->is_subscribed;
    return !has_ended &&
           load_has_room(load, &conn->net->bounds, request->load_class, request->length) &&
           send(conn, request, data, length);
}

bool conn_subscribe(struct conn *conn, struct conn_request *request, const char *channel,
                    const char *data, size_t length) {
    (void)channel; /* a simulated server sends nothing else */
    if (conn->is_closing || conn->is_subscribed || !send(conn, request, data, length)) {
        return false;
    }
    conn->is_subscribed = true;
    return true;
}

/* ---- its state ---- */

bool conn_was_open(const struct conn *conn) {
    return conn->is_open;
}

bool conn_was_accepted(const struct conn *conn) {
    return conn->is_open;
}

uint64_t conn_oldest(const struct conn *conn) {
    const struct pending *first = STAILQ_FIRST(&conn->pending);
    return first != NULL ? first->request->sent_at : NANOS_NEVER;
}

uint64_t conn_heard_at(const struct conn *conn) {
    return conn->heard_at;
}

bool conn_admits(struct conn *conn, uint32_t most) {
    return load_admits(&conn->load, &conn->net->bounds, most);
}

uint32_t conn_commands(const struct conn *conn) {
    return conn->load.commands + conn->own_load.commands;
}

size_t conn_bytes(const struct conn *conn) {
    return conn->load.bytes + conn->own_load.bytes;
}
