/*
 * The events of a client, declared once: each with its name and its fields. They are emitted where
 * a fact becomes known, and handed to sinks, of which the log is one (core/event_log.h). An event
 * that no sink wants costs one test of a bit.
 */
#ifndef REDLOCK_CORE_EVENT_H
#define REDLOCK_CORE_EVENT_H

#include "core/lease_state.h"
#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * EVENT(name, fields), FIELD(type, name). The types of fields, each with its C type. Strings belong
 * to the emitter, and are valid until the sink returns. Durations are in nanoseconds.
 */
typedef uint64_t event_request; /* number of the request that the event is about; 0: none */
typedef const char *event_node; /* name of the node that the event is about */
typedef const char *event_text;
typedef uint64_t event_nanos;
typedef uint64_t event_number;
typedef bool event_flag;
typedef enum round_kind event_round;
typedef enum round_verdict event_verdict;
typedef redlock_vote event_vote;
typedef enum lease_state event_state;
typedef redlock_status event_status;

/*
 * node_*           an uplink changes state, or the verdict on a node's trust changes
 * channel_*        a node's messages arrive, stop, or are refused (once until they arrive again)
 * node_refused     a node's first error of its kind on a connection
 * node_evicts      a node's memory policy may evict locks; once
 * node_slow        a node's answers take so long that rounds may not wait for them; once
 * address_failed   one of several addresses of a node's name did not answer
 * tracking_refused a node sends no change notifications, because its user lacks `right` (or "")
 * pending_releases_dropped
 *                  pending releases of a node were dropped, because there is no room for them
 * node_left        a node is in no list any more
 * connections_closed
 *                  the client was idle for idle_close_ms
 * change_*         a change of the list of nodes begins or ends
 * round_sent       a round's command was sent, or will be at the end of the turn
 * vote_cast        a node's vote is counted in its round
 * round_decided    a vote, or the deadline, has decided the round
 * lock_asked       a request is accepted
 * lock_changed     a lease changes state
 * lock_*           the application is about to be notified by a callback
 */
#define EVENTS(EVENT, FIELD)                                                                       \
    EVENT(node_up, FIELD(node, node))                                                              \
    EVENT(node_down,                                                                               \
          FIELD(node, node) FIELD(text, reason) FIELD(nanos, retry_in) FIELD(flag, is_repeated))   \
    EVENT(node_trusted, FIELD(node, node))                                                         \
    EVENT(node_distrusted,                                                                         \
          FIELD(node, node) FIELD(text, why) FIELD(nanos, ends_in) FIELD(flag, ends))              \
    EVENT(channel_up, FIELD(node, node))                                                           \
    EVENT(channel_down,                                                                            \
          FIELD(node, node) FIELD(text, reason) FIELD(nanos, retry_in) FIELD(flag, is_repeated))   \
    EVENT(channel_refused, FIELD(node, node) FIELD(text, why))                                     \
    EVENT(node_refused, FIELD(node, node) FIELD(text, why) FIELD(flag, is_misconfigured))          \
    EVENT(node_evicts, FIELD(node, node) FIELD(text, policy))                                      \
    EVENT(node_slow, FIELD(node, node) FIELD(nanos, takes) FIELD(nanos, allowed))                  \
    EVENT(address_failed, FIELD(node, node) FIELD(text, address) FIELD(text, reason))              \
    EVENT(tracking_refused, FIELD(node, node) FIELD(text, right) FIELD(text, why))                 \
    EVENT(pending_releases_dropped, FIELD(node, node) FIELD(number, releases))                     \
    EVENT(node_left, FIELD(node, node))                                                            \
    EVENT(connections_closed, FIELD(nanos, idle))                                                  \
    EVENT(change_begun, FIELD(number, nodes) FIELD(number, next))                                  \
    EVENT(change_committed, FIELD(number, nodes))                                                  \
    EVENT(change_abandoned, FIELD(number, nodes))                                                  \
    EVENT(round_sent, FIELD(request, request) FIELD(text, key) FIELD(round, round))                \
    EVENT(vote_cast, FIELD(request, request) FIELD(text, key) FIELD(round, round)                  \
                         FIELD(node, node) FIELD(vote, vote))                                      \
    EVENT(round_decided,                                                                           \
          FIELD(request, request) FIELD(text, key) FIELD(round, round) FIELD(verdict, verdict))    \
    EVENT(lock_asked, FIELD(request, request) FIELD(text, key))                                    \
    EVENT(lock_changed,                                                                            \
          FIELD(request, request) FIELD(text, key) FIELD(state, before) FIELD(state, after))       \
    EVENT(lock_acquired, FIELD(request, request) FIELD(text, key) FIELD(status, status)            \
                             FIELD(number, tries) FIELD(nanos, waited))                            \
    EVENT(lock_extended, FIELD(request, request) FIELD(text, key) FIELD(status, status))           \
    EVENT(lock_lost, FIELD(request, request) FIELD(text, key) FIELD(status, status))               \
    EVENT(lock_released, FIELD(request, request) FIELD(text, key) FIELD(status, status))

/* The most fields of an event, not counting the request and the node. */
#define EVENT_FIELDS_MAX 4

#define EVENT_MEMBER(type, name) event_##type name;
#define EVENT_STRUCT(name, fields)                                                                 \
    struct event_##name {                                                                          \
        fields                                                                                     \
    };
EVENTS(EVENT_STRUCT, EVENT_MEMBER)
#undef EVENT_STRUCT
#undef EVENT_MEMBER

#define EVENT_NO_MEMBER(type, name)
#define EVENT_KIND(name, fields) EVENT_##name,
enum event_kind { EVENTS(EVENT_KIND, EVENT_NO_MEMBER) EVENT_COUNT };
#undef EVENT_KIND
_Static_assert(EVENT_COUNT < 32, "masks of events have 32 bits");

struct event {
    enum event_kind kind;
    union {
#define EVENT_IN_UNION(name, fields) struct event_##name name;
        EVENTS(EVENT_IN_UNION, EVENT_NO_MEMBER)
#undef EVENT_IN_UNION
    };
};
#undef EVENT_NO_MEMBER

/* A consumer of events. It must not call the library. */
struct event_sink {
    struct event_sink *next;
    uint32_t wanted; /* mask of 1 << enum event_kind */
    void (*on_event)(struct event_sink *sink, const struct event *event);
};

/* The sinks of a client. */
struct events {
    struct event_sink *first;
    uint32_t wanted; /* by any sink */
};

/* Recomputes `wanted` after the masks of sinks have changed. */
static inline void events_changed(struct events *events) {
    events->wanted = 0;
    for (const struct event_sink *sink = events->first; sink != NULL; sink = sink->next) {
        events->wanted |= sink->wanted;
    }
}

/* Adds a sink, which must live as long as `events`. */
static inline void events_add(struct events *events, struct event_sink *sink) {
    sink->next = events->first;
    events->first = sink;
    events_changed(events);
}

static inline bool events_want(const struct events *events, enum event_kind kind) {
    return __builtin_expect(events->wanted >> kind & 1, 0);
}

/* Hands an event to each sink that wants it. */
void events_emit(const struct events *events, const struct event *event);

/* EMIT(events, node_up, .node = name): the fields are not evaluated if no sink wants the event. */
#define EMIT(events, name, ...)                                                                    \
    do {                                                                                           \
        if (events_want((events), EVENT_##name)) {                                                 \
            const struct event emitted = {.kind = EVENT_##name, .name = {__VA_ARGS__}};            \
            events_emit((events), &emitted);                                                       \
        }                                                                                          \
    } while (0)

#endif
