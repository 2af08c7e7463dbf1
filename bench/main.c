/* redlock-bench: uncontended cycles of acquire and release on independent Redis masters. */
#include "load.h"
#include "masters.h"
#include "measure.h"
#include "options.h"
#include "report.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends by exit(), so that the throwaway masters leave no folder behind. */
static void on_interrupt(evutil_socket_t signal_number, short what, void *arg) {
    (void)what;
    (void)arg;
    exit(128 + (int)signal_number);
}

/* Timers that are exact to more than the 4 ms of libevent's default clock. */
static struct event_base *create_base(void) {
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    if (config != NULL) {
        event_config_free(config);
    }
    if (base == NULL) {
        fputs("redlock-bench: cannot make an event loop\n", stderr);
    }
    return base;
}

static int measure_and_report(struct event_base *base, const struct options *options,
                              const struct measure_settings *settings) {
    const struct load_kind *kind = options->floor ? &floor_load : &redlock_load;
    struct measure_result result;
    int reported;

    if (measure_run(base, kind, settings, &result) != 0) {
        return EXIT_FAILURE;
    }
    reported = options->json ? report_json(kind->name, settings, &result)
                             : report_text(kind->name, settings, &result);
    return reported == 0 && result.errors == 0 && result.cycles > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(struct event_base *base, const struct options *options) {
    struct measure_settings settings = {
        .nodes = options->nodes,
        .node_count = options->node_count,
        .in_flight = options->in_flight,
        .duration_s = options->duration_s,
    };
    struct masters *masters = NULL;
    int outcome;

    if (options->spawn > 0) {
        masters = masters_start(options->spawn, NULL);
        if (masters == NULL) {
            return EXIT_FAILURE;
        }
        settings.nodes = masters_uris(masters);
        settings.node_count = masters_count(masters);
    }
    outcome = measure_and_report(base, options, &settings);
    masters_finish(masters);
    return outcome;
}

int main(int argc, char **argv) {
    struct options options;
    struct event_base *base;
    struct event *interrupt = NULL;
    struct event *termination = NULL;
    int outcome = EXIT_FAILURE;

    options_parse(&options, argc, argv);
    /* A master that goes away is an error of the write to it. */
    signal(SIGPIPE, SIG_IGN);

    base = create_base();
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
