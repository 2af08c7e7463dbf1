/*
 * The happy path: DOWN -> RESOLVING (names only) -> CONNECTING -> UP. The handshake is queued
 * before the connection stands, and locks may queue behind it: replies come in order. Then
 * commands go out and replies come back; the timer looks now and then whether the oldest command
 * has waited too long.
 *
 * What goes wrong: whatever ends the connection brings the node DOWN, and a jittered, growing
 * delay later it tries again. A node that owes answers and says nothing at all (stopped, half-open)
 * is dropped after stall_timeout, and so is a server that refuses the login. While it is not UP the
 * node takes no commands, so that no round waits for it; only the very first attempt lets them
 * queue.
 *
 * Releases that did not get through are owed, and paid when the node is UP again, or when the queue
 * that they met full has room: a node that was away must not keep a key for a whole TTL after it
 * came back.
 */
#include "node.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/backoff.h"
#include "io/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void on_timer(void *arg);
static void connect_now(struct node *node);
static void connect_to_next(struct node *node);

static void set_state(struct node *node, enum node_state state) {
    node->state = state;
    node->state_since = clock_now();
}

/* A timer that libevent has no memory for fires at once: late is worse than early. */
static void wake_at(struct node *node, uint64_t at) {
    if (!timer_set(&node->timer, at)) {
        timer_soon(&node->timer);
    }
}

/* ---- life ---- */

static redlock_status need_tls(struct node *node, const char *where, redlock_error *error) {
    redlock_error cause;
    redlock_status status = context_need_tls(node->context, &cause);
    return status == REDLOCK_OK ? status : error_set(error, status, "%s: %s", where, cause.message);
}

redlock_status node_init(struct node *node, struct context *context, uint32_t position,
                         const char *text, redlock_error *error) {
    char where[32];
    snprintf(where, sizeof(where), "nodes[%" PRIu32 "]", position);
    *node = (struct node){.context = context, .index = position, .pay_at = NANOS_NEVER};
    debts_init(&node->debts, &context->allocator, context->options.max_bytes);
    if (text == NULL) {
        return error_set(error, REDLOCK_EINVAL, "%s: NULL", where);
    }
    size_t length = strnlen(text, URI_MAX + 1);
    node->storage = memory_alloc(&context->allocator, length + 3);
    if (node->storage == NULL || !timer_init(&node->timer, &context->loop, on_timer, node)) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    redlock_status status = uri_parse(text, where, node->storage, &node->uri, error);
    if (status == REDLOCK_OK && node->uri.is_tls) {
        status = need_tls(node, where, error);
    }
    if (status == REDLOCK_OK) {
        uri_name(&node->uri, node->name);
        guard_init(&node->guard, node);
        snprintf(node->reason, sizeof(node->reason), "not connected yet");
    }
    return status;
}

void node_start(struct node *node) {
    connect_now(node);
}

void node_stop(struct node *node, const char *why) {
    struct conn *conn = node->conn;
    lookup_cancel(node->lookup);
    node->lookup = NULL;
    if (conn != NULL) {
        conn_destroy(conn);
        node->conn = NULL;
    }
    set_state(node, NODE_DOWN);
    timer_clear(&node->timer); /* what ended just now may have set it */
    snprintf(node->reason, sizeof(node->reason), "%s", why);
}

void node_finish(struct node *node) {
    debts_finish(&node->debts);
    timer_finish(&node->timer);
    memory_free(&node->context->allocator, node->storage);
    node->storage = NULL;
}

/* ---- down, and up again ---- */

/* The first failure after a good time is for the operator, those that follow it are not. */
static redlock_log_level level_of_failure(const struct node *node) {
    return node->attempts == 1 ? REDLOCK_LOG_WARN : REDLOCK_LOG_DEBUG;
}

static void go_down(struct node *node, const char *why) {
    const redlock_options *options = &node->context->options;
    uint64_t now = clock_now();
    uint64_t longest = nanos_from_ms(options->reconnect_delay_max_ms);
    if (node->state == NODE_UP && now - node->state_since >= longest) {
        node->attempts = 0;
    }
    uint64_t bound =
        backoff_bound(nanos_from_ms(options->reconnect_delay_ms), longest, node->attempts);
    uint64_t delay = backoff_draw(&node->context->seed, bound);
    node->attempts++;
    node->disconnected++;
    node->pay_at = NANOS_NEVER;
    debts_drop_expired(&node->debts, now);
    struct text reason;
    text_init(&reason, node->reason, sizeof(node->reason));
    text_append_foreign(&reason, why, strlen(why));
    if (node->reason[0] == '\0') { /* a server may refuse with an error that has no words */
        text_append(&reason, "refused without a reason");
    }
    set_state(node, NODE_DOWN);
    log_line(&node->context->log, level_of_failure(node),
             "node %s: down: %s; next try in %" PRIu64 " ms", node->name, node->reason,
             nanos_to_ms(delay));
    wake_at(node, nanos_add(now, delay));
    if (node->context->is_closing) {
        context_wake(node->context); /* it is not waited for any more */
    }
}

/*
 * It may be reached at another address of its name. What somebody had against us at one of them is
 * the better reason than that there was nobody at another.
 */
static void fail_to_connect(struct node *node, bool was_accepted, const char *why) {
    if (was_accepted || !node->was_accepted) {
        node->was_accepted = was_accepted;
        snprintf(node->failure, sizeof(node->failure), "%s", why);
    }
    if (node->address + 1 >= node->addresses.count) {
        go_down(node, node->failure);
        return;
    }
    log_line(&node->context->log, REDLOCK_LOG_DEBUG, "node %s: not at %s: %s", node->name,
             node->addresses.list[node->address], why);
    node->address++;
    connect_to_next(node);
}

static void on_closed(void *owner, const char *why) {
    struct node *node = owner;
    char reason[sizeof(node->reason)];
    bool was_accepted = conn_was_accepted(node->conn);
    snprintf(reason, sizeof(reason), "%s", node->refusal[0] != '\0' ? node->refusal : why);
    conn_destroy(node->conn);
    node->conn = NULL;
    if (node->state == NODE_CONNECTING) {
        fail_to_connect(node, was_accepted, reason);
    } else {
        go_down(node, reason);
    }
}

/* It answers, but with errors: not at once again. Or there is no room: on_room may be earlier. */
static void pay_later(struct node *node, uint64_t now) {
    uint64_t delay = nanos_from_ms(node->context->options.reconnect_delay_max_ms);
    node->pay_at = nanos_add(now, delay);
    if (node->timer.at > node->pay_at) {
        wake_at(node, node->pay_at);
    }
}

/* Pays what there is room for: the rest is paid behind that, or later where there is none at all.
 */
static void pay(struct node *node) {
    node->pay_at = NANOS_NEVER;
    node->context->on_debts_due(node);
    if (node->payments == 0 && node->debts.count > 0 && node->pay_at == NANOS_NEVER) {
        pay_later(node, clock_now());
    }
}

/* What was not sent for want of room is a debt. */
static void on_room(void *owner) {
    struct node *node = owner;
    if (node->state == NODE_UP && node->debts.count > 0) {
        pay(node);
    }
}

static const struct conn_listener conn_listener = {.on_closed = on_closed, .on_room = on_room};

static void go_up(struct node *node) {
    set_state(node, NODE_UP);
    node->reason[0] = '\0';
    node->refusal[0] = '\0';
    node->complaints = 0;
    log_line(&node->context->log, REDLOCK_LOG_INFO, "node %s: connected", node->name);
    pay(node);
    node->context->on_node_up(node->context->on_node_up_arg);
}

/* ---- the handshake ---- */

/* Logged once for each class of error until the node has connected anew. */
void node_complain(struct node *node, const struct reply *reply) {
    enum reply_error meaning = reply_classify(reply);
    uint32_t bit = UINT32_C(1) << meaning;
    if (!(node->complaints & bit)) {
        node->complaints |= bit;
        log_line(&node->context->log,
                 meaning == REPLY_ERROR_MISCONFIGURED ? REDLOCK_LOG_ERROR : REDLOCK_LOG_WARN,
                 "node %s: refused: %s", node->name, reply->text);
    }
}

static void on_handshake_done(void *owner) {
    struct node *node = owner;
    if (node->state == NODE_CONNECTING) {
        go_up(node);
    }
}

static void on_handshake_refusal(void *owner, const struct reply *reply, bool is_fatal) {
    struct node *node = owner;
    if (node->refusal[0] == '\0') { /* what follows is often its consequence: NOAUTH */
        snprintf(node->refusal, sizeof(node->refusal), "%s", reply->text);
        node_complain(node, reply);
    }
    if (is_fatal) {
        conn_close(node->conn, reply->text);
    }
}

static void on_script_refused(void *owner, enum script script) {
    node_lacks(owner, script);
}

static const struct handshake_listener handshake_listener = {
    .on_done = on_handshake_done,
    .on_refusal = on_handshake_refusal,
    .on_script_refused = on_script_refused,
};

/* ---- connecting ---- */

static void connect_to(struct node *node, const char *host) {
    struct context *context = node->context;
    const struct conn_address address = {
        .host = host,
        .port = node->uri.port,
        .path = node->uri.path,
        .tls = node->uri.is_tls ? context->tls : NULL,
        .name = node->uri.host,
    };
    redlock_error error;
    node->refusal[0] = '\0';
    set_state(node, NODE_CONNECTING);
    node->conn = conn_open(&context->net, &address, &conn_listener, node, &error);
    if (node->conn == NULL) {
        fail_to_connect(node, error.status == REDLOCK_EINVAL, error.message);
        return;
    }
    node->lacks = ~((UINT32_C(1) << SCRIPT_FIRST_LAZY) - 1);
    handshake_begin(&node->handshake, &handshake_listener, node->conn, &node->uri, context->name,
                    &context->scratch, node->state_since);
    guard_connected(&node->guard, node->state_since);
    wake_at(node, nanos_add(node->state_since, nanos_from_ms(context->options.stall_timeout_ms)));
    context_wake(context);
}

static void connect_to_next(struct node *node) {
    connect_to(node, node->addresses.list[node->address]);
}

static void on_resolved(void *arg, const struct addresses *addresses, const char *why) {
    struct node *node = arg;
    node->lookup = NULL;
    if (addresses == NULL) {
        char reason[sizeof(node->reason)];
        snprintf(reason, sizeof(reason), "%s cannot be resolved: %s", node->uri.host, why);
        go_down(node, reason);
        return;
    }
    node->addresses = *addresses;
    node->address = 0;
    connect_to_next(node);
}

static void connect_now(struct node *node) {
    const struct uri *uri = &node->uri;
    struct context *context = node->context;
    node->was_accepted = false;
    if (uri->path != NULL || resolver_is_numeric(uri->host)) {
        connect_to(node, uri->host);
        return;
    }
    set_state(node, NODE_RESOLVING);
    wake_at(node, nanos_add(node->state_since, nanos_from_ms(context->options.stall_timeout_ms)));
    struct lookup *lookup = resolver_start(&context->resolver, uri->host, on_resolved, node);
    if (lookup != NULL) {
        node->lookup = lookup; /* NULL: on_resolved has been called already */
    }
}

/* ---- the timer: does it answer? ---- */

/*
 * A timer that is so late was kept waiting by the loop: what was queued before that may have been
 * written only just now. The oldest command gets its time anew, once.
 */
#define LATE (50 * NANOS_PER_MS)

static bool excuse(struct node *node, uint64_t oldest, uint64_t late) {
    if (late < LATE || node->excused == oldest) {
        return false;
    }
    node->excused = oldest;
    return true;
}

static void check_progress(struct node *node, uint64_t now) {
    uint64_t stall = nanos_from_ms(node->context->options.stall_timeout_ms);
    conn_read(node->conn); /* the loop may have been away: what has arrived counts */
    uint64_t oldest = conn_oldest(node->conn);
    /* Whatever it answered last shows that it goes on with those before the oldest. */
    uint64_t due = nanos_add(nanos_max(oldest, conn_heard_at(node->conn)), stall);
    if (due <= now && excuse(node, oldest, now - due)) {
        due = nanos_add(now, stall);
    }
    if (due <= now) {
        char why[96];
        snprintf(why, sizeof(why), "stalled: no answer for %" PRIu64 " ms",
                 node->context->options.stall_timeout_ms);
        conn_close(node->conn, why);
        return;
    }
    if (node->pay_at <= now) {
        pay(node);
    }
    uint64_t next = nanos_min(due, node->pay_at);
    if (next != NANOS_NEVER) {
        wake_at(node, next);
    }
}

static void on_timer(void *arg) {
    struct node *node = arg;
    switch (node->state) {
    case NODE_DOWN:
        connect_now(node);
        break;
    case NODE_RESOLVING:
        lookup_cancel(node->lookup);
        node->lookup = NULL;
        go_down(node, "the name lookup was not answered");
        break;
    case NODE_CONNECTING:
    case NODE_UP:
        check_progress(node, clock_now());
        break;
    }
}

/* ---- commands ---- */

static bool takes_commands(const struct node *node) {
    return node->state == NODE_UP || (node->state == NODE_CONNECTING && node->disconnected == 0);
}

bool node_say(struct node *node, struct conn_request *request, const char *data, size_t length) {
    if (!conn_send(node->conn, request, data, length)) {
        return false;
    }
    uint64_t stall = nanos_from_ms(node->context->options.stall_timeout_ms);
    uint64_t due = nanos_add(request->sent_at, stall);
    if (node->timer.at > due) { /* not set, or set for a payment of debts */
        wake_at(node, due);
    }
    return true;
}

bool node_send(struct node *node, struct conn_request *request, const char *data, size_t length) {
    return takes_commands(node) && node_say(node, request, data, length);
}

bool node_takes_text(struct node *node, enum script script) {
    uint32_t bit = UINT32_C(1) << script;
    bool lacks = node->lacks & bit;
    node->lacks &= ~bit;
    return lacks;
}

void node_beat(struct node *node, uint64_t now, uint64_t ago) {
    if (node->state == NODE_UP) {
        guard_beat(&node->guard, now, ago);
    }
}

bool node_was_reached(const struct node *node) {
    return node->conn != NULL && conn_was_open(node->conn);
}

const char *node_why_unreachable(const struct node *node) {
    return node->state != NODE_UP ? node->reason
                                  : "it was not connected then, or max_commands or max_bytes was "
                                    "reached";
}

void node_read(struct node *node) {
    if (node->conn != NULL) {
        conn_read(node->conn);
    }
}

/* ---- release debts ---- */

void node_owe(struct node *node, const struct owed *owed) {
    uint64_t now = clock_now();
    if (owed->until <= now) {
        return;
    }
    if (!debts_add(&node->debts, owed, now)) {
        node->context->unreleased++;
        log_line(&node->context->log, REDLOCK_LOG_WARN,
                 "node %s: a release cannot be remembered; the key's TTL frees it", node->name);
    } else if (node->state == NODE_UP && node->pay_at == NANOS_NEVER) {
        pay_later(node, now);
    }
}

struct node_room node_room(const struct node *node) {
    const struct load_bounds *bounds = &node->context->net.bounds;
    uint32_t commands = node->conn != NULL ? conn_commands(node->conn) : bounds->commands;
    size_t bytes = node->conn != NULL ? conn_bytes(node->conn) : bounds->bytes;
    return (struct node_room){
        .commands = commands < bounds->commands ? bounds->commands - commands : 0,
        .bytes = bytes < bounds->bytes ? bounds->bytes - bytes : 0,
    };
}

/* What failed is owed again, and that has put off the rest as well. */
void node_paid(struct node *node, redlock_vote vote) {
    bool was_done = vote != REDLOCK_VOTE_UNREACHABLE && vote != REDLOCK_VOTE_BROKEN &&
                    vote != REDLOCK_VOTE_ERROR;
    bool is_last = --node->payments == 0;
    if (!is_last || node->debts.count == 0 || node->state != NODE_UP ||
        node->pay_at != NANOS_NEVER) {
        return;
    }
    if (was_done) {
        pay(node);
    } else {
        pay_later(node, clock_now());
    }
}

bool node_is_being_paid(const struct node *node) {
    return node->state == NODE_UP && node->debts.count > 0 &&
           (node->payments > 0 || conn_commands(node->conn) > 0);
}

void node_forgive(struct node *node) {
    debts_finish(&node->debts);
    debts_init(&node->debts, &node->context->allocator, node->context->options.max_bytes);
}
