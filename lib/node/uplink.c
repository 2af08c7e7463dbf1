/*
 * The happy path: DOWN -> RESOLVING (names only) -> CONNECTING -> UP. The handshake is queued
 * before the connection is up, and commands of locks may be queued after it: replies come in order.
 * Scripts that the server lacks are loaded before the uplink is UP; after a reconnect they are
 * asked for again first, after a pause, if the client has a quorum without the server. Then the
 * timer checks from time to time whether the oldest command has waited too long.
 *
 * Failures: any end of a connection brings the uplink DOWN, and the next attempt follows after a
 * growing delay with jitter. A connection on which answers are due and nothing arrives (a stopped
 * server, a half-open connection) is dropped after stall_timeout; one on which the login is
 * refused, at once. An uplink that is not UP takes no commands, so that no round waits for it; only
 * the very first attempt lets commands queue.
 */
#include "node/uplink.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/nanos.h"
#include "base/text.h"
#include "core/backoff.h"
#include "core/event.h"
#include "core/options.h"
#include "io/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void on_uplink_timer(void *arg);
static void connect_now(struct uplink *uplink);
static void connect_to_next(struct uplink *uplink);

static void set_state(struct uplink *uplink, enum uplink_state state) {
    uplink->state = state;
    uplink->state_since = clock_now();
}

uint64_t uplink_answer_timeout(const struct uplink *uplink, uint64_t margin) {
    uint64_t fixed = nanos_from_ms(uplink->context->options.node_timeout_ms);
    return fixed != 0 ? fixed : answer_time_timeout(&uplink->traffic.answer_time, margin);
}

uint64_t uplink_answer_due(const struct uplink *uplink, uint64_t sent_at, uint64_t margin) {
    uint64_t heard_at = uplink->conn != NULL ? conn_heard_at(uplink->conn) : 0;
    return nanos_add(nanos_max(sent_at, heard_at), uplink_answer_timeout(uplink, margin));
}

/* While connecting: a first packet that is lost is sent again after a second. */
#define STALL_CONNECTING (3000 * NANOS_PER_MS)

uint64_t uplink_stall_timeout(const struct uplink *uplink) {
    uint64_t fixed = nanos_from_ms(uplink->context->options.stall_timeout_ms);
    if (fixed != 0) {
        return fixed;
    }
    uint64_t usual = uplink->state == UPLINK_CONNECTING
                         ? STALL_CONNECTING
                         : 2 * uplink_answer_timeout(uplink, ANSWER_MARGIN);
    return nanos_max(usual, OPTIONS_STALL_MIN);
}

/* The longest time that a lookup may take, unless stall_timeout is longer. */
#define LOOKUP_MAX (5000 * NANOS_PER_MS)

/*
 * Returns the timeout of a lookup. Its question or answer may be lost, so the first lookup is given
 * up soon; but a name server may be slow, so each unanswered lookup doubles the time.
 */
static uint64_t lookup_timeout(const struct uplink *uplink) {
    uint64_t timeout = options_stall(&uplink->context->options);
    for (uint32_t i = 0; i < uplink->unanswered && timeout < LOOKUP_MAX; i++) {
        timeout = nanos_min(2 * timeout, LOOKUP_MAX);
    }
    return timeout;
}

/* ---- life ---- */

static redlock_status need_tls(struct uplink *uplink, const char *where, redlock_error *error) {
    redlock_error cause;
    redlock_status status = context_need_tls(uplink->context, &cause);
    return status == REDLOCK_OK ? status : error_set(error, status, "%s: %s", where, cause.message);
}

redlock_status uplink_init(struct uplink *uplink, struct context *context,
                           const struct uplink_listener *listener, enum handshake_purpose purpose,
                           uint32_t position, const char *text, redlock_error *error) {
    char where[32];
    snprintf(where, sizeof(where), "nodes[%" PRIu32 "]", position);
    *uplink = (struct uplink){.context = context, .listener = listener, .purpose = purpose};
    if (text == NULL) {
        return error_set(error, REDLOCK_EINVAL, "%s: NULL", where);
    }
    size_t length = strnlen(text, URI_MAX + 1);
    timer_init(&uplink->timer, context->loop, on_uplink_timer, uplink);
    uplink->storage = memory_alloc(&context->allocator, length + 3);
    if (uplink->storage == NULL) {
        return error_set(error, REDLOCK_ENOMEM, "out of memory");
    }
    redlock_status status = uri_parse(text, where, uplink->storage, &uplink->uri, error);
    if (status == REDLOCK_OK && uplink->uri.is_tls) {
        status = need_tls(uplink, where, error);
    }
    if (status == REDLOCK_OK) {
        uri_name(&uplink->uri, uplink->name);
        snprintf(uplink->reason, sizeof(uplink->reason), "not connected yet");
    }
    return status;
}

void uplink_start(struct uplink *uplink) {
    uplink->has_ended = false;
    uplink->attempts = uplink->unanswered = 0;
    connect_now(uplink);
}

void uplink_start_soon(struct uplink *uplink) {
    timer_soon(&uplink->timer);
}

void uplink_rest(struct uplink *uplink) {
    timer_clear(&uplink->timer);
}

static void cancel_lookup(struct uplink *uplink) {
    lookup_cancel(uplink->lookup);
    uplink->lookup = NULL;
}

void uplink_stop(struct uplink *uplink, const char *why) {
    cancel_lookup(uplink);
    if (uplink->conn != NULL) {
        conn_destroy(uplink->conn);
        uplink->conn = NULL;
    }
    set_state(uplink, UPLINK_DOWN);
    timer_clear(&uplink->timer); /* a NULL reply may have set the timer */
    snprintf(uplink->reason, sizeof(uplink->reason), "%s", why);
}

void uplink_finish(struct uplink *uplink) {
    timer_finish(&uplink->timer);
    if (uplink->storage != NULL) {
        memory_free(&uplink->context->allocator, uplink->storage);
        uplink->storage = NULL;
    }
}

/* ---- down, and up again ---- */

static uint64_t draw_delay(struct uplink *uplink, uint64_t now) {
    const redlock_options *options = &uplink->context->options;
    uint64_t longest = nanos_from_ms(options->reconnect_delay_max_ms);
    /* A connection that was UP for as long as the longest delay begins a new series. */
    if (uplink->state == UPLINK_UP && now - uplink->state_since >= longest) {
        uplink->attempts = 0;
    }
    uint64_t bound =
        backoff_bound(nanos_from_ms(options->reconnect_delay_ms), longest, uplink->attempts);
    uplink->attempts++;
    return backoff_draw(&uplink->context->seed, bound);
}

static void record_reason(struct uplink *uplink, const char *why) {
    struct text reason;
    text_init(&reason, uplink->reason, sizeof(uplink->reason));
    text_append_foreign(&reason, why, strlen(why));
    if (uplink->reason[0] == '\0') { /* a server may refuse with an empty error */
        text_append(&reason, "refused without a reason");
    }
}

static void go_down(struct uplink *uplink, const char *why) {
    uint64_t now = clock_now();
    uint64_t delay = draw_delay(uplink, now);
    uplink->disconnected++;
    uplink->has_ended = true;
    record_reason(uplink, why);
    set_state(uplink, UPLINK_DOWN);
    timer_set(&uplink->timer, nanos_add(now, delay));
    uplink->listener->on_down(uplink, now);
}

/*
 * Goes on to the next address of the name. The reported reason is a server's refusal at one
 * address, rather than a missing server at another.
 */
static void fail_to_connect(struct uplink *uplink, bool was_accepted, const char *why) {
    if (was_accepted || !uplink->was_accepted) {
        uplink->was_accepted = was_accepted;
        snprintf(uplink->failure, sizeof(uplink->failure), "%s", why);
    }
    if (uplink->address + 1 >= uplink->addresses.count) {
        go_down(uplink, uplink->failure);
        return;
    }
    EMIT(&uplink->context->events, address_failed, .node = uplink->name,
         .address = uplink->addresses.list[uplink->address], .reason = why);
    uplink->address++;
    connect_to_next(uplink);
}

static void on_closed(void *owner, const char *why) {
    struct uplink *uplink = owner;
    char reason[sizeof(uplink->reason)];
    bool was_accepted = conn_was_accepted(uplink->conn);
    /* A refused step explains the end better than the end of the socket does. */
    snprintf(reason, sizeof(reason), "%s", uplink->refusal[0] != '\0' ? uplink->refusal : why);
    conn_destroy(uplink->conn);
    uplink->conn = NULL;
    if (uplink->state == UPLINK_CONNECTING) { /* another address may be a server that works */
        fail_to_connect(uplink, was_accepted, reason);
    } else {
        go_down(uplink, reason);
    }
}

static void on_net_room(void *owner) {
    struct uplink *uplink = owner;
    uplink->listener->on_room(uplink);
}

static void on_net_message(void *owner, const char *text, size_t length) {
    struct uplink *uplink = owner;
    uplink->listener->on_message(uplink, text, length);
}

static void on_net_key_change(void *owner, const char *key, size_t length) {
    struct uplink *uplink = owner;
    uplink->listener->on_change(uplink, key, length);
}

static const struct conn_listener conn_listener = {
    .on_closed = on_closed,
    .on_room = on_net_room,
    .on_message = on_net_message,
    .on_change = on_net_key_change,
};

static void go_up(struct uplink *uplink) {
    set_state(uplink, UPLINK_UP);
    uplink->reason[0] = '\0';
    if (!reply_denies_access(uplink->refusal)) { /* otherwise it explains an end that may follow */
        uplink->refusal[0] = '\0';
    }
    uplink->listener->on_up(uplink);
}

/* ---- the handshake ---- */

/*
 * The longest pause before scripts are asked for again. All clients of a server that was restarted
 * come back within moments, and find the same scripts missing: the first one whose pause ends loads
 * them. The pause is much longer than the server needs to connect a few hundred clients.
 */
#define SEARCH_PAUSE_MAX (500 * NANOS_PER_MS)

static void pause_search(struct uplink *uplink) {
    uint64_t pause = backoff_draw_late(&uplink->context->seed, SEARCH_PAUSE_MAX);
    uplink->search = SCRIPTS_PAUSED;
    timer_set(&uplink->timer, nanos_add(clock_now(), pause));
}

static void ask_again(struct uplink *uplink, uint64_t now) {
    uplink->search = SCRIPTS_ASKED_AGAIN;
    handshake_ask(&uplink->handshake, uplink->handshake.missing, now);
    timer_set(&uplink->timer, nanos_add(now, uplink_stall_timeout(uplink)));
    context_wake(uplink->context);
}

static void load_scripts(struct uplink *uplink, uint32_t scripts) {
    uplink->search = SCRIPTS_LOADED;
    handshake_load(&uplink->handshake, scripts, clock_now());
    context_wake(uplink->context);
}

static void on_handshake_done(void *owner) {
    struct uplink *uplink = owner;
    /* A command that was sent meanwhile may have carried the text. */
    uint32_t missing = uplink->handshake.missing & uplink->lacks;
    /* Without a quorum locks cannot be renewed, so nothing waits. */
    bool may_pause = uplink->has_ended && uplink->context->has_quorum;
    if (uplink->state != UPLINK_CONNECTING) {
        return;
    }
    if (missing == 0 || uplink->search == SCRIPTS_LOADED) {
        go_up(uplink);
    } else if (uplink->search == SCRIPTS_ASKED && may_pause) {
        pause_search(uplink);
    } else {
        load_scripts(uplink, missing);
    }
}

static void on_handshake_refusal(void *owner, const struct reply *reply, bool is_fatal) {
    struct uplink *uplink = owner;
    if (uplink->refusal[0] == '\0') { /* later refusals often follow from the first: NOAUTH */
        snprintf(uplink->refusal, sizeof(uplink->refusal), "%s", reply->text);
        uplink->listener->on_refusal(uplink, reply);
    }
    if (is_fatal) {
        uplink_drop(uplink, reply->text);
    }
}

static void on_script_found(void *owner, enum script script) {
    struct uplink *uplink = owner;
    uplink->lacks &= ~(UINT32_C(1) << script);
}

static const struct handshake_listener handshake_listener = {
    .on_done = on_handshake_done,
    .on_refusal = on_handshake_refusal,
    .on_script_found = on_script_found,
};

/* ---- connecting ---- */

/* Returns the mask of the scripts that a server has to be found to have. */
static uint32_t scripts_not_tried(void) {
    uint32_t mask = 0;
    for (unsigned i = 0; i < SCRIPT_COUNT; i++) {
        mask |= (uint32_t)(script_infos[i].delivery != SCRIPT_TRIED) << i;
    }
    return mask;
}

static void greet(struct uplink *uplink) {
    struct context *context = uplink->context;
    uplink->lacks = scripts_not_tried();
    uplink->search = SCRIPTS_ASKED;
    handshake_begin(&uplink->handshake, &handshake_listener, context, uplink->purpose, uplink->conn,
                    &uplink->uri, uplink->state_since);
    uplink->listener->on_connecting(uplink, uplink->state_since);
    if (uplink->purpose == HANDSHAKE_FOR_COMMANDS) {
        /*
         * Last, so that the uplink comes UP only after the answer to the guard's first beat: if the
         * server lacked the script, the beat has been sent again by then, ahead of any command.
         */
        handshake_ask(&uplink->handshake, handshake_scripts(context), uplink->state_since);
    }
    timer_set(&uplink->timer, nanos_add(uplink->state_since, uplink_stall_timeout(uplink)));
    context_wake(context);
}

static void connect_to(struct uplink *uplink, const char *host) {
    struct context *context = uplink->context;
    const struct conn_address address = {
        .host = host,
        .port = uplink->uri.port,
        .path = uplink->uri.path,
        .tls = uplink->uri.is_tls ? context->tls : NULL,
        .name = uplink->uri.host,
    };
    redlock_error error;
    uplink->refusal[0] = '\0';
    set_state(uplink, UPLINK_CONNECTING);
    uplink->conn = conn_open(&context->net, &address, &conn_listener, uplink, &error);
    if (uplink->conn == NULL) {
        fail_to_connect(uplink, error.status == REDLOCK_EINVAL, error.message);
    } else {
        conn_count(uplink->conn, &uplink->traffic);
        greet(uplink);
    }
}

static void connect_to_next(struct uplink *uplink) {
    connect_to(uplink, uplink->addresses.list[uplink->address]);
}

static void on_resolved(void *arg, const struct addresses *addresses, const char *why) {
    struct uplink *uplink = arg;
    uplink->lookup = NULL;
    uplink->unanswered = 0;
    if (addresses == NULL) {
        char reason[sizeof(uplink->reason)];
        snprintf(reason, sizeof(reason), "%s cannot be resolved: %s", uplink->uri.host, why);
        go_down(uplink, reason);
        return;
    }
    uplink->addresses = *addresses;
    uplink->address = 0;
    connect_to_next(uplink);
}

static void connect_now(struct uplink *uplink) {
    const struct uri *uri = &uplink->uri;
    struct context *context = uplink->context;
    uplink->was_accepted = false;
    if (uri->path != NULL || resolver_is_numeric(uri->host)) { /* no name to look up */
        connect_to(uplink, uri->host);
        return;
    }
    set_state(uplink, UPLINK_RESOLVING);
    timer_set(&uplink->timer, nanos_add(uplink->state_since, lookup_timeout(uplink)));
    struct lookup *lookup = resolver_start(&context->resolver, uri->host, on_resolved, uplink);
    if (lookup != NULL) {
        uplink->lookup = lookup; /* NULL: on_resolved was called already */
    }
}

/* ---- watching ---- */

/*
 * The lateness of a timer that shows that the loop was away: commands that were queued before may
 * have just been written.
 */
#define LATE (50 * NANOS_PER_MS)

/* Returns whether the oldest command gets more time: once, after a late timer. */
static bool excuse(struct uplink *uplink, uint64_t oldest, uint64_t late) {
    if (late < LATE || uplink->excused == oldest) { /* on time, or excused before */
        return false;
    }
    uplink->excused = oldest;
    return true;
}

static void check_progress(struct uplink *uplink, uint64_t now) {
    uint64_t stall = uplink_stall_timeout(uplink);
    conn_read(uplink->conn); /* the loop may have been away: replies that have arrived count */
    uint64_t oldest = conn_oldest(uplink->conn);
    /* Any reply shows that the server is working on the commands, in order. */
    uint64_t due = nanos_add(nanos_max(oldest, conn_heard_at(uplink->conn)), stall);
    if (due <= now && excuse(uplink, oldest, now - due)) {
        due = nanos_add(now, stall);
    }
    if (due <= now) {
        char why[96];
        snprintf(why, sizeof(why), "stalled: no answer for %" PRIu64 " ms", nanos_to_ms(stall));
        conn_close(uplink->conn, why);
    } else if (due != NANOS_NEVER) { /* no command is open: the next one sets the timer */
        timer_set(&uplink->timer, due);
    }
}

static void on_uplink_timer(void *arg) {
    struct uplink *uplink = arg;
    switch (uplink->state) {
    case UPLINK_DOWN:
        connect_now(uplink);
        break;
    case UPLINK_RESOLVING:
        cancel_lookup(uplink);
        uplink->unanswered++;
        go_down(uplink, "the name lookup was not answered");
        break;
    case UPLINK_CONNECTING:
    case UPLINK_UP:
        if (uplink->search == SCRIPTS_PAUSED) {
            ask_again(uplink, clock_now());
        } else {
            check_progress(uplink, clock_now());
        }
        break;
    }
}

/* ---- commands ---- */

/* Makes the timer check for the answer to a request that was sent. */
static void watch_request(struct uplink *uplink, const struct conn_request *request) {
    /* Usually an earlier check sets the next one, soon enough for any timeout. */
    if (uplink->timer.at <= nanos_add(request->sent_at, OPTIONS_STALL_MIN)) {
        return;
    }
    uint64_t due = nanos_add(request->sent_at, uplink_stall_timeout(uplink));
    if (uplink->timer.at > due) {
        timer_set(&uplink->timer, due);
    }
}

bool uplink_send(struct uplink *uplink, struct conn_request *request, const char *data,
                 size_t length) {
    if (!conn_send(uplink->conn, request, data, length)) {
        return false;
    }
    watch_request(uplink, request);
    return true;
}

bool uplink_subscribe(struct uplink *uplink, struct conn_request *request, const char *channel,
                      const char *data, size_t length) {
    if (!conn_subscribe(uplink->conn, request, channel, data, length)) {
        return false;
    }
    watch_request(uplink, request);
    return true;
}

bool uplink_search(struct uplink *uplink, enum script script) {
    if (uplink->state != UPLINK_CONNECTING || uplink_is_new(uplink)) {
        return false;
    }
    uplink->handshake.missing |= UINT32_C(1) << script;
    return true;
}

void uplink_read(struct uplink *uplink) {
    if (uplink->conn != NULL) {
        conn_read(uplink->conn);
    }
}

void uplink_drop(struct uplink *uplink, const char *why) {
    if (uplink->conn != NULL) {
        conn_close(uplink->conn, why);
    }
}

bool uplink_was_reached(const struct uplink *uplink) {
    return uplink->conn != NULL && conn_was_open(uplink->conn);
}

uint64_t uplink_heard_at(const struct uplink *uplink) {
    return conn_heard_at(uplink->conn);
}

bool uplink_admits(const struct uplink *uplink, uint32_t most) {
    return uplink->conn == NULL || conn_admits(uplink->conn, most);
}

uint32_t uplink_commands(const struct uplink *uplink) {
    return uplink->conn != NULL ? conn_commands(uplink->conn) : 0;
}

size_t uplink_bytes(const struct uplink *uplink) {
    return uplink->conn != NULL ? conn_bytes(uplink->conn) : 0;
}

const char *uplink_refusal(const struct uplink *uplink) {
    if (reply_denies_access(uplink->refusal)) { /* this connection; otherwise the last one */
        return uplink->refusal;
    }
    return reply_denies_access(uplink->reason) ? uplink->reason : NULL;
}

const char *uplink_why_unreachable(const struct uplink *uplink) {
    return uplink->state != UPLINK_UP ? uplink->reason
                                      : "it was not connected then, max_commands or max_bytes was "
                                        "reached, or memory ran out";
}
