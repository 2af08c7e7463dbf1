/*
 * redlock-bench: measures uncontended cycles of acquire and release on independent Redis masters,
 * many held locks, or keys for which many contenders compete.
 */
#include "clock.h"
#include "contend.h"
#include "crew.h"
#include "held.h"
#include "load.h"
#include "masters.h"
#include "measure.h"
#include "options.h"
#include "report.h"
#include "servers.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls exit(), so that the throwaway masters leave no folder. */
static void on_interrupt(evutil_socket_t signal_number, short what, void *arg) {
    (void)what;
    (void)arg;
    exit(128 + (int)signal_number);
}

static const struct load_kind *const load_kinds[] = {
    [LOAD_REDLOCK] = &redlock_load,
    [LOAD_STOCK] = &floor_load,
    [LOAD_EPOLL] = &epoll_load,
};

static int hold_and_report(struct event_base *base, const struct options *options,
                           struct masters *masters) {
    const struct held_settings settings = {
        .masters = masters,
        .locks = options->held,
        .ttl_ms = options->ttl_ms,
        .duration_s = options->duration_s,
        .busy_ms = options->busy_ms,
        .stop = options->stop,
        .fenced = options->fenced,
    };
    struct held_result result;
    int reported;

    if (held_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    reported =
        options->json ? report_held_json(&settings, &result) : report_held_text(&settings, &result);
    return reported == 0 && result.errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int contend_and_report(struct event_base *base, const struct options *options,
                              const struct masters *masters) {
    const struct contend_settings settings = {
        .nodes = masters != NULL ? masters_uris(masters) : options->nodes,
        .node_count = masters != NULL ? masters_count(masters) : options->node_count,
        .clients = options->clients,
        .processes = options->processes,
        .keys = options->keys,
        .hold_us = options->hold_us,
        .ttl_ms = options->ttl_ms,
        .fenced = options->fenced,
        .polls = options->poll,
        .duration_s = options->duration_s,
    };
    struct contend_result result;
    int reported;

    if (contend_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    reported = options->json ? report_contend_json(&settings, &result)
                             : report_contend_text(&settings, &result);
    return reported == 0 && result.errors == 0 && result.acquisitions > 0 ? EXIT_SUCCESS
                                                                          : EXIT_FAILURE;
}

static int cycle_and_report(struct event_base *base, const struct options *options,
                            const struct servers *servers) {
    const struct load_kind *kind = load_kinds[options->load];
    struct measure_settings settings = {
        .nodes = servers != NULL ? servers_uris(servers) : options->nodes,
        .node_count = servers != NULL ? servers_count(servers) : options->node_count,
        .servers = servers,
        .in_flight = options->in_flight,
        .rate = (double)options->rate,
        .hold_us = options->hold_us,
        .cycles = options->cycles,
        .duration_s = options->duration_s,
        .ttl_ms = options->ttl_ms,
        .fenced = options->fenced,
        .mode = options->mode,
    };
    struct keys *keys = NULL;
    struct measure_result result;
    int outcome;

    if (options->spread.kind != KEYS_UNIQUE) {
        keys = keys_create(&options->spread);
        settings.keys = keys;
    }
    outcome = crew_run(base, kind, &settings, options->threads, &result);
    keys_destroy(keys);
    if (outcome != 0) {
        return EXIT_FAILURE;
    }
    outcome = options->json ? report_cycles_json(kind->name, options, &settings, &result)
                            : report_cycles_text(kind->name, options, &settings, &result);
    return outcome == 0 && result.errors == 0 && result.cycles > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(struct event_base *base, const struct options *options) {
    struct servers *servers = NULL;
    int outcome;

    if (options->spawn > 0) {
        servers = servers_start(options->spawn, options->null_masters);
        if (servers == NULL) {
            return EXIT_FAILURE;
        }
    }
    if (options->contend) {
        outcome = contend_and_report(base, options, servers_masters(servers));
    } else if (options->held > 0) {
        outcome = hold_and_report(base, options, servers_masters(servers));
    } else {
        outcome = cycle_and_report(base, options, servers);
    }
    servers_finish(servers);
    return outcome;
}

int main(int argc, char **argv) {
    struct options options;
    struct event_base *base;
    struct event *interrupt = NULL;
    struct event *termination = NULL;
    int outcome = EXIT_FAILURE;

    options_parse(&options, argc, argv);
    /* A master that disconnects shows as a write error. */
    signal(SIGPIPE, SIG_IGN);

    base = clock_create_base();
    if (base != NULL) {
        interrupt = evsignal_new(base, SIGINT, on_interrupt, NULL);
        termination = evsignal_new(base, SIGTERM, on_interrupt, NULL);
    }
    if (interrupt != NULL && termination != NULL && event_add(interrupt, NULL) == 0 &&
        event_add(termination, NULL) == 0) {
        outcome = run(base, &options);
    }

    if (interrupt != NULL) {
        event_free(interrupt);
    }
    if (termination != NULL) {
        event_free(termination);
    }
    if (base != NULL) {
        event_base_free(base);
    }
    options_finish(&options);
    return outcome;
}
