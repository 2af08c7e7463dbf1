/*
 * redlock-bench: measures uncontended cycles of acquire and release on independent Redis masters,
 * many held locks, keys for which many contenders compete, cycles while other clients wait, or many
 * clients.
 */
#include "client.h"
#include "clock.h"
#include "contend.h"
#include "crew.h"
#include "crowd.h"
#include "fleet.h"
#include "held.h"
#include "load.h"
#include "measure.h"
#include "mixed.h"
#include "options.h"
#include "relay.h"
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

/* The nodes of a run. */
struct nodes {
    const char *const *uris; /* by way of the relay, if there is one */
    size_t count;
    struct servers *servers; /* NULL: others have started them */
};

/* Returns the exit code after a mode's result was reported (0), and was good. */
static int exit_code(int reported, bool is_good) {
    return reported == 0 && is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int hold_and_report(struct event_base *base, const struct options *options,
                           const struct nodes *nodes) {
    const struct held_settings settings = {
        .masters = servers_masters(nodes->servers),
        .nodes = nodes->uris,
        .locks = options->held,
        .ttl_ms = options->ttl_ms,
        .node_timeout_ms = options->node_timeout_ms,
        .duration_s = options->duration_s,
        .busy_ms = options->busy_ms,
        .stop = options->stop,
        .fenced = options->fenced,
    };
    struct held_result result;

    if (held_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    return exit_code(report_held(options, &settings, &result), result.errors == 0);
}

static int contend_and_report(struct event_base *base, const struct options *options,
                              const struct nodes *nodes) {
    const struct contend_settings settings = {
        .nodes = nodes->uris,
        .node_count = nodes->count,
        .clients = options->clients,
        .processes = options->processes,
        .keys = options->keys,
        .hold_us = options->hold_us,
        .ttl_ms = options->ttl_ms,
        .node_timeout_ms = options->node_timeout_ms,
        .fenced = options->fenced,
        .polls = options->poll,
        .duration_s = options->duration_s,
    };
    struct contend_result result;

    if (contend_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    return exit_code(report_contend(options, &settings, &result),
                     result.errors == 0 && result.acquisitions > 0);
}

static int cycle_and_report(struct event_base *base, const struct options *options,
                            const struct nodes *nodes) {
    const struct load_kind *kind = load_kinds[options->load];
    struct measure_settings settings = {
        .nodes = nodes->uris,
        .node_count = nodes->count,
        .servers = nodes->servers,
        .in_flight = options->in_flight,
        .rate = (double)options->rate,
        .hold_us = options->hold_us,
        .cycles = options->cycles,
        .duration_s = options->duration_s,
        .ttl_ms = options->ttl_ms,
        .node_timeout_ms = options->node_timeout_ms,
        .fenced = options->fenced,
        .mode = options->mode,
        .loop = options->loop,
    };
    const char *name = options->shares_client ? "redlock_mt" : kind->name;
    struct keys *keys = NULL;
    struct measure_result result;
    int outcome;

    if (options->shares_client) {
        settings.blocks = options->blocking > 0;
        settings.mt =
            client_create_shared(nodes->uris, nodes->count,
                                 client_options(options->threads * options->in_flight,
                                                options->ttl_ms, options->node_timeout_ms));
        if (settings.mt == NULL) {
            return EXIT_FAILURE;
        }
    }
    if (options->spread.kind != KEYS_UNIQUE) {
        keys = keys_create(&options->spread);
        settings.keys = keys;
    }
    outcome = crew_run(base, kind, &settings, options->threads, &result);
    keys_destroy(keys);
    redlock_mt_free(settings.mt);
    if (outcome != 0) {
        return EXIT_FAILURE;
    }
    return exit_code(report_cycles(name, options, &settings, &result),
                     result.errors == 0 && result.cycles > 0);
}

static int mix_and_report(struct event_base *base, const struct options *options,
                          const struct nodes *nodes) {
    const struct mixed_settings settings = {
        .masters = servers_masters(nodes->servers),
        .cycles =
            {
                .nodes = nodes->uris,
                .node_count = nodes->count,
                .servers = nodes->servers,
                .in_flight = options->in_flight,
                .duration_s = options->duration_s,
                .ttl_ms = options->ttl_ms,
                .node_timeout_ms = options->node_timeout_ms,
                .fenced = options->fenced,
            },
        .waiters = options->mixed,
    };
    struct mixed_result result;

    if (mixed_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    return exit_code(report_mixed(options, &settings, &result), result.errors == 0);
}

static int launch_and_report(struct event_base *base, const struct options *options,
                             const struct nodes *nodes) {
    const struct fleet_settings settings = {
        .masters = servers_masters(nodes->servers),
        .nodes = nodes->uris,
        .clients = options->fleet,
        .working_percent = options->working,
        .rate = options->rate,
        .ttl_ms = options->ttl_ms,
        .node_timeout_ms = options->node_timeout_ms,
        .duration_s = options->duration_s,
    };
    struct fleet_result result;

    if (fleet_run(base, &settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    return exit_code(report_fleet(options, &settings, &result), result.errors == 0);
}

static int run_mode(struct event_base *base, const struct options *options,
                    const struct nodes *nodes) {
    if (options->contend) {
        return contend_and_report(base, options, nodes);
    }
    if (options->held > 0) {
        return hold_and_report(base, options, nodes);
    }
    if (options->mixed > 0) {
        return mix_and_report(base, options, nodes);
    }
    if (options->fleet > 0) {
        return launch_and_report(base, options, nodes);
    }
    return cycle_and_report(base, options, nodes);
}

/* Starts the relay, if one is needed, and runs the mode. */
static int run_relayed(struct event_base *base, const struct options *options,
                       struct nodes *nodes) {
    struct relay *relay;
    int outcome;

    if (!options->relayed) {
        return run_mode(base, options, nodes);
    }
    relay = relay_start(nodes->uris, nodes->count, &options->delays);
    if (relay == NULL) {
        return EXIT_FAILURE;
    }
    nodes->uris = relay_uris(relay);
    outcome = run_mode(base, options, nodes);
    relay_finish(relay);
    return outcome;
}

static int run(struct event_base *base, const struct options *options) {
    struct nodes nodes = {.uris = options->nodes, .count = options->node_count};
    size_t crowd = options->mixed + options->fleet; /* one of both is 0 */
    size_t connections = crowd > 0 ? crowd_connections(crowd) : 0;
    int outcome;

    if (crowd > 0 && !crowd_raise_limit(options->mixed > 0 ? "--mixed" : "--fleet", crowd)) {
        return EXIT_FAILURE;
    }
    if (options->spawn > 0) {
        nodes.servers = servers_start(options->spawn, options->null_masters, connections);
        if (nodes.servers == NULL) {
            return EXIT_FAILURE;
        }
        nodes.uris = servers_uris(nodes.servers);
        nodes.count = servers_count(nodes.servers);
    }
    outcome = run_relayed(base, options, &nodes);
    servers_finish(nodes.servers);
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
