/*
 * This process only forks the contending processes and queries the nodes: for round trips before
 * the contest, and during it for the commands that they got. A timer walks through the phases.
 *
 * The commands are counted from one reading of INFO to another. Because the readings take time,
 * they are compared with the acquisitions between the same two instants, not with those of the
 * measured stretch.
 */
#include "contend.h"

#include "clock.h"
#include "contenders.h"
#include "memory.h"
#include "naming.h"
#include "probe.h"
#include "progress.h"
#include "shares.h"

#include <event2/event.h>
#include <inttypes.h>
#include <math.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define READY_POLL_S 0.005
#define ROUND_TRIPS 200
/*
 * From the instant at which all contenders have begun, the warm-up lasts until there were as many
 * acquisitions as contenders.
 */
#define WARM_UP_S 0.2
#define WARM_UP_MOST_S 3.0
#define WARM_UP_MOST_OF_CLIENT_S 0.02
/* The watch lasts until it has seen this many commands, which takes longer on a busy machine. */
#define WATCH_S 0.3
#define WATCH_MOST_S 3.0
#define WATCHED 1000
#define STABILIZE_S 0.3
#define END_LIMIT_S 20.0
#define END_LIMIT_OF_PROCESS_S 0.02

enum phase { CONNECTING, BEGINNING, WARMING_UP, STABILIZING, MEASURING, ENDING };

/* The counts of one node, and of the contenders, at an instant. */
struct reading {
    double commands;
    uint64_t acquired;
};

struct contend {
    struct event_base *base;
    const struct contend_settings *settings;
    struct contenders_settings contenders;
    struct probe *probes[REDLOCK_MAX_NODES];
    struct probe *watcher;
    struct board *board;
    struct workers *workers;
    struct event *child_event;
    struct event *timer;
    enum phase phase;
    uint64_t began_ns;        /* instant from which all contenders contend */
    uint64_t acquired_before; /* acquisitions until then */
    bool given_up;            /* whether there is no result to report */
    struct histogram quorum_trips;
    struct shares shares;
    struct reading readings[REDLOCK_MAX_NODES];
    double commands; /* commands sent to all nodes for each acquisition */
    struct board_totals totals;
};

static void give_up(struct contend *contend) {
    contend->given_up = true;
    event_base_loopbreak(contend->base);
}

static void enter(struct contend *contend, enum phase phase, double next_s) {
    contend->phase = phase;
    clock_arm(contend->timer, next_s);
}

/* ------------------------------------------------------------------------------ the readings */

static bool read_node(struct contend *contend, size_t node, struct reading *reading) {
    reading->acquired = board_acquired(contend->board);
    return probe_count_commands(contend->probes[node], &contend->shares, &reading->commands);
}

static bool read_before(struct contend *contend) {
    for (size_t i = 0; i < contend->settings->node_count; i++) {
        if (!read_node(contend, i, &contend->readings[i])) {
            return false;
        }
    }
    return true;
}

static bool read_after(struct contend *contend) {
    for (size_t i = 0; i < contend->settings->node_count; i++) {
        const struct reading *before = &contend->readings[i];
        struct reading after;

        if (!read_node(contend, i, &after)) {
            return false;
        }
        contend->commands +=
            (after.commands - before->commands) / (double)(after.acquired - before->acquired);
    }
    return true;
}

/* -------------------------------------------------------------------------------- the phases */

static void begin(struct contend *contend) {
    board_open(contend->board);
    workers_begin(contend->workers);
    enter(contend, BEGINNING, contenders_begin_s(contend->settings->processes));
}

static void warm_up(struct contend *contend) {
    contend->began_ns = clock_now_ns();
    contend->acquired_before = board_acquired(contend->board);
    enter(contend, WARMING_UP, WARM_UP_S);
}

static double seconds_until(uint64_t instant_ns) {
    uint64_t now_ns = clock_now_ns();

    return now_ns < instant_ns ? (double)(instant_ns - now_ns) / 1e9 : 0;
}

static bool is_warm(const struct contend *contend) {
    double lasted_s = (double)(clock_now_ns() - contend->began_ns) / 1e9;
    size_t clients = contend->settings->clients;

    return lasted_s >= WARM_UP_MOST_S + WARM_UP_MOST_OF_CLIENT_S * (double)clients ||
           board_acquired(contend->board) - contend->acquired_before >= clients;
}

static void watch(struct contend *contend) {
    uint64_t from_ns;

    if (!probe_watch(contend->watcher, &(struct probe_stretch){WATCH_S, WATCH_MOST_S, WATCHED},
                     &contend->shares)) {
        give_up(contend);
    }
    probe_close(contend->watcher);
    contend->watcher = NULL;
    from_ns = clock_now_ns() + (uint64_t)(STABILIZE_S * 1e9);
    board_schedule(contend->board, from_ns,
                   from_ns + (uint64_t)(contend->settings->duration_s * 1e9));
    enter(contend, STABILIZING, STABILIZE_S);
}

static void end(struct contend *contend) {
    board_cut_off(contend->board, &contend->totals);
    if (!read_after(contend)) {
        give_up(contend);
    }
    workers_end(contend->workers);
    enter(contend, ENDING,
          END_LIMIT_S + END_LIMIT_OF_PROCESS_S * (double)contend->settings->processes);
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
    struct contend *contend = arg;

    (void)fd;
    (void)what;
    switch (contend->phase) {
    case CONNECTING:
        if (contend->board->ready == contend->settings->processes) {
            begin(contend);
        } else {
            clock_arm(contend->timer, READY_POLL_S);
        }
        break;
    case BEGINNING:
        warm_up(contend);
        break;
    case WARMING_UP:
        if (is_warm(contend)) {
            watch(contend);
        } else {
            clock_arm(contend->timer, READY_POLL_S);
        }
        break;
    case STABILIZING:
        if (!read_before(contend)) {
            give_up(contend);
        }
        enter(contend, MEASURING, seconds_until(contend->board->to_ns));
        break;
    case MEASURING:
        end(contend);
        break;
    case ENDING:
        fputs("redlock-bench: some processes did not end\n", stderr);
        give_up(contend);
        break;
    }
}

static void on_child(evutil_socket_t fd, short what, void *arg) {
    struct contend *contend = arg;

    (void)fd;
    (void)what;
    if (!workers_reap(contend->workers)) {
        give_up(contend);
    } else if (workers_running(contend->workers) == 0) {
        event_base_loopbreak(contend->base);
    }
}

/* -------------------------------------------------------------------------------- the result */

static double median_us(const struct histogram *histogram) {
    return histogram->count > 0 ? (double)histogram_quantile(histogram, 0.50) / 1e3 : NAN;
}

static void fill_in(const struct contend *contend, struct contend_result *result) {
    const struct contend_settings *settings = contend->settings;
    const struct board_totals *totals = &contend->totals;
    bool is_any = totals->served > 0;
    double turn_us = settings->duration_s * 1e6 * (double)settings->clients;

    *result = (struct contend_result){
        .acquisitions = totals->served,
        .errors = contend->board->errors,
        .wait_p50_us = median_us(&totals->wait),
        .wait_p99_us = is_any ? (double)histogram_quantile(&totals->wait, 0.99) / 1e3 : NAN,
        .wait_max_us = (double)totals->wait_max_ns / 1e3,
        .wait_ideal_us =
            is_any ? turn_us / (double)totals->served - (double)settings->hold_us : NAN,
        .fairness = totals->served_least > 0
                        ? (double)totals->served_most / (double)totals->served_least
                        : NAN,
        .commands = is_any && shares_sent(&contend->shares) > 0
                        ? contend->commands / (double)settings->node_count
                        : NAN,
        .handoff_us = median_us(&totals->handoff),
        .release_us = median_us(&totals->release),
        .round_trip_us = contend->board->round_trip_us,
        .quorum_trip_us = median_us(&contend->quorum_trips),
        .stall_ms = (double)totals->stall_ns / 1e6,
    };
}

/* ----------------------------------------------------------------------------------- the run */

static int work(size_t index, struct workers_orders orders, void *arg) {
    const struct contend *contend = arg;

    return contenders_run(&contend->contenders, index, orders);
}

static void write_progress(void *arg, char *line, size_t size) {
    const struct contend *contend = arg;

    snprintf(line, size, "%zu contenders, %" PRIu64 " acquisitions", contend->settings->clients,
             board_acquired(contend->board));
}

static int run(struct contend *contend, struct contend_result *result) {
    struct progress *progress;
    int dispatched;
    const struct board *board = contend->board;
    bool all_ended;

    contend->workers = workers_start(contend->settings->processes, work, contend);
    if (contend->workers == NULL) {
        return -1;
    }
    enter(contend, CONNECTING, READY_POLL_S);
    progress = progress_create(contend->base, write_progress, contend);
    dispatched = event_base_dispatch(contend->base);
    progress_destroy(progress);
    if (dispatched < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return -1;
    }
    all_ended = workers_running(contend->workers) == 0;
    workers_destroy(contend->workers);
    contend->workers = NULL;
    if (board->errors > 0) {
        fprintf(stderr, "redlock-bench: %" PRIu64 " errors; the first: %s\n", board->errors,
                naming_by_options(board->first_error));
    }
    if (contend->given_up || !all_ended) {
        return -1;
    }
    board_add_up(board, &contend->totals);
    fill_in(contend, result);
    return 0;
}

/* Connects to the nodes, and measures the round trips while the network is idle. */
static bool open_probes(struct contend *contend) {
    const struct contend_settings *settings = contend->settings;

    for (size_t i = 0; i < settings->node_count; i++) {
        contend->probes[i] = probe_open(settings->nodes[i]);
        if (contend->probes[i] == NULL) {
            return false;
        }
    }
    contend->watcher = probe_open(settings->nodes[0]);
    return contend->watcher != NULL && probe_quorum_trips(contend->probes, settings->node_count,
                                                          ROUND_TRIPS, &contend->quorum_trips);
}

static bool set_up(struct contend *contend) {
    const struct contend_settings *settings = contend->settings;
    const struct board_shape shape = {settings->clients, settings->processes, settings->keys};

    contend->child_event = evsignal_new(contend->base, SIGCHLD, on_child, contend);
    if (contend->child_event == NULL || event_add(contend->child_event, NULL) != 0) {
        memory_end();
    }
    contend->timer = clock_timer(contend->base, on_timer, contend);
    contend->board = board_create(&shape);
    contend->contenders = (struct contenders_settings){
        .nodes = settings->nodes,
        .node_count = settings->node_count,
        .ttl_ms = settings->ttl_ms,
        .node_timeout_ms = settings->node_timeout_ms,
        .hold_us = settings->hold_us,
        .fenced = settings->fenced,
        .polls = settings->polls,
        .board = contend->board,
    };
    return open_probes(contend);
}

static void tear_down(struct contend *contend) {
    workers_destroy(contend->workers);
    for (size_t i = 0; i < contend->settings->node_count; i++) {
        probe_close(contend->probes[i]);
    }
    probe_close(contend->watcher);
    board_destroy(contend->board);
    event_free(contend->timer);
    event_free(contend->child_event);
    free(contend);
}

int contend_run(struct event_base *base, const struct contend_settings *settings,
                struct contend_result *result) {
    struct contend *contend = memory_take(1, sizeof(*contend));
    int outcome = -1;

    contend->base = base;
    contend->settings = settings;
    if (set_up(contend)) {
        outcome = run(contend, result);
    }
    tear_down(contend);
    return outcome;
}
