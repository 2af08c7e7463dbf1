/* redlock-chaos: client processes and real masters, under faults of all kinds. */
#include "actions.h"
#include "chance.h"
#include "checker.h"
#include "options.h"
#include "poll_timeout.h"
#include "report.h"
#include "stage.h"
#include "storm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest time for which a client may get no lock after all faults have ended. */
#define CALM_LIMIT_MS 60000

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    interrupted = signal_number;
}

static const char *rage(struct storm *storm, struct stage *stage) {
    struct poll_timeout timeout = {0};

    while (interrupted == 0 && poll_timeout_wait(&timeout, stage->options->seconds * 1000)) {
        if (!stage_is_alive(stage)) {
            return "a process ended that must not end";
        }
        stage_sample_clock(stage);
        if (storm_turn(storm) != 0) {
            return "a process cannot be started again";
        }
    }
    return NULL;
}

/*
 * Checks that each client gets locks again after all faults have ended. Returns NULL, or a failure.
 */
static const char *calm_down(struct stage *stage) {
    struct poll_timeout timeout = {0};

    for (uint32_t i = 0; i < stage->options->clients; i++) {
        unsigned long long before = atomic_load(&stage->board->acquired[i]);

        while (atomic_load(&stage->board->acquired[i]) == before && interrupted == 0) {
            if (!stage_is_alive(stage)) {
                return "a process ended that must not end";
            }
            if (!poll_timeout_wait(&timeout, CALM_LIMIT_MS)) {
                return "a client gets no lock any more, though all is healed";
            }
        }
    }
    return NULL;
}

static const char *play(struct storm *storm, struct stage *stage) {
    const char *failure = rage(storm, stage);

    if (storm_end(storm) != 0 && failure == NULL) {
        failure = "a process cannot be started again";
    }
    if (failure == NULL) {
        failure = calm_down(stage);
    }
    if (stage_end_clients(stage) != 0 && failure == NULL) {
        failure = "a client did not end well";
    }
    stage_sample_clock(stage);
    return failure;
}

static const char *judge(const struct verdict *verdict, const struct options *options) {
    if (verdict->acquired == 0) {
        return "no lock was ever acquired";
    }
    if (options_keep_assumptions(options) && verdict->overlaps > 0) {
        return "two held the same key at the same time";
    }
    if (options_keep_assumptions(options) && verdict->lost_in_time > 0) {
        return "an update was lost, though all wrote within their validity";
    }
    return NULL;
}

static struct stage stage;

static int run(const struct options *options) {
    struct storm storm;
    struct verdict verdict;
    struct outcome outcome = {.options = options, .storm = &storm, .verdict = &verdict};
    uint64_t begun_ns = boottime_ns();
    FILE *actions = NULL;

    if (options->actions != NULL && (actions = fopen(options->actions, "we")) == NULL) {
        fprintf(stderr, "redlock-chaos: --actions: %s: %s\n", options->actions, strerror(errno));
        return EXIT_FAILURE;
    }
    if (stage_start(&stage, options) != 0) {
        return EXIT_FAILURE;
    }
    if (options->hosts && !stage.hosts.has_netem) {
        fputs("redlock-chaos: this kernel has no netem: nothing is delayed or lost, only cut\n",
              stderr);
    }
    storm_begin(&storm, &stage);
    outcome.failure = play(&storm, &stage);
    outcome.seconds = (double)(boottime_ns() - begun_ns) / 1e9;
    if (interrupted != 0) {
        return 128 + interrupted;
    }
    if (checker_run(&verdict, stage.folder, options, stage.board) != 0 ||
        (actions != NULL && actions_write(stage.folder, options, actions) != 0)) {
        return EXIT_FAILURE;
    }
    if (outcome.failure == NULL) {
        outcome.failure = judge(&verdict, options);
    }
    return report_print(&outcome) == 0 && outcome.failure == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Ends the stage if the process exits in the middle. Masters have their own exit handler. */
static void finish_at_exit(void) {
    stage.masters = NULL;
    stage_finish(&stage);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_interrupt};
    struct options options;
    int outcome;

    options_parse(&options, argc, argv);
    if (atexit(finish_at_exit) != 0) {
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    outcome = run(&options);
    stage_finish(&stage);
    return outcome;
}
