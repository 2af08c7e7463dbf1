#include "core/event_view.h"

#include "core/event_names.h"

static void add_field(struct event_view *view, const char *name, const char *text,
                      uint64_t number) {
    view->fields[view->event.field_count++] =
        (redlock_event_field){.name = name, .text = text, .number = number};
}

/* ---- one for each type of field ---- */

static void add_request(struct event_view *view, const char *name, event_request request) {
    (void)name;
    view->event.request = request;
}

static void add_node(struct event_view *view, const char *name, event_node node) {
    (void)name;
    view->event.node = node;
}

static void add_text(struct event_view *view, const char *name, event_text text) {
    add_field(view, name, text, 0);
}

static void add_nanos(struct event_view *view, const char *name, event_nanos nanos) {
    add_field(view, name, NULL, nanos);
}

static void add_number(struct event_view *view, const char *name, event_number number) {
    add_field(view, name, NULL, number);
}

static void add_flag(struct event_view *view, const char *name, event_flag flag) {
    add_field(view, name, NULL, flag);
}

static void add_round(struct event_view *view, const char *name, event_round round) {
    add_field(view, name, event_round_name(round), 0);
}

static void add_verdict(struct event_view *view, const char *name, event_verdict verdict) {
    add_field(view, name, event_verdict_name(verdict), 0);
}

static void add_vote(struct event_view *view, const char *name, event_vote vote) {
    add_field(view, name, event_vote_name(vote), 0);
}

static void add_state(struct event_view *view, const char *name, event_state state) {
    add_field(view, name, lease_state_name(state), 0);
}

static void add_status(struct event_view *view, const char *name, event_status status) {
    add_field(view, name, redlock_status_name(status), 0);
}

/* ---- one for each kind of event ---- */

#define ADD_FIELD(type, field) add_##type(view, #field, given->field);
#define ADDER(kind, fields)                                                                        \
    static void add_fields_of_##kind(struct event_view *view, const struct event *event) {         \
        const struct event_##kind *given = &event->kind;                                           \
        fields                                                                                     \
    }
EVENTS(ADDER, ADD_FIELD)
#undef ADDER
#undef ADD_FIELD

#define NO_FIELD(type, name)
#define ROW(name, fields) [EVENT_##name] = {#name, add_fields_of_##name},
static const struct {
    const char *name;
    void (*add_fields)(struct event_view *view, const struct event *event);
} rows[] = {EVENTS(ROW, NO_FIELD)};
#undef ROW
#undef NO_FIELD

void event_view_init(struct event_view *view, const struct event *event) {
    view->event = (redlock_event){
        .name = rows[event->kind].name, .node = "", .fields = view->fields, .field_count = 0};
    rows[event->kind].add_fields(view, event);
}
