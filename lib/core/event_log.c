#include "core/event_log.h"

#include "base/nanos.h"
#include "core/event_names.h"
#include "core/event_view.h"

#include <inttypes.h>
#include <stdarg.h>

/*
 * Returns whether a line may be written now, and stores in `left_out` how many lines were left out
 * before it. An ERROR asks for action by an operator, and only comes with a change of a node: it is
 * not limited.
 */
static bool may_say(struct event_log *log, const struct event *event, redlock_log_level level,
                    uint64_t *left_out) {
    if (!log_wants(log->log, level)) {
        return false;
    }
    /* DEBUG is meant to show every line, and no ERROR may be lost: neither is limited. */
    if (level != REDLOCK_LOG_INFO && level != REDLOCK_LOG_WARN) {
        return true;
    }
    struct event_view view;
    event_view_init(&view, event);
    return event_limits_take(&log->limits, event->kind, view.event.node, log->now(), left_out);
}

/* Writes a line about an event, unless the level or a limit forbids it. */
__attribute__((format(printf, 4, 5))) static void say(struct event_log *log,
                                                      const struct event *event,
                                                      redlock_log_level level, const char *format,
                                                      ...) {
    uint64_t left_out = 0;
    if (may_say(log, event, level, &left_out)) {
        va_list arguments;
        va_start(arguments, format);
        log_line(log->log, level, left_out, format, arguments);
        va_end(arguments);
    }
}

/* ---- a line for each kind ---- */

static void log_node_up(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "node %s: connected", event->node_up.node);
}

static void log_node_down(struct event_log *log, const struct event *event) {
    const struct event_node_down *down = &event->node_down;
    say(log, event, down->is_repeated ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_WARN,
        "node %s: down: %s; next try in %" PRIu64 " ms", down->node, down->reason,
        nanos_to_ms(down->retry_in));
}

static void log_node_trusted(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "node %s: trusted", event->node_trusted.node);
}

static void log_node_distrusted(struct event_log *log, const struct event *event) {
    const struct event_node_distrusted *distrusted = &event->node_distrusted;
    if (distrusted->ends) {
        say(log, event, REDLOCK_LOG_WARN, "node %s: not trusted for %" PRIu64 " ms more: %s",
            distrusted->node, nanos_to_ms(distrusted->ends_in), distrusted->why);
    } else {
        say(log, event, REDLOCK_LOG_ERROR, "node %s: not trusted: %s", distrusted->node,
            distrusted->why);
    }
}

static void log_channel_up(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "node %s: its messages arrive", event->channel_up.node);
}

static void log_channel_down(struct event_log *log, const struct event *event) {
    const struct event_channel_down *down = &event->channel_down;
    say(log, event, down->is_repeated ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_INFO,
        "node %s: no messages: %s; next try in %" PRIu64 " ms", down->node, down->reason,
        nanos_to_ms(down->retry_in));
}

static void log_channel_refused(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_WARN, "node %s: no messages: %s", event->channel_refused.node,
        event->channel_refused.why);
}

static void log_node_refused(struct event_log *log, const struct event *event) {
    const struct event_node_refused *refused = &event->node_refused;
    say(log, event, refused->is_misconfigured ? REDLOCK_LOG_ERROR : REDLOCK_LOG_WARN,
        "node %s: refused: %s", refused->node, refused->why);
}

static void log_node_evicts(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_WARN,
        "node %s: its maxmemory-policy is %s: it may evict locks (noeviction never does)",
        event->node_evicts.node, event->node_evicts.policy);
}

static void log_node_slow(struct event_log *log, const struct event *event) {
    const struct event_node_slow *slow = &event->node_slow;
    say(log, event, REDLOCK_LOG_WARN,
        "node %s: its answers may take %" PRIu64 " ms, and %" PRIu64
        " ms are allowed (node_timeout_ms; 0 follows the network)",
        slow->node, nanos_to_ms(slow->takes), nanos_to_ms(slow->allowed));
}

static void log_address_failed(struct event_log *log, const struct event *event) {
    const struct event_address_failed *failed = &event->address_failed;
    say(log, event, REDLOCK_LOG_DEBUG, "node %s: not at %s: %s", failed->node, failed->address,
        failed->reason);
}

static void log_tracking_refused(struct event_log *log, const struct event *event) {
    const struct event_tracking_refused *refused = &event->tracking_refused;
    say(log, event, REDLOCK_LOG_WARN, "node %s: no change notifications: refused%s%s: %s",
        refused->node, refused->right[0] != '\0' ? ", the user needs " : "", refused->right,
        refused->why);
}

static void log_pending_releases_dropped(struct event_log *log, const struct event *event) {
    const struct event_pending_releases_dropped *dropped = &event->pending_releases_dropped;
    say(log, event, REDLOCK_LOG_WARN,
        "node %s: no room to remember %" PRIu64 " more release%s; each key's TTL frees it",
        dropped->node, dropped->releases, dropped->releases == 1 ? "" : "s");
}

static void log_node_left(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "node %s: left", event->node_left.node);
}

static void log_connections_closed(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "nodes: connections closed after %" PRIu64 " ms without use",
        nanos_to_ms(event->connections_closed.idle));
}

static void log_change_begun(struct event_log *log, const struct event *event) {
    const struct event_change_begun *begun = &event->change_begun;
    say(log, event, REDLOCK_LOG_INFO,
        "nodes: a quorum of %" PRIu64 " and of the next %" PRIu64 " is needed from now on",
        begun->nodes, begun->next);
}

static void log_change_committed(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_INFO, "nodes: changed, a quorum of %" PRIu64 " is needed",
        event->change_committed.nodes);
}

static void log_change_abandoned(struct event_log *log, const struct event *event) {
    (void)event;
    say(log, event, REDLOCK_LOG_INFO, "nodes: the change is abandoned");
}

static void log_round_sent(struct event_log *log, const struct event *event) {
    const struct event_round_sent *sent = &event->round_sent;
    say(log, event, REDLOCK_LOG_DEBUG, "lock %s: %s round", sent->key,
        event_round_name(sent->round));
}

static void log_vote_cast(struct event_log *log, const struct event *event) {
    const struct event_vote_cast *vote = &event->vote_cast;
    say(log, event, REDLOCK_LOG_DEBUG, "lock %s: %s round: node %s: %s", vote->key,
        event_round_name(vote->round), vote->node, event_vote_name(vote->vote));
}

static void log_round_decided(struct event_log *log, const struct event *event) {
    const struct event_round_decided *decided = &event->round_decided;
    say(log, event, REDLOCK_LOG_DEBUG, "lock %s: %s round: decided: %s", decided->key,
        event_round_name(decided->round), event_verdict_name(decided->verdict));
}

static void log_lock_asked(struct event_log *log, const struct event *event) {
    say(log, event, REDLOCK_LOG_DEBUG, "lock %s: asked for", event->lock_asked.key);
}

static void log_lock_changed(struct event_log *log, const struct event *event) {
    const struct event_lock_changed *changed = &event->lock_changed;
    say(log, event, changed->after == LEASE_LOST ? REDLOCK_LOG_WARN : REDLOCK_LOG_DEBUG,
        "lock %s: %s -> %s", changed->key, lease_state_name(changed->before),
        lease_state_name(changed->after));
}

static void log_lock_acquired(struct event_log *log, const struct event *event) {
    const struct event_lock_acquired *acquired = &event->lock_acquired;
    say(log, event, REDLOCK_LOG_DEBUG,
        "lock %s: on_acquired: %s, tries: %" PRIu64 ", in %" PRIu64 " ms", acquired->key,
        redlock_status_name(acquired->status), acquired->tries, nanos_to_ms(acquired->waited));
}

static void log_callback(struct event_log *log, const struct event *event, const char *key,
                         const char *callback, redlock_status status) {
    say(log, event, REDLOCK_LOG_DEBUG, "lock %s: %s: %s", key, callback,
        redlock_status_name(status));
}

static void log_lock_extended(struct event_log *log, const struct event *event) {
    log_callback(log, event, event->lock_extended.key, "on_extended", event->lock_extended.status);
}

static void log_lock_lost(struct event_log *log, const struct event *event) {
    log_callback(log, event, event->lock_lost.key, "on_lost", event->lock_lost.status);
}

static void log_lock_released(struct event_log *log, const struct event *event) {
    log_callback(log, event, event->lock_released.key, "on_released", event->lock_released.status);
}

/* ---- the sink ---- */

#define NO_FIELD(type, name)
#define WRITER(name, fields) [EVENT_##name] = log_##name,
static void (*const writers[])(struct event_log *log,
                               const struct event *event) = {EVENTS(WRITER, NO_FIELD)};
#undef WRITER
#undef NO_FIELD

/* The highest level of a kind's lines; DEBUG is the default. */
static const redlock_log_level levels[EVENT_COUNT] = {
    [EVENT_node_up] = REDLOCK_LOG_INFO,
    [EVENT_node_down] = REDLOCK_LOG_WARN,
    [EVENT_node_trusted] = REDLOCK_LOG_INFO,
    [EVENT_node_distrusted] = REDLOCK_LOG_ERROR,
    [EVENT_channel_up] = REDLOCK_LOG_INFO,
    [EVENT_channel_down] = REDLOCK_LOG_INFO,
    [EVENT_channel_refused] = REDLOCK_LOG_WARN,
    [EVENT_node_refused] = REDLOCK_LOG_ERROR,
    [EVENT_node_evicts] = REDLOCK_LOG_WARN,
    [EVENT_node_slow] = REDLOCK_LOG_WARN,
    [EVENT_tracking_refused] = REDLOCK_LOG_WARN,
    [EVENT_pending_releases_dropped] = REDLOCK_LOG_WARN,
    [EVENT_node_left] = REDLOCK_LOG_INFO,
    [EVENT_connections_closed] = REDLOCK_LOG_INFO,
    [EVENT_change_begun] = REDLOCK_LOG_INFO,
    [EVENT_change_committed] = REDLOCK_LOG_INFO,
    [EVENT_change_abandoned] = REDLOCK_LOG_INFO,
    [EVENT_lock_changed] = REDLOCK_LOG_WARN,
};

static void log_event(struct event_sink *sink, const struct event *event) {
    writers[event->kind]((struct event_log *)sink, event);
}

void event_log_init(struct event_log *event_log, const struct log *log, uint64_t (*now)(void)) {
    *event_log = (struct event_log){.sink = {.on_event = log_event}, .log = log, .now = now};
    for (unsigned kind = 0; kind < EVENT_COUNT; kind++) {
        /* A kind that the level excludes then costs one test of a bit where it is emitted. */
        if (log_wants(log, levels[kind])) {
            event_log->sink.wanted |= UINT32_C(1) << kind;
        }
    }
}
