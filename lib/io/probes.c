#include "io/probes.h"

#include "core/event_view.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* The number of attached tracers, which the tracers write. */
static volatile unsigned short tracers __attribute__((section(".probes"), used));

/* Each probe names a semaphore of its own; all are aliases of `tracers`. */
#define NO_FIELD(type, name)
#define SEMAPHORE(name, fields)                                                                    \
    extern unsigned short redlock_##name##_semaphore                                               \
        __attribute__((alias("tracers"), visibility("hidden")));
EVENTS(SEMAPHORE, NO_FIELD)
#undef SEMAPHORE

/* ---- arguments ---- */

enum subject { OF_REQUEST = 1, OF_NODE = 2 };

/* The subjects of each kind of event: a mask of enum subject. */
#define SUBJECT_request OF_REQUEST
#define SUBJECT_node OF_NODE
#define SUBJECT_text 0
#define SUBJECT_nanos 0
#define SUBJECT_number 0
#define SUBJECT_flag 0
#define SUBJECT_round 0
#define SUBJECT_verdict 0
#define SUBJECT_vote 0
#define SUBJECT_state 0
#define SUBJECT_status 0
#define ADD_SUBJECT(type, name) | SUBJECT_##type
#define SUBJECTS(name, fields) [EVENT_##name] = 0 fields,
static const unsigned subjects[] = {EVENTS(SUBJECTS, ADD_SUBJECT)};
#undef SUBJECTS
#undef ADD_SUBJECT

/* Maximum number of arguments that all tracers can read. */
#define ARGUMENTS_MAX 6

static void collect(uint64_t arguments[ARGUMENTS_MAX], const redlock_client *client,
                    const struct event *event) {
    struct event_view view;
    unsigned count = 0;
    event_view_init(&view, event);
    arguments[count++] = (uintptr_t)client;
    if (subjects[event->kind] & OF_REQUEST) {
        arguments[count++] = view.event.request;
    }
    if (subjects[event->kind] & OF_NODE) {
        arguments[count++] = (uintptr_t)view.event.node;
    }
    for (size_t i = 0; i < view.event.field_count && count < ARGUMENTS_MAX; i++) {
        const redlock_event_field *field = &view.fields[i];
        arguments[count++] = field->text != NULL ? (uintptr_t)field->text : field->number;
    }
    while (count < ARGUMENTS_MAX) {
        arguments[count++] = 0;
    }
}

/* ---- probes ---- */

/* The macros of <sys/sdt.h> pass no variadic arguments, which ISO C forbids. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
static void fire_probe(struct event_sink *sink, const struct event *event) {
    uint64_t with[ARGUMENTS_MAX];
    collect(with, ((const struct probes *)sink)->client, event);
    switch (event->kind) {
#define PROBE(name, fields)                                                                        \
    case EVENT_##name:                                                                             \
        STAP_PROBE6(redlock, name, with[0], with[1], with[2], with[3], with[4], with[5]);          \
        break;
        EVENTS(PROBE, NO_FIELD)
#undef PROBE
    case EVENT_COUNT:
    default: /* no other events exist */
        break;
    }
}
#pragma GCC diagnostic pop

bool probes_look(struct probes *probes) {
    uint32_t before = probes->sink.wanted;
    probes->sink.wanted = tracers > 0 ? (UINT32_C(1) << EVENT_COUNT) - 1 : 0;
    return probes->sink.wanted != before;
}

void probes_init(struct probes *probes, const redlock_client *client) {
    *probes = (struct probes){.sink.on_event = fire_probe, .client = client};
    probes_look(probes);
}
