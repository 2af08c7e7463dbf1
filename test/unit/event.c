/* Tests events, and the log's line for each. */
#include "unit.h"

#include "core/event.h"
#include "core/event_log.h"
#include "core/event_names.h"
#include "core/event_view.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NO_FIELD(type, name)
#define NAME(name, fields) #name,
static const char *const names[] = {EVENTS(NAME, NO_FIELD)};

static uint64_t instant; /* reading of the log's clock */

static uint64_t now(void) {
    return instant;
}

/* The last line that was logged, and the number of lines. */
struct page {
    redlock_log_level level;
    char line[200];
    unsigned lines;
};

static void write_line(redlock_log_level level, const char *line, void *arg) {
    struct page *page = arg;
    page->level = level;
    page->lines++;
    snprintf(page->line, sizeof(page->line), "%s", line);
}

/* A page to which the log of some events is written. */
struct desk {
    struct page page;
    struct log log;
    struct event_log event_log;
    struct events events;
};

static void open_desk(struct desk *desk, redlock_log_level level) {
    *desk = (struct desk){.log = {.write = write_line, .arg = &desk->page, .level = level}};
    instant = MS(1);
    event_log_init(&desk->event_log, &desk->log, now);
    events_add(&desk->events, &desk->event_log.sink);
}

#define SAYS(desk, expected_level, expected_line)                                                  \
    do {                                                                                           \
        assert_string_equal((desk)->page.line, expected_line);                                     \
        assert_int_equal((desk)->page.level, expected_level);                                      \
    } while (0)

static void nodes_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, node_up, .node = "a:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:1: connected");
    EMIT(&desk.events, node_down, .node = "a:1", .reason = "refused", .retry_in = MS(20));
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: down: refused; next try in 20 ms");
    EMIT(&desk.events, node_down, .node = "a:1", .reason = "refused", .retry_in = MS(30),
         .is_repeated = true);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "node a:1: down: refused; next try in 30 ms");
    EMIT(&desk.events, node_trusted, .node = "a:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:1: trusted");
    EMIT(&desk.events, node_distrusted, .node = "a:1", .why = "it is a replica");
    SAYS(&desk, REDLOCK_LOG_ERROR, "node a:1: not trusted: it is a replica");
    EMIT(&desk.events, node_distrusted, .node = "a:1", .why = "it is young", .ends = true,
         .ends_in = MS(7));
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: not trusted for 7 ms more: it is young");
}

static void ills_of_nodes_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, node_refused, .node = "a:1", .why = "OOM");
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: refused: OOM");
    EMIT(&desk.events, node_refused, .node = "a:1", .why = "READONLY", .is_misconfigured = true);
    SAYS(&desk, REDLOCK_LOG_ERROR, "node a:1: refused: READONLY");
    EMIT(&desk.events, node_evicts, .node = "a:1", .policy = "allkeys-lru");
    SAYS(&desk, REDLOCK_LOG_WARN,
         "node a:1: its maxmemory-policy is allkeys-lru: it may evict locks (noeviction never "
         "does)");
    EMIT(&desk.events, node_slow, .node = "a:1", .takes = MS(41), .allowed = MS(50));
    SAYS(&desk, REDLOCK_LOG_WARN,
         "node a:1: its answers may take 41 ms, and 50 ms are allowed (node_timeout_ms; 0 "
         "follows the network)");
    EMIT(&desk.events, address_failed, .node = "a:1", .address = "10.0.0.1:1", .reason = "refused");
    SAYS(&desk, REDLOCK_LOG_DEBUG, "node a:1: not at 10.0.0.1:1: refused");
    EMIT(&desk.events, tracking_refused, .node = "a:1", .right = "", .why = "ERR");
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: no change notifications: refused: ERR");
    EMIT(&desk.events, tracking_refused, .node = "a:1", .right = "+get", .why = "NOPERM");
    SAYS(&desk, REDLOCK_LOG_WARN,
         "node a:1: no change notifications: refused, the user needs +get: NOPERM");
    EMIT(&desk.events, pending_releases_dropped, .node = "a:1", .releases = 1);
    SAYS(&desk, REDLOCK_LOG_WARN,
         "node a:1: no room to remember 1 more release; each key's TTL frees it");
    EMIT(&desk.events, pending_releases_dropped, .node = "a:1", .releases = 2);
    SAYS(&desk, REDLOCK_LOG_WARN,
         "node a:1: no room to remember 2 more releases; each key's TTL frees it");
}

static void changes_of_the_nodes_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, change_begun, .nodes = 3, .next = 5);
    SAYS(&desk, REDLOCK_LOG_INFO, "nodes: a quorum of 3 and of the next 5 is needed from now on");
    EMIT(&desk.events, change_committed, .nodes = 5);
    SAYS(&desk, REDLOCK_LOG_INFO, "nodes: changed, a quorum of 5 is needed");
    EMIT(&desk.events, change_abandoned, .nodes = 3);
    SAYS(&desk, REDLOCK_LOG_INFO, "nodes: the change is abandoned");
    EMIT(&desk.events, node_left, .node = "a:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:1: left");
    EMIT(&desk.events, connections_closed, .idle = 60 * UINT64_C(1000000000));
    SAYS(&desk, REDLOCK_LOG_INFO, "nodes: connections closed after 60000 ms without use");
}

static void channels_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, channel_up, .node = "a:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:1: its messages arrive");
    EMIT(&desk.events, channel_down, .node = "a:1", .reason = "refused", .retry_in = MS(20));
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:1: no messages: refused; next try in 20 ms");
    EMIT(&desk.events, channel_down, .node = "a:1", .reason = "refused", .retry_in = MS(30),
         .is_repeated = true);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "node a:1: no messages: refused; next try in 30 ms");
    EMIT(&desk.events, channel_refused, .node = "a:1", .why = "SUBSCRIBE is refused");
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: no messages: SUBSCRIBE is refused");
}

static void rounds_are_logged(void **state) {
    static const char *const rounds[] = {"acquire", "queue",   "raise",
                                         "renew",   "release", "diagnose"};
    static const char *const verdicts[] = {"open", "yes", "gone", "no"};
    struct desk desk;
    char line[100];
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    for (unsigned i = 0; i < COUNT_OF(rounds); i++) {
        EMIT(&desk.events, round_sent, .key = "k", .round = (enum round_kind)i);
        snprintf(line, sizeof(line), "lock k: %s round", rounds[i]);
        SAYS(&desk, REDLOCK_LOG_DEBUG, line);
    }
    for (unsigned i = 0; i < COUNT_OF(verdicts); i++) {
        EMIT(&desk.events, round_decided, .key = "k", .round = ROUND_RENEW,
             .verdict = (enum round_verdict)i);
        snprintf(line, sizeof(line), "lock k: renew round: decided: %s", verdicts[i]);
        SAYS(&desk, REDLOCK_LOG_DEBUG, line);
    }
}

static void votes_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, vote_cast, .key = "k", .node = "a:1", .vote = REDLOCK_VOTE_DENIED);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: acquire round: node a:1: denied");
    for (unsigned vote = 0; vote <= REDLOCK_VOTE_LATE; vote++) { /* each has a name */
        EMIT(&desk.events, vote_cast, .key = "k", .node = "a:1", .vote = (redlock_vote)vote);
        assert_null(strstr(desk.page.line, "null"));
    }
}

static void locks_are_logged(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    EMIT(&desk.events, lock_asked, .key = "k");
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: asked for");
    EMIT(&desk.events, lock_changed, .key = "k", .before = LEASE_ACQUIRING, .after = LEASE_HELD);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: acquiring -> held");
    EMIT(&desk.events, lock_changed, .key = "k", .before = LEASE_HELD, .after = LEASE_LOST);
    SAYS(&desk, REDLOCK_LOG_WARN, "lock k: held -> lost");
    EMIT(&desk.events, lock_acquired, .key = "k", .status = REDLOCK_OK, .tries = 2,
         .waited = MS(5));
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: on_acquired: REDLOCK_OK, tries: 2, in 5 ms");
    EMIT(&desk.events, lock_extended, .key = "k", .status = REDLOCK_EEXPIRED);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: on_extended: REDLOCK_EEXPIRED");
    EMIT(&desk.events, lock_lost, .key = "k", .status = REDLOCK_ELOST);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: on_lost: REDLOCK_ELOST");
    EMIT(&desk.events, lock_released, .key = "k", .status = REDLOCK_OK);
    SAYS(&desk, REDLOCK_LOG_DEBUG, "lock k: on_released: REDLOCK_OK");
}

/* A log does not want events all of whose lines are below its level. */
static void a_log_wants_what_its_level_wants(void **state) {
    static const struct {
        redlock_log_level level;
        unsigned wanted; /* number of kinds */
    } cases[] = {
        {REDLOCK_LOG_DEBUG, EVENT_COUNT},
        {REDLOCK_LOG_INFO, 18},
        {REDLOCK_LOG_WARN, 9},
        {REDLOCK_LOG_ERROR, 2},
    };
    struct desk desk;
    (void)state;

    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        open_desk(&desk, cases[i].level);
        assert_int_equal(__builtin_popcount(desk.events.wanted), cases[i].wanted);
    }
    desk = (struct desk){.log = {.write = NULL}};
    event_log_init(&desk.event_log, &desk.log, now);
    assert_int_equal(desk.event_log.sink.wanted, 0);
}

/* An event that is wanted may have a line below the level. */
static void a_line_below_the_level_is_not_written(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_WARN);
    EMIT(&desk.events, node_down, .node = "a:1", .reason = "refused", .is_repeated = true);
    assert_int_equal(desk.page.lines, 0);
}

#define LIMITED_LINE "lock k: held -> lost"

static void lose(struct desk *desk, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        EMIT(&desk->events, lock_changed, .key = "k", .before = LEASE_HELD, .after = LEASE_LOST);
    }
}

static void a_flood_is_limited_and_counted(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_INFO);
    lose(&desk, EVENT_LIMIT_BURST);
    assert_int_equal(desk.page.lines, EVENT_LIMIT_BURST);
    lose(&desk, 1000);
    assert_int_equal(desk.page.lines, EVENT_LIMIT_BURST);
    instant += MS(999);
    lose(&desk, 234);
    assert_int_equal(desk.page.lines, EVENT_LIMIT_BURST);
    instant += MS(1);
    lose(&desk, 1);
    SAYS(&desk, REDLOCK_LOG_WARN, LIMITED_LINE " (1234 such lines were left out)");
    lose(&desk, 1);
    instant += MS(1000);
    lose(&desk, 1);
    SAYS(&desk, REDLOCK_LOG_WARN, LIMITED_LINE " (1 such line was left out)");
    instant += MS(EVENT_LIMIT_BURST * 1000);
    lose(&desk, EVENT_LIMIT_BURST);
    SAYS(&desk, REDLOCK_LOG_WARN, LIMITED_LINE);
    assert_int_equal(desk.page.lines, 2 * EVENT_LIMIT_BURST + 2);
}

static void each_node_and_kind_has_its_limit(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_INFO);
    for (unsigned i = 0; i < 2 * EVENT_LIMIT_BURST; i++) {
        EMIT(&desk.events, node_up, .node = "a:1");
    }
    assert_int_equal(desk.page.lines, EVENT_LIMIT_BURST);
    EMIT(&desk.events, node_up, .node = "b:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node b:1: connected");
    EMIT(&desk.events, node_down, .node = "a:1", .reason = "refused", .retry_in = MS(20));
    SAYS(&desk, REDLOCK_LOG_WARN, "node a:1: down: refused; next try in 20 ms");
}

/* Nodes beyond those that are remembered share a limit, until those have been quiet. */
static void more_nodes_than_are_remembered_are_limited(void **state) {
    struct desk desk;
    char node[20];
    (void)state;

    open_desk(&desk, REDLOCK_LOG_INFO);
    for (unsigned i = 0; i < EVENT_LIMIT_NODES + 1000; i++) {
        snprintf(node, sizeof(node), "a:%u", i);
        EMIT(&desk.events, node_up, .node = node);
    }
    assert_int_equal(desk.page.lines, EVENT_LIMIT_NODES + EVENT_LIMIT_BURST);
    EMIT(&desk.events, node_up, .node = "a:0");
    SAYS(&desk, REDLOCK_LOG_INFO, "node a:0: connected");
    instant += MS(1000);
    EMIT(&desk.events, node_up, .node = "b:1");
    SAYS(&desk, REDLOCK_LOG_INFO, "node b:1: connected");
}

/* All lines of DEBUG are wanted, and an ERROR is never suppressed. */
static void details_and_errors_are_not_limited(void **state) {
    struct desk desk;
    (void)state;

    open_desk(&desk, REDLOCK_LOG_DEBUG);
    for (unsigned i = 0; i < 100; i++) {
        EMIT(&desk.events, lock_asked, .key = "k");
        EMIT(&desk.events, node_refused, .node = "a:1", .why = "READONLY",
             .is_misconfigured = true);
    }
    assert_int_equal(desk.page.lines, 200);
}

/* A sink that remembers the last kind that it received. */
struct memory {
    struct event_sink sink;
    const char *last;
    unsigned count;
};

static void remember(struct event_sink *sink, const struct event *event) {
    struct memory *memory = (struct memory *)sink;
    memory->last = names[event->kind];
    memory->count++;
}

static void each_sink_is_handed_what_it_wants(void **state) {
    struct memory ups = {.sink = {.wanted = 1u << EVENT_node_up, .on_event = remember}};
    struct memory all = {.sink = {.wanted = ~0u, .on_event = remember}};
    struct events events = {.first = NULL};
    (void)state;

    events_add(&events, &ups.sink);
    EMIT(&events, lock_lost, .key = "k");
    assert_int_equal(ups.count, 0);
    events_add(&events, &all.sink);
    EMIT(&events, lock_lost, .key = "k");
    assert_int_equal(ups.count, 0);
    assert_string_equal(all.last, "lock_lost");
    EMIT(&events, node_up, .node = "a:1");
    assert_string_equal(ups.last, "node_up");
    assert_string_equal(all.last, "node_up");
    assert_int_equal(all.count, 2);
}

/* ---- events as passed to the trace hook ---- */

/* Views an event, and asserts the parts that all events have. */
static void view_event(struct event_view *view, const struct event *event, const char *name,
                       const char *node, uint64_t request) {
    event_view_init(view, event);
    assert_string_equal(view->event.name, name);
    assert_string_equal(view->event.node, node);
    assert_int_equal(view->event.request, request);
}

static void assert_text(const struct event_view *view, size_t i, const char *name,
                        const char *text) {
    assert_true(i < view->event.field_count);
    assert_string_equal(view->event.fields[i].name, name);
    assert_string_equal(view->event.fields[i].text, text);
}

static void assert_number(const struct event_view *view, size_t i, const char *name,
                          uint64_t number) {
    assert_true(i < view->event.field_count);
    assert_string_equal(view->event.fields[i].name, name);
    assert_null(view->event.fields[i].text);
    assert_int_equal(view->event.fields[i].number, number);
}

static void events_are_viewed(void **state) {
    const struct event down = {
        .kind = EVENT_node_down,
        .node_down = {.node = "a:1", .reason = "refused", .retry_in = MS(20), .is_repeated = true}};
    const struct event vote = {.kind = EVENT_vote_cast,
                               .vote_cast = {.request = 7,
                                             .key = "k",
                                             .round = ROUND_RENEW,
                                             .node = "a:1",
                                             .vote = REDLOCK_VOTE_LATE}};
    struct event_view view;
    (void)state;

    view_event(&view, &down, "node_down", "a:1", 0);
    assert_int_equal(view.event.field_count, 3);
    assert_text(&view, 0, "reason", "refused");
    assert_number(&view, 1, "retry_in", MS(20));
    assert_number(&view, 2, "is_repeated", 1);
    view_event(&view, &vote, "vote_cast", "a:1", 7);
    assert_int_equal(view.event.field_count, 3);
    assert_text(&view, 0, "key", "k");
    assert_text(&view, 1, "round", "renew");
    assert_text(&view, 2, "vote", "late");
}

static void locks_are_viewed(void **state) {
    const struct event changed = {
        .kind = EVENT_lock_changed,
        .lock_changed = {.request = 1, .key = "k", .before = LEASE_HELD, .after = LEASE_LOST}};
    const struct event acquired = {
        .kind = EVENT_lock_acquired,
        .lock_acquired = {.key = "k", .status = REDLOCK_EHELD, .tries = 3, .waited = 5}};
    const struct event decided = {
        .kind = EVENT_round_decided,
        .round_decided = {.key = "k", .round = ROUND_DIAGNOSE, .verdict = ROUND_GONE}};
    struct event_view view;
    (void)state;

    view_event(&view, &changed, "lock_changed", "", 1);
    assert_text(&view, 1, "before", "held");
    assert_text(&view, 2, "after", "lost");
    view_event(&view, &acquired, "lock_acquired", "", 0);
    assert_text(&view, 1, "status", "REDLOCK_EHELD");
    assert_number(&view, 2, "tries", 3);
    assert_number(&view, 3, "waited", 5);
    view_event(&view, &decided, "round_decided", "", 0);
    assert_text(&view, 1, "round", "diagnose");
    assert_text(&view, 2, "verdict", "gone");
}

/* No kind has more fields than a view can hold. */
static void each_kind_has_a_view(void **state) {
    struct event_view view;
    (void)state;

    for (unsigned kind = 0; kind < EVENT_COUNT; kind++) {
        const struct event event = {.kind = (enum event_kind)kind};
        event_view_init(&view, &event);
        assert_string_equal(view.event.name, names[kind]);
        assert_int_in_range(view.event.field_count, 0, EVENT_FIELDS_MAX);
        assert_ptr_equal(view.event.fields, view.fields);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_logged),
        cmocka_unit_test(ills_of_nodes_are_logged),
        cmocka_unit_test(changes_of_the_nodes_are_logged),
        cmocka_unit_test(channels_are_logged),
        cmocka_unit_test(rounds_are_logged),
        cmocka_unit_test(votes_are_logged),
        cmocka_unit_test(locks_are_logged),
        cmocka_unit_test(a_log_wants_what_its_level_wants),
        cmocka_unit_test(a_line_below_the_level_is_not_written),
        cmocka_unit_test(a_flood_is_limited_and_counted),
        cmocka_unit_test(each_node_and_kind_has_its_limit),
        cmocka_unit_test(more_nodes_than_are_remembered_are_limited),
        cmocka_unit_test(details_and_errors_are_not_limited),
        cmocka_unit_test(each_sink_is_handed_what_it_wants),
        cmocka_unit_test(events_are_viewed),
        cmocka_unit_test(locks_are_viewed),
        cmocka_unit_test(each_kind_has_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
