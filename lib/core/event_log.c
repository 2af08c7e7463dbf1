#include "core/event_log.h"

#include "base/nanos.h"

#include <inttypes.h>

static const char *name_of_round(enum round_kind round) {
    static const char *const names[] = {
        [ROUND_ACQUIRE] = "acquire", [ROUND_QUEUE] = "queue",     [ROUND_RAISE] = "raise",
        [ROUND_RENEW] = "renew",     [ROUND_RELEASE] = "release", [ROUND_SETTLE] = "settle",
    };
    return names[round];
}

static const char *name_of_verdict(enum round_verdict verdict) {
    static const char *const names[] = {
        [ROUND_OPEN] = "open", [ROUND_YES] = "yes", [ROUND_GONE] = "gone", [ROUND_NO] = "no"};
    return names[verdict];
}

static const char *name_of_vote(redlock_vote vote) {
    static const char *const names[] = {
        [REDLOCK_VOTE_NONE] = "none",
        [REDLOCK_VOTE_GRANTED] = "granted",
        [REDLOCK_VOTE_DENIED] = "denied",
        [REDLOCK_VOTE_WRONG_TYPE] = "wrong type",
        [REDLOCK_VOTE_NO_EXPIRY] = "no expiry",
        [REDLOCK_VOTE_MISSING] = "missing",
        [REDLOCK_VOTE_ERROR] = "error",
        [REDLOCK_VOTE_TIMEOUT] = "timeout",
        [REDLOCK_VOTE_UNREACHABLE] = "unreachable",
        [REDLOCK_VOTE_BROKEN] = "broken",
        [REDLOCK_VOTE_UNTRUSTED] = "untrusted",
        [REDLOCK_VOTE_LATE] = "late",
    };
    return names[vote];
}

/* ---- a line for each kind ---- */

static void log_node_up(const struct log *log, const struct event *event) {
    log_line(log, REDLOCK_LOG_INFO, "node %s: connected", event->node_up.node);
}

static void log_node_down(const struct log *log, const struct event *event) {
    const struct event_node_down *down = &event->node_down;
    log_line(log, down->is_repeated ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_WARN,
             "node %s: down: %s; next try in %" PRIu64 " ms", down->node, down->reason,
             nanos_to_ms(down->retry_in));
}

static void log_node_trusted(const struct log *log, const struct event *event) {
    log_line(log, REDLOCK_LOG_INFO, "node %s: trusted", event->node_trusted.node);
}

static void log_node_distrusted(const struct log *log, const struct event *event) {
    const struct event_node_distrusted *distrusted = &event->node_distrusted;
    if (distrusted->ends) {
        log_line(log, REDLOCK_LOG_WARN, "node %s: not trusted for %" PRIu64 " ms more: %s",
                 distrusted->node, nanos_to_ms(distrusted->ends_in), distrusted->why);
    } else {
        log_line(log, REDLOCK_LOG_ERROR, "node %s: not trusted: %s", distrusted->node,
                 distrusted->why);
    }
}

static void log_channel_up(const struct log *log, const struct event *event) {
    log_line(log, REDLOCK_LOG_INFO, "node %s: its messages arrive", event->channel_up.node);
}

static void log_channel_down(const struct log *log, const struct event *event) {
    const struct event_channel_down *down = &event->channel_down;
    log_line(log, down->is_repeated ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_INFO,
             "node %s: no messages: %s; next try in %" PRIu64 " ms", down->node, down->reason,
             nanos_to_ms(down->retry_in));
}

static void log_channel_refused(const struct log *log, const struct event *event) {
    log_line(log, REDLOCK_LOG_WARN, "node %s: no messages: %s", event->channel_refused.node,
             event->channel_refused.why);
}

static void log_round_sent(const struct log *log, const struct event *event) {
    const struct event_round_sent *sent = &event->round_sent;
    log_line(log, REDLOCK_LOG_DEBUG, "lock %s: %s round", sent->key, name_of_round(sent->round));
}

static void log_vote_cast(const struct log *log, const struct event *event) {
    const struct event_vote_cast *vote = &event->vote_cast;
    log_line(log, REDLOCK_LOG_DEBUG, "lock %s: %s round: node %s: %s", vote->key,
             name_of_round(vote->round), vote->node, name_of_vote(vote->vote));
}

static void log_round_decided(const struct log *log, const struct event *event) {
    const struct event_round_decided *decided = &event->round_decided;
    log_line(log, REDLOCK_LOG_DEBUG, "lock %s: %s round: decided: %s", decided->key,
             name_of_round(decided->round), name_of_verdict(decided->verdict));
}

static void log_lock_changed(const struct log *log, const struct event *event) {
    const struct event_lock_changed *changed = &event->lock_changed;
    log_line(log, changed->after == LEASE_LOST ? REDLOCK_LOG_WARN : REDLOCK_LOG_DEBUG,
             "lock %s: %s -> %s", changed->key, lease_state_name(changed->before),
             lease_state_name(changed->after));
}

static void log_lock_acquired(const struct log *log, const struct event *event) {
    const struct event_lock_acquired *acquired = &event->lock_acquired;
    log_line(log, REDLOCK_LOG_DEBUG,
             "lock %s: on_acquired: %s, tries: %" PRIu32 ", in %" PRIu64 " ms", acquired->key,
             redlock_status_name(acquired->status), acquired->tries, nanos_to_ms(acquired->waited));
}

static void log_callback(const struct log *log, const char *key, const char *callback,
                         redlock_status status) {
    log_line(log, REDLOCK_LOG_DEBUG, "lock %s: %s: %s", key, callback, redlock_status_name(status));
}

static void log_lock_extended(const struct log *log, const struct event *event) {
    log_callback(log, event->lock_extended.key, "on_extended", event->lock_extended.status);
}

static void log_lock_lost(const struct log *log, const struct event *event) {
    log_callback(log, event->lock_lost.key, "on_lost", event->lock_lost.status);
}

static void log_lock_released(const struct log *log, const struct event *event) {
    log_callback(log, event->lock_released.key, "on_released", event->lock_released.status);
}

/* ---- the sink ---- */

#define NO_FIELD(type, name)
#define WRITER(name, fields) [EVENT_##name] = log_##name,
static void (*const writers[])(const struct log *log,
                               const struct event *event) = {EVENTS(WRITER, NO_FIELD)};
#undef WRITER
#undef NO_FIELD

/* The highest level of a kind's lines; DEBUG is the default. */
static const redlock_log_level levels[EVENT_COUNT] = {
    [EVENT_node_up] = REDLOCK_LOG_INFO,         [EVENT_node_down] = REDLOCK_LOG_WARN,
    [EVENT_node_trusted] = REDLOCK_LOG_INFO,    [EVENT_node_distrusted] = REDLOCK_LOG_ERROR,
    [EVENT_channel_up] = REDLOCK_LOG_INFO,      [EVENT_channel_down] = REDLOCK_LOG_INFO,
    [EVENT_channel_refused] = REDLOCK_LOG_WARN, [EVENT_lock_changed] = REDLOCK_LOG_WARN,
};

static void on_event(struct event_sink *sink, const struct event *event) {
    writers[event->kind](((struct event_log *)sink)->log, event);
}

void event_log_init(struct event_log *event_log, const struct log *log) {
    event_log->log = log;
    event_log->sink = (struct event_sink){.on_event = on_event};
    for (unsigned kind = 0; kind < EVENT_COUNT; kind++) {
        if (log_wants(log, levels[kind])) {
            event_log->sink.wanted |= UINT32_C(1) << kind;
        }
    }
}
