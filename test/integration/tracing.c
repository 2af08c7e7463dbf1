/*
 * The trace of a client: each round, vote, change and callback of a request is an event with the
 * number of the request; and the timeline that the examples' script makes of such a trace.
 */
#include "clocks.h"
#include "harness.h"
#include "lines.h"
#include "master_data.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "orders:\"42\" \\%"
#define FIVE 5
#define TTL_MS 60000

/* ---- a trace ---- */

struct count {
    char name[32];
    uint64_t request;
    size_t count;
};

struct tracer {
    const redlock_client *client;
    uint64_t time_ns; /* time of the latest event */
    struct count counts[200];
    size_t kinds;
    FILE *file; /* receives a line for each event */
};

/* Adds `more` to the number of events of this name that a request had, and returns it. */
static size_t events_of(struct tracer *tracer, uint64_t request, const char *name, size_t more) {
    for (size_t i = 0; i < tracer->kinds; i++) {
        struct count *count = &tracer->counts[i];
        if (count->request == request && strcmp(count->name, name) == 0) {
            return count->count += more;
        }
    }
    if (more > 0) {
        struct count *count = &tracer->counts[tracer->kinds++];
        assert_true(tracer->kinds <= sizeof(tracer->counts) / sizeof(tracer->counts[0]));
        *count = (struct count){.request = request, .count = more};
        snprintf(count->name, sizeof(count->name), "%s", name);
    }
    return more;
}

static void record_event(const redlock_event *event, void *arg) {
    struct tracer *tracer = arg;

    assert_true(tracer->client == NULL || event->client == tracer->client);
    assert_true(event->time_ns >= tracer->time_ns);
    tracer->time_ns = event->time_ns;
    events_of(tracer, event->request, event->name, 1);
    trace_line(event, tracer->file);
}

static redlock_client *traced_client(struct fixture *f, struct tracer *tracer) {
    redlock_options options = patient_options(f, masters_uris(f->masters), FIVE);

    *tracer = (struct tracer){.file = tmpfile()};
    assert_non_null(tracer->file);
    options.trace = record_event;
    options.trace_arg = tracer;
    tracer->client = connect_with(f, &options);
    return (redlock_client *)(uintptr_t)tracer->client;
}

/* ---- its timeline ---- */

/* Returns the timeline that the script makes of a trace. */
static json_t *timeline_of(struct fixture *f, struct tracer *tracer) {
    char command[500];
    char path[300];
    json_error_t error;

    snprintf(path, sizeof(path), "%s/trace.txt", folder_for(f, "trace"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    rewind(tracer->file);
    for (int byte; (byte = getc(tracer->file)) != EOF;) {
        putc(byte, file);
    }
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof(command), "awk -f '%s' '%s'", TIMELINE, path);
    FILE *script = popen(command, "r");
    assert_non_null(script);
    json_t *timeline = json_loadf(script, 0, &error);
    if (timeline == NULL) {
        fail_msg("line %d: %s", error.line, error.text);
    }
    assert_int_equal(pclose(script), 0);
    return timeline;
}

/* Returns the text of a member; "" if there is none. */
static const char *member(const json_t *event, const char *name) {
    const char *text = json_string_value(json_object_get(event, name));

    return text != NULL ? text : "";
}

/* Returns the number of events of a request with this phase, category and, unless NULL, name. */
static size_t drawn(const json_t *timeline, uint64_t request, const char *phase,
                    const char *category, const char *name) {
    size_t count = 0, i;
    const json_t *event;

    json_array_foreach(json_object_get(timeline, "traceEvents"), i, event) {
        count += (uint64_t)json_integer_value(json_object_get(event, "tid")) == request &&
                 json_integer_value(json_object_get(event, "pid")) == 1 &&
                 strcmp(member(event, "ph"), phase) == 0 &&
                 strcmp(member(event, "cat"), category) == 0 &&
                 (name == NULL || strcmp(member(event, "name"), name) == 0);
    }
    return count;
}

/* Asserts that the timeline shows all events of a request. */
static void assert_drawn(struct tracer *tracer, const json_t *timeline, uint64_t request) {
    static const char *const reported[] = {"vote_cast",     "lock_asked", "lock_acquired",
                                           "lock_extended", "lock_lost",  "lock_released"};

    for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
        assert_int_equal(drawn(timeline, request, "i", reported[i], NULL),
                         events_of(tracer, request, reported[i], 0));
    }
    assert_int_equal(drawn(timeline, request, "b", "round", NULL),
                     events_of(tracer, request, "round_sent", 0));
    assert_int_equal(drawn(timeline, request, "e", "round", NULL),
                     drawn(timeline, request, "b", "round", NULL));
    /*
     * Each change ends one state. The last change starts no state, or one that ends with the trace.
     */
    assert_int_in_range(drawn(timeline, request, "X", "state", NULL),
                        events_of(tracer, request, "lock_changed", 0),
                        events_of(tracer, request, "lock_changed", 0) + 1);
}

/* ---- tests ---- */

static bool is_renewed(void *arg) {
    redlock_stats stats = {.size = sizeof(stats)};

    assert_int_equal(redlock_client_stats(arg, &stats), REDLOCK_OK);
    return stats.renewed == 1;
}

static void a_life_is_traced(void **state) {
    struct fixture *f = *state;
    struct tracer tracer;
    redlock_client *client = traced_client(f, &tracer);
    redlock_request request = request_for(KEY, TTL_MS);
    redlock_lock *lock;

    request.watchdog = true;
    lock = hold_for(f, client, &request);
    wait_all_answered(f, client);
    assert_int_equal(events_of(&tracer, 1, "lock_asked", 0), 1);
    assert_int_equal(events_of(&tracer, 1, "round_sent", 0), 1);
    assert_int_equal(events_of(&tracer, 1, "vote_cast", 0), FIVE);
    assert_int_equal(events_of(&tracer, 1, "lock_acquired", 0), 1);
    pass_time(TTL_MS / 3);
    run_until(f, is_renewed, client, "the lock is renewed");
    wait_all_answered(f, client);
    assert_int_equal(events_of(&tracer, 1, "vote_cast", 0), 2 * FIVE);
    assert_int_equal(let_go(f, lock), REDLOCK_OK);
    wait_all_answered(f, client);
    assert_int_equal(events_of(&tracer, 1, "round_sent", 0), 3);
    assert_int_equal(events_of(&tracer, 1, "round_decided", 0), 3);
    assert_int_equal(events_of(&tracer, 1, "vote_cast", 0), 3 * FIVE);
    assert_int_equal(events_of(&tracer, 1, "lock_released", 0), 1);
    assert_int_equal(events_of(&tracer, 0, "node_up", 0), FIVE);

    json_t *timeline = timeline_of(f, &tracer);
    assert_drawn(&tracer, timeline, 1);
    assert_int_equal(drawn(timeline, 1, "b", "round", "renew round"), 1);
    assert_int_equal(drawn(timeline, 1, "X", "state", "held"), 2);
    assert_int_equal(drawn(timeline, 1, "X", "state", "renewing"), 1);
    json_decref(timeline);
    close_client(f, client);
    fclose(tracer.file);
}

/* A request that fails, one that is lost, and nodes that are silent, leave and return. */
static void failures_are_traced(void **state) {
    struct fixture *f = *state;
    struct tracer tracer;
    redlock_client *client = traced_client(f, &tracer);
    redlock_request request = request_for(KEY, LONG_TTL_MS);
    struct loss *loss = watch_loss(f, &request);
    redlock_lock *lock = hold_for(f, client, &request);
    redlock_request other = request_for(KEY, LONG_TTL_MS);

    assert_ended(acquire(f, client, &other), REDLOCK_EHELD);
    send_to(f, 0, 3, "FLUSHALL");
    assert_int_equal(extend(f, lock, 0), REDLOCK_ELOST);
    assert_int_equal(wait_lost(f, loss), REDLOCK_ELOST);
    assert_int_equal(let_go(f, lock), REDLOCK_ELOST);
    freeze(f, 0);
    other.key = "third";
    struct call *call = acquire(f, client, &other);
    assert_ended(call, REDLOCK_OK);
    thaw(f, 0);
    masters_kill(f->masters, 1);
    wait_disconnected(f, client, 1, 1);
    assert_int_equal(let_go(f, call->lock), REDLOCK_OK);
    masters_restart(f->masters, 1);
    wait_connected(f, client, FIVE);
    wait_releases_done(f, client, 1);
    wait_all_answered(f, client);
    assert_int_equal(events_of(&tracer, 1, "lock_lost", 0), 1);
    assert_int_equal(events_of(&tracer, 1, "lock_extended", 0), 1);
    assert_int_equal(events_of(&tracer, 2, "lock_acquired", 0), 1);
    assert_true(events_of(&tracer, 0, "node_down", 0) > 0); /* an attempt may fail, too */

    json_t *timeline = timeline_of(f, &tracer);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_drawn(&tracer, timeline, i);
    }
    assert_int_equal(drawn(timeline, 1, "X", "state", "lost"), 1);
    json_decref(timeline);
    close_client(f, client);
    fclose(tracer.file);
}

/* The vote of a node that is silent at the deadline is an event, too. */
static void a_silence_is_traced(void **state) {
    struct fixture *f = *state;
    struct tracer tracer;
    redlock_client *client = traced_client(f, &tracer);
    redlock_request request = request_for(KEY, LONG_TTL_MS);

    freeze_masters(f, 0, 3);
    struct call *call = begin_acquire(f, client, &request);
    wait_answered(f, client, 3);
    wait_answered(f, client, 4);
    assert_int_equal(events_of(&tracer, 1, "vote_cast", 0), 2);
    pass_time(PATIENT_MS);
    assert_int_equal(await(f, call), REDLOCK_ENOQUORUM);
    thaw_masters(f, 0, 3);
    wait_all_answered(f, client);
    assert_int_in_range(events_of(&tracer, 1, "vote_cast", 0), FIVE, 4 * FIVE);
    close_client(f, client);
    fclose(tracer.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_FIVE_MASTERS(a_life_is_traced),
        ON_FIVE_MASTERS(failures_are_traced),
        ON_FIVE_MASTERS(a_silence_is_traced),
    };

    return cmocka_run_group_tests_name("tracing", tests, NULL, NULL);
}
