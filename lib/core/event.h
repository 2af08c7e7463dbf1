/*
 * The events of a client, declared once: each with its name and its fields. They are emitted where
 * a fact comes into being, and handed to sinks, of which the log is one (core/event_log.h). An
 * event that no sink wants costs one test of a bit.
 */
#ifndef REDLOCK_CORE_EVENT_H
#define REDLOCK_CORE_EVENT_H

#include "core/lease_state.h"
#include "core/round.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * EVENT(name, fields), FIELD(type, name). Strings belong to the emitter, and are valid during the
 * call of a sink. Durations are in nanoseconds unless their name says otherwise.
 *
 * node_*        an uplink changes state, or the verdict on a node's trust changes
 * channel_*     a node's messages arrive, arrive no more, or are refused: once until they arrive
 * round_sent    a round's command is on its way, or will be at the end of the turn
 * vote_cast     a node's vote is counted in its round
 * round_decided a vote, or the deadline, has decided the round
 * lock_changed  a lease changes state
 * lock_*        the application is told: before its callback
 */
#define EVENTS(EVENT, FIELD)                                                                       \
    EVENT(node_up, FIELD(const char *, node))                                                      \
    EVENT(node_down, FIELD(const char *, node) FIELD(const char *, reason)                         \
                         FIELD(uint64_t, retry_in) FIELD(bool, is_repeated))                       \
    EVENT(node_trusted, FIELD(const char *, node))                                                 \
    EVENT(node_distrusted, FIELD(const char *, node) FIELD(const char *, why)                      \
                               FIELD(uint64_t, ends_in) FIELD(bool, ends))                         \
    EVENT(channel_up, FIELD(const char *, node))                                                   \
    EVENT(channel_down, FIELD(const char *, node) FIELD(const char *, reason)                      \
                            FIELD(uint64_t, retry_in) FIELD(bool, is_repeated))                    \
    EVENT(channel_refused, FIELD(const char *, node) FIELD(const char *, why))                     \
    EVENT(round_sent, FIELD(const char *, key) FIELD(enum round_kind, round))                      \
    EVENT(vote_cast, FIELD(const char *, key) FIELD(enum round_kind, round)                        \
                         FIELD(const char *, node) FIELD(redlock_vote, vote))                      \
    EVENT(round_decided, FIELD(const char *, key) FIELD(enum round_kind, round)                    \
                             FIELD(enum round_verdict, verdict))                                   \
    EVENT(lock_changed,                                                                            \
          FIELD(const char *, key) FIELD(enum lease_state, before) FIELD(enum lease_state, after)) \
    EVENT(lock_acquired, FIELD(const char *, key) FIELD(redlock_status, status)                    \
                             FIELD(uint32_t, tries) FIELD(uint64_t, waited))                       \
    EVENT(lock_extended, FIELD(const char *, key) FIELD(redlock_status, status))                   \
    EVENT(lock_lost, FIELD(const char *, key) FIELD(redlock_status, status))                       \
    EVENT(lock_released, FIELD(const char *, key) FIELD(redlock_status, status))

#define EVENT_MEMBER(type, name) type name;
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
    uint32_t wanted; /* by any of them */
};

/* Adds a sink, which must live as long as `events`; its mask must not change afterwards. */
static inline void events_add(struct events *events, struct event_sink *sink) {
    sink->next = events->first;
    events->first = sink;
    events->wanted |= sink->wanted;
}

static inline bool events_want(const struct events *events, enum event_kind kind) {
    return __builtin_expect(events->wanted >> kind & 1, 0);
}

/* Hands an event to each sink that wants it. */
void events_emit(const struct events *events, const struct event *event);

/* EMIT(events, node_up, .node = name): the fields are not evaluated where no sink wants it. */
#define EMIT(events, name, ...)                                                                    \
    do {                                                                                           \
        if (events_want((events), EVENT_##name)) {                                                 \
            const struct event emitted = {.kind = EVENT_##name, .name = {__VA_ARGS__}};            \
            events_emit((events), &emitted);                                                       \
        }                                                                                          \
    } while (0)

#endif
