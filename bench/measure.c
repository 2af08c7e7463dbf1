/* One measurement is a walk through the phases below; a single timer ends each phase. */
#include "measure.h"

#include "clock.h"
#include "crew.h"
#include "cycles.h"
#include "naming.h"
#include "outer.h"
#include "servers.h"
#include "shared.h"

#include <event2/event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CYCLES_LIMIT_S 3600.0 /* when a number of cycles ends the stretch */

enum phase { CONNECTING, WARMING_UP, MEASURING, DRAINING, CLOSING, CLOSED };

struct measure {
    struct event_base *base;
    void *outer;        /* the loop of --loop; NULL: none */
    redlock_loop *loop; /* attached to it */
    const struct load_kind *kind;
    struct load *load;
    struct cycles *cycles;
    const struct measure_settings *settings;

    enum phase phase;
    bool is_mustered; /* whether this thread has reported to the crew that it is ready */
    bool given_up;    /* whether there is no result to report */
    uint64_t phase_began_ns;
    struct event *phase_timer;

    double cpu_us;         /* CPU time of the stretch; before its end: the reading at its beginning,
                              negative */
    double masters_cpu_us; /* likewise; NAN: not known */
    uint64_t duration_ns;  /* length of the stretch */
};

void load_format_key(char key[LOAD_KEY_SIZE], size_t number) {
    snprintf(key, LOAD_KEY_SIZE, "redlock-bench:%ld:%zu", (long)getpid(), number);
}

/* ---------------------------------------------------------------------------------- the stretch */

static void enter(struct measure *measure, enum phase phase, double next_s) {
    measure->phase = phase;
    measure->phase_began_ns = clock_now_ns();
    clock_arm(measure->phase_timer, next_s);
}

static double in_phase_s(const struct measure *measure) {
    return (double)(clock_now_ns() - measure->phase_began_ns) / 1e9;
}

static void begin_measuring(struct measure *measure) {
    enter(measure, MEASURING,
          measure->settings->cycles > 0 ? CYCLES_LIMIT_S : measure->settings->duration_s);
    cycles_record(measure->cycles);
    measure->cpu_us = -clock_thread_cpu_us();
    measure->masters_cpu_us = -servers_cpu_us(measure->settings->servers);
}

static void end_measuring(struct measure *measure) {
    measure->duration_ns = clock_now_ns() - measure->phase_began_ns;
    measure->cpu_us += clock_thread_cpu_us();
    measure->masters_cpu_us += servers_cpu_us(measure->settings->servers);
    cycles_stop(measure->cycles);
    enter(measure, DRAINING, 0);
}

static void on_limit(void *arg) {
    end_measuring(arg);
}

/* ----------------------------------------------------------------------------------- the phases */

static void close_load(struct measure *measure) {
    measure->phase = CLOSING;
    measure->kind->close(measure->load);
}

static void give_up(struct measure *measure) {
    measure->given_up = true;
    crew_fail(measure->settings->crew);
    close_load(measure);
}

static void begin(struct measure *measure) {
    if (measure->settings->cycles > 0) {
        begin_measuring(measure);
    } else {
        enter(measure, WARMING_UP, WARM_UP_S);
    }
    cycles_begin(measure->cycles, measure->load);
}

static void wait_for_nodes(struct measure *measure) {
    bool over = in_phase_s(measure) > READY_LIMIT_S;
    bool is_ready = measure->kind->is_ready(measure->load, over ? stderr : NULL);

    if (is_ready && !measure->is_mustered) {
        measure->is_mustered = true;
        crew_muster(measure->settings->crew);
    }
    if (crew_has_failed(measure->settings->crew) || (over && !is_ready)) {
        give_up(measure);
    } else if (crew_is_complete(measure->settings->crew)) {
        begin(measure);
    } else {
        clock_arm(measure->phase_timer, READY_POLL_S);
    }
}

static void drain(struct measure *measure) {
    if (cycles_busy(measure->cycles) == 0) {
        close_load(measure);
    } else if (in_phase_s(measure) > DRAIN_LIMIT_S + (double)measure->settings->hold_us / 1e6) {
        fprintf(stderr, "redlock-bench: %zu locks did not end\n", cycles_busy(measure->cycles));
        give_up(measure);
    } else {
        clock_arm(measure->phase_timer, READY_POLL_S);
    }
}

static void on_closed(void *arg) {
    struct measure *measure = arg;

    measure->phase = CLOSED;
    event_base_loopbreak(measure->base);
}

static void on_phase_timer(evutil_socket_t fd, short what, void *arg) {
    struct measure *measure = arg;

    (void)fd;
    (void)what;
    switch (measure->phase) {
    case CONNECTING:
        wait_for_nodes(measure);
        break;
    case WARMING_UP:
        begin_measuring(measure);
        break;
    case MEASURING:
        end_measuring(measure);
        break;
    case DRAINING:
        drain(measure);
        break;
    case CLOSING:
    case CLOSED:
        break;
    }
}

/* -------------------------------------------------------------------------------------- the run */

/*
 * Runs the library on its own loop, and beside it, now and then, the timers of the benchmark and
 * its signals: the end of a phase may come 5 ms late, which the length of the stretch has.
 */
static void dispatch_outer(struct measure *measure) {
    uint64_t served_ns = 0;

    while (measure->phase != CLOSED) {
        clock_serve(measure->base, &served_ns);
        measure->settings->loop->turn(measure->outer);
    }
}

static int dispatch(struct measure *measure) {
    if (measure->outer == NULL) {
        return event_base_dispatch(measure->base);
    }
    dispatch_outer(measure);
    return 0;
}

/* Of many threads with errors the first that has ended speaks; the result has their number. */
static void complain(const char *error) {
    static atomic_flag has_spoken = ATOMIC_FLAG_INIT;
    if (error[0] != '\0' && !atomic_flag_test_and_set(&has_spoken)) {
        fprintf(stderr, "redlock-bench: there were errors; the first: %s\n",
                naming_by_options(error));
    }
}

void measure_conclude(struct measure_result *result, const struct cycles_counts *counts) {
    complain(counts->first_error);
    result->cycles_per_s = (double)counts->done / result->duration_s;
    result->cycles = counts->done;
    result->errors = counts->errors;
    result->failures = counts->failures;
    result->backlog = counts->backlog;
    result->acquire = counts->acquire;
    result->release = counts->release;
}

static int run(struct measure *measure, struct measure_result *result) {
    enter(measure, CONNECTING, READY_POLL_S);
    if (dispatch(measure) < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return -1;
    }
    *result = (struct measure_result){
        .duration_s = (double)measure->duration_ns / 1e9,
        .cpu_us = measure->cpu_us,
        .masters_cpu_us = measure->masters_cpu_us,
    };
    measure_conclude(result, cycles_counts(measure->cycles));
    return measure->given_up || measure->phase != CLOSED ? -1 : 0;
}

static struct load *create_load(struct measure *measure) {
    const struct measure_settings *settings = measure->settings;
    const struct load_settings load = {
        .base = measure->base,
        .loop = measure->loop,
        .nodes = settings->nodes,
        .node_count = settings->node_count,
        .slot_count = settings->in_flight,
        .first_slot = settings->thread * settings->in_flight,
        .ttl_ms = settings->ttl_ms,
        .node_timeout_ms = settings->node_timeout_ms,
        .keys = settings->keys,
        .fenced = settings->fenced,
        .mode = settings->mode,
        .cycles = measure->cycles,
    };

    return measure->kind->create(&load);
}

static struct cycles *create_cycles(struct measure *measure) {
    const struct measure_settings *settings = measure->settings;
    const struct cycles_settings cycles = {
        .base = measure->base,
        .kind = measure->kind,
        .count = settings->in_flight,
        .rate = settings->rate,
        .hold_ns = settings->hold_us * 1000,
        .limit = settings->cycles,
        .on_limit = on_limit,
        .on_closed = on_closed,
        .arg = measure,
        .done = crew_done(settings->crew, settings->thread),
    };

    return cycles_create(&cycles);
}

int measure_run(struct event_base *base, const struct load_kind *kind,
                const struct measure_settings *settings, struct measure_result *result) {
    struct measure measure = {.base = base, .kind = kind, .settings = settings};
    int outcome = -1;

    if (settings->mt != NULL) {
        return shared_measure(base, settings, result);
    }
    if (settings->loop != NULL) {
        measure.outer = settings->loop->create(&measure.loop);
        if (measure.loop == NULL) {
            fprintf(stderr, "redlock-bench: cannot make a loop of %s\n", settings->loop->library);
            exit(EXIT_FAILURE);
        }
    }
    measure.phase_timer = clock_timer(base, on_phase_timer, &measure);
    measure.cycles = create_cycles(&measure);
    measure.load = create_load(&measure);
    if (measure.load != NULL) {
        outcome = run(&measure, result);
    }
    if (outcome != 0) {
        crew_fail(settings->crew);
    }
    cycles_destroy(measure.cycles);
    event_free(measure.phase_timer);
    if (measure.outer != NULL) {
        settings->loop->destroy(measure.outer);
    }
    return outcome;
}
