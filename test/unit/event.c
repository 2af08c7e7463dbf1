/* Events, and the log's line for each. */
#include "unit.h"

#include "core/event.h"
#include "core/event_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NO_FIELD(type, name)
#define NAME(name, fields) #name,
static const char *const names[] = {EVENTS(NAME, NO_FIELD)};

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

/* A page that is written to by the log of some events. */
struct desk {
    struct page page;
    struct log log;
    struct event_log event_log;
    struct events events;
};

static void open_desk(struct desk *desk, redlock_log_level level) {
    *desk = (struct desk){.log = {.write = write_line, .arg = &desk->page, .level = level}};
    event_log_init(&desk->event_log, &desk->log);
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
    static const char *const rounds[] = {"acquire", "queue", "raise", "renew", "release", "settle"};
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

/* A log does not want the events all of whose lines are below its level. */
static void a_log_wants_what_its_level_wants(void **state) {
    static const struct {
        redlock_log_level level;
        unsigned wanted; /* number of kinds */
    } cases[] = {
        {REDLOCK_LOG_DEBUG, EVENT_COUNT},
        {REDLOCK_LOG_INFO, 8},
        {REDLOCK_LOG_WARN, 4},
        {REDLOCK_LOG_ERROR, 1},
    };
    struct desk desk;
    (void)state;

    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        open_desk(&desk, cases[i].level);
        assert_int_equal(__builtin_popcount(desk.events.wanted), cases[i].wanted);
    }
    desk = (struct desk){.log = {.write = NULL}};
    event_log_init(&desk.event_log, &desk.log);
    assert_int_equal(desk.event_log.sink.wanted, 0);
}

/* A sink that remembers the last kind that it was handed. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_logged),
        cmocka_unit_test(channels_are_logged),
        cmocka_unit_test(rounds_are_logged),
        cmocka_unit_test(votes_are_logged),
        cmocka_unit_test(locks_are_logged),
        cmocka_unit_test(a_log_wants_what_its_level_wants),
        cmocka_unit_test(each_sink_is_handed_what_it_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
