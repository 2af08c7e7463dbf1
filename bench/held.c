/*
 * A run is a walk through the phases below. A timer ends each phase, except for the acquisitions,
 * which end with the last of them. After 1/3 of the time held comes the incident, if one was
 * requested: the application is busy, or masters stop.
 *
 * The client has the default timeouts, because renewals must work with those. An acquisition may
 * retry for a while, because a whole window of acquisitions is in progress at a time, and each
 * waits for the others.
 */
#include "held.h"

#include "client.h"
#include "clock.h"
#include "histogram.h"
#include "load.h"
#include "loop_lag.h"
#include "masters.h"
#include "naming.h"
#include "progress.h"
#include "tally.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READY_POLL_S 0.005
#define READY_LIMIT_S 5.0
#define IN_FLIGHT 500
#define ACQUIRE_LIMIT_MS 30000

enum phase { CONNECTING, ACQUIRING, HOLDING, CLOSING, CLOSED };

struct held {
    struct event_base *base;
    const struct held_settings *settings;
    redlock_client *client;
    struct held_result *result;

    enum phase phase;
    bool given_up; /* whether there is no result to report */
    struct event *phase_timer;
    struct event *busy_timer;
    struct loop_lag *lag;
    struct outage *outage; /* NULL: none requested */

    size_t asked; /* number of acquisitions begun */
    size_t under_way;
    uint64_t acquired;
    struct clock_mark began;                /* start of the phase */
    double busy_us;                         /* CPU time of the application's busy loop */
    struct tally before[REDLOCK_MAX_NODES]; /* of each master, when the time held started */
    char first_error[512];                  /* "" if none so far */
};

static void enter(struct held *held, enum phase phase) {
    held->phase = phase;
    held->began = clock_mark();
}

static double in_phase_s(const struct held *held) {
    return clock_seconds(held->began, clock_mark());
}

/* ---------------------------------------------------------------------------------- the end */

static void on_closed(void *arg) {
    struct held *held = arg;

    held->phase = CLOSED;
    event_base_loopbreak(held->base);
}

static void close_client(struct held *held) {
    held->phase = CLOSING;
    redlock_client_close(held->client, on_closed, held);
}

static double resident_mb(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%*u %lu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* Records the means over the masters that still answer. */
static void record_scripts(const struct held *held) {
    size_t first = held->settings->stop;
    size_t count = masters_count(held->settings->masters);
    struct held_result *result = held->result;
    struct tally sum = {0};
    double master_s = (double)(count - first) * result->duration_s;

    for (size_t i = first; i < count; i++) {
        struct tally now = tally_read(held->settings->masters, i);

        sum.renewals += now.renewals - held->before[i].renewals;
        sum.script_calls += now.script_calls - held->before[i].script_calls;
        sum.script_us += now.script_us - held->before[i].script_us;
    }
    result->renewals_per_s = (double)sum.renewals / master_s;
    result->script_calls_per_s = (double)sum.script_calls / master_s;
    result->script_us_per_s = (double)sum.script_us / master_s;
}

static void record_lateness(const struct held *held) {
    const struct histogram *lateness = loop_lag_lateness(held->lag);
    struct held_result *result = held->result;

    result->late_p50_ms = (double)histogram_quantile(lateness, 0.50) / 1e6;
    result->late_p99_ms = (double)histogram_quantile(lateness, 0.99) / 1e6;
    result->late_max_ms = (double)lateness->max / 1e6;
    result->late_work_ms = (double)loop_lag_work_ns(held->lag) / 1e6;
    result->busy_late_ms = (double)loop_lag_excluded_ns(held->lag) / 1e6;
}

static void end_holding(struct held *held) {
    struct clock_mark now = clock_mark();
    struct held_result *result = held->result;

    loop_lag_stop(held->lag);
    now.cpu_us -= held->busy_us;
    result->duration_s = clock_seconds(held->began, now);
    result->client_cores = clock_cores(held->began, now);
    result->held = held->acquired - result->lost;
    result->rss_mb = resident_mb();
    record_scripts(held);
    record_lateness(held);
    if (held->outage != NULL && !outage_result(held->outage, &result->outage)) {
        fputs("redlock-bench: the spans around the stop are not over\n", stderr);
        held->given_up = true;
    }
    close_client(held);
}

/* ---------------------------------------------------------------------------- the time held */

static void on_busy(evutil_socket_t fd, short what, void *arg) {
    struct held *held = arg;
    struct clock_mark before = clock_mark();
    uint64_t until_ns = before.now_ns + held->settings->busy_ms * UINT64_C(1000000);

    (void)fd;
    (void)what;
    while (clock_now_ns() < until_ns) {
    }
    held->busy_us = clock_cpu_us() - before.cpu_us;
    loop_lag_exclude(held->lag);
}

static void begin_holding(struct held *held) {
    const struct held_settings *settings = held->settings;

    held->result->seconds_to_acquire = in_phase_s(held);
    for (size_t i = 0; i < masters_count(settings->masters); i++) {
        held->before[i] = tally_read(settings->masters, i);
    }
    enter(held, HOLDING);
    loop_lag_start(held->lag);
    if (settings->busy_ms > 0) {
        clock_arm(held->busy_timer, settings->duration_s / 3);
    }
    if (held->outage != NULL) {
        outage_start(held->outage);
    }
    clock_arm(held->phase_timer, settings->duration_s);
}

/* --------------------------------------------------------------------------------- the locks */

static void acquire_more(struct held *held);

static void failed(struct held *held, const char *error) {
    held->result->errors++;
    if (held->first_error[0] == '\0') {
        snprintf(held->first_error, sizeof(held->first_error), "%s", error);
    }
}

static void on_lost(redlock_lock *lock, redlock_status status, void *arg) {
    struct held *held = arg;

    if (status != REDLOCK_ECLOSED) {
        held->result->lost++;
        redlock_release(lock, NULL, NULL);
    }
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct held *held = arg;

    held->under_way--;
    if (status == REDLOCK_OK) {
        held->acquired++;
    } else {
        failed(held, redlock_explain(lock));
    }
    acquire_more(held);
}

static bool acquire_next(struct held *held) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    char key[LOAD_KEY_SIZE];

    load_format_key(key, held->asked++);
    request.key = key;
    request.ttl_ms = held->settings->ttl_ms;
    request.wait_ms = ACQUIRE_LIMIT_MS;
    request.watchdog = true;
    request.fenced = held->settings->fenced;
    request.on_lost = on_lost;
    request.on_lost_arg = held;
    return redlock_acquire(held->client, &request, on_acquired, held, NULL) == REDLOCK_OK;
}

/*
 * Keeps a window of acquisitions in progress. After the last has begun, the phase ends when none is
 * in progress: all locks are held or have failed.
 */
static void acquire_more(struct held *held) {
    while (held->under_way < IN_FLIGHT && held->asked < held->settings->locks) {
        if (acquire_next(held)) {
            held->under_way++;
        } else {
            failed(held, redlock_client_error(held->client));
        }
    }
    if (held->under_way == 0) {
        begin_holding(held);
    }
}

/* -------------------------------------------------------------------------------- the phases */

static void wait_for_nodes(struct held *held) {
    bool over = in_phase_s(held) > READY_LIMIT_S;

    if (client_is_ready(held->client, over ? stderr : NULL)) {
        enter(held, ACQUIRING);
        acquire_more(held);
    } else if (over) {
        held->given_up = true;
        close_client(held);
    } else {
        clock_arm(held->phase_timer, READY_POLL_S);
    }
}

static void on_phase_timer(evutil_socket_t fd, short what, void *arg) {
    struct held *held = arg;

    (void)fd;
    (void)what;
    if (held->phase == CONNECTING) {
        wait_for_nodes(held);
    } else if (held->phase == HOLDING) {
        end_holding(held);
    }
}

static void write_progress(void *arg, char *line, size_t size) {
    const struct held *held = arg;

    if (held->phase == HOLDING) {
        snprintf(line, size, "%" PRIu64 " held for %.0f of %.0f s",
                 held->acquired - held->result->lost, in_phase_s(held), held->settings->duration_s);
    } else {
        snprintf(line, size, "%s: %" PRIu64 " of %zu acquired",
                 held->phase < HOLDING ? "acquiring" : "closing", held->acquired,
                 held->settings->locks);
    }
}

static int run(struct held *held) {
    struct held_result *result = held->result;
    struct progress *progress = progress_create(held->base, write_progress, held);
    int dispatched;

    enter(held, CONNECTING);
    clock_arm(held->phase_timer, READY_POLL_S);
    dispatched = event_base_dispatch(held->base);
    progress_destroy(progress);
    if (dispatched < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return -1;
    }
    if (held->first_error[0] != '\0') {
        fprintf(stderr, "redlock-bench: %" PRIu64 " errors; the first: %s\n", result->errors,
                naming_by_options(held->first_error));
    }
    if (held->given_up || held->phase != CLOSED) {
        return -1;
    }
    for (size_t i = held->settings->stop; i < masters_count(held->settings->masters); i++) {
        result->left += tally_keys_left(held->settings->masters, i);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------- the run */

static redlock_client *create_client(const struct held *held) {
    const struct masters *masters = held->settings->masters;

    return client_create(
        held->base, held->settings->nodes, masters_count(masters),
        client_options(0, held->settings->ttl_ms, held->settings->node_timeout_ms));
}

/*
 * Creates the outage. By the end of its second span, no lock has validity left from before the
 * masters stopped.
 */
static struct outage *create_outage(const struct held *held) {
    const struct held_settings *settings = held->settings;
    double third_s = settings->duration_s / 3;
    double ttl_s = (double)settings->ttl_ms / 1e3;
    const struct outage_settings outage = {
        .masters = settings->masters,
        .stop = settings->stop,
        .after_s = third_s,
        .span_s = third_s < ttl_s ? third_s : ttl_s,
        .lag = held->lag,
    };

    return outage_create(held->base, &outage);
}

static bool set_up(struct held *held) {
    held->phase_timer = clock_timer(held->base, on_phase_timer, held);
    held->busy_timer = clock_timer(held->base, on_busy, held);
    held->lag = loop_lag_create(held->base);
    if (held->settings->stop > 0) {
        held->outage = create_outage(held);
    }
    held->client = create_client(held);
    return held->client != NULL;
}

int held_run(struct event_base *base, const struct held_settings *settings,
             struct held_result *result) {
    struct held held = {.base = base, .settings = settings, .result = result};
    int outcome = -1;

    *result = (struct held_result){0};
    if (set_up(&held)) {
        outcome = run(&held);
    }
    outage_destroy(held.outage);
    loop_lag_destroy(held.lag);
    event_free(held.busy_timer);
    event_free(held.phase_timer);
    return outcome;
}
