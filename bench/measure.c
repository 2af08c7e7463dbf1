/*
 * One measurement is a walk through the phases below; a single timer ends each phase. Each slot is
 * an endless cycle: acquire, release, again. The load answers from the loop, so that a cycle never
 * nests within the one before it.
 *
 * A slot whose acquisition or release failed rests for a moment, so that a broken node shows as
 * errors in the result and not as a busy loop.
 */
#include "measure.h"

#include "clock.h"
#include "histogram.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READY_POLL_S 0.005
#define READY_LIMIT_S 5.0
#define WARM_UP_S 0.2
#define DRAIN_LIMIT_S 5.0
#define REST_S 0.01

enum phase { CONNECTING, WARMING_UP, MEASURING, DRAINING, CLOSING, CLOSED };

struct slot {
    uint64_t began_ns; /* beginning of the step under way: the acquisition or the release */
    bool resting;
};

struct measure {
    struct event_base *base;
    const struct load_kind *kind;
    struct load *load;
    const struct measure_settings *settings;

    enum phase phase;
    bool given_up; /* whether there is no result to report */
    uint64_t phase_began_ns;
    struct event *phase_timer;
    struct event *rest_timer;

    struct slot *slots;
    size_t busy; /* number of slots with a step under way */

    struct histogram acquire;
    struct histogram release;
    uint64_t cycles;
    uint64_t errors;
    double cpu_us;         /* CPU time of the stretch; before its end: the reading at its beginning,
                              negative */
    uint64_t duration_ns;  /* length of the stretch */
    char first_error[512]; /* "" if none so far */
};

void load_format_key(char key[LOAD_KEY_SIZE], size_t slot) {
    snprintf(key, LOAD_KEY_SIZE, "redlock-bench:%ld:%zu", (long)getpid(), slot);
}

/* ------------------------------------------------------------------------------------ the slots */

static void failed(struct measure *measure, size_t slot, const char *error) {
    measure->errors++;
    measure->busy--;
    measure->slots[slot].resting = true;
    if (measure->first_error[0] == '\0') {
        snprintf(measure->first_error, sizeof(measure->first_error), "%s", error);
    }
    if (!event_pending(measure->rest_timer, EV_TIMEOUT, NULL)) {
        clock_arm(measure->rest_timer, REST_S);
    }
}

static void begin_cycle(struct measure *measure, size_t slot) {
    const char *refusal;

    if (measure->phase != WARMING_UP && measure->phase != MEASURING) {
        return;
    }
    measure->busy++;
    measure->slots[slot].resting = false;
    measure->slots[slot].began_ns = clock_now_ns();
    refusal = measure->kind->acquire(measure->load, slot);
    if (refusal != NULL) {
        failed(measure, slot, refusal);
    }
}

void measure_acquired(struct measure *measure, size_t slot, const char *error) {
    uint64_t now = clock_now_ns();
    const char *refusal;

    if (error != NULL) {
        failed(measure, slot, error);
        return;
    }
    if (measure->phase == MEASURING) {
        histogram_record(&measure->acquire, now - measure->slots[slot].began_ns);
    }
    measure->slots[slot].began_ns = now;
    refusal = measure->kind->release(measure->load, slot);
    if (refusal != NULL) {
        failed(measure, slot, refusal);
    }
}

void measure_released(struct measure *measure, size_t slot, const char *error) {
    if (error != NULL) {
        failed(measure, slot, error);
        return;
    }
    measure->busy--;
    if (measure->phase == MEASURING) {
        histogram_record(&measure->release, clock_now_ns() - measure->slots[slot].began_ns);
        measure->cycles++;
    }
    begin_cycle(measure, slot);
}

static void on_rested(evutil_socket_t fd, short what, void *arg) {
    struct measure *measure = arg;

    (void)fd;
    (void)what;
    for (size_t slot = 0; slot < measure->settings->in_flight; slot++) {
        if (measure->slots[slot].resting) {
            begin_cycle(measure, slot);
        }
    }
}

/* ----------------------------------------------------------------------------------- the phases */

static void enter(struct measure *measure, enum phase phase, double next_s) {
    measure->phase = phase;
    measure->phase_began_ns = clock_now_ns();
    clock_arm(measure->phase_timer, next_s);
}

static double in_phase_s(const struct measure *measure) {
    return (double)(clock_now_ns() - measure->phase_began_ns) / 1e9;
}

static void close_load(struct measure *measure) {
    measure->phase = CLOSING;
    measure->kind->close(measure->load);
}

static void wait_for_nodes(struct measure *measure) {
    bool over = in_phase_s(measure) > READY_LIMIT_S;

    if (measure->kind->is_ready(measure->load, over ? stderr : NULL)) {
        enter(measure, WARMING_UP, WARM_UP_S);
        for (size_t slot = 0; slot < measure->settings->in_flight; slot++) {
            begin_cycle(measure, slot);
        }
    } else if (over) {
        measure->given_up = true;
        close_load(measure);
    } else {
        clock_arm(measure->phase_timer, READY_POLL_S);
    }
}

static void begin_measuring(struct measure *measure) {
    enter(measure, MEASURING, measure->settings->duration_s);
    measure->cpu_us = -clock_cpu_us();
}

static void end_measuring(struct measure *measure) {
    measure->duration_ns = clock_now_ns() - measure->phase_began_ns;
    measure->cpu_us += clock_cpu_us();
    enter(measure, DRAINING, 0);
}

static void drain(struct measure *measure) {
    if (measure->busy == 0) {
        close_load(measure);
    } else if (in_phase_s(measure) > DRAIN_LIMIT_S) {
        fprintf(stderr, "redlock-bench: %zu locks did not end\n", measure->busy);
        measure->given_up = true;
        close_load(measure);
    } else {
        clock_arm(measure->phase_timer, READY_POLL_S);
    }
}

void measure_closed(struct measure *measure) {
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

static struct latency latency_of(const struct histogram *histogram) {
    return (struct latency){
        .p50_us = (double)histogram_quantile(histogram, 0.50) / 1e3,
        .p99_us = (double)histogram_quantile(histogram, 0.99) / 1e3,
        .max_us = (double)histogram->max / 1e3,
    };
}

static int run(struct measure *measure, struct measure_result *result) {
    enter(measure, CONNECTING, READY_POLL_S);
    if (event_base_dispatch(measure->base) < 0) {
        fputs("redlock-bench: the event loop failed\n", stderr);
        return -1;
    }
    if (measure->first_error[0] != '\0') {
        fprintf(stderr, "redlock-bench: %" PRIu64 " errors; the first: %s\n", measure->errors,
                measure->first_error);
    }
    if (measure->given_up || measure->phase != CLOSED) {
        return -1;
    }
    *result = (struct measure_result){
        .duration_s = (double)measure->duration_ns / 1e9,
        .cycles = measure->cycles,
        .errors = measure->errors,
        .cpu_us = measure->cpu_us,
        .acquire = latency_of(&measure->acquire),
        .release = latency_of(&measure->release),
    };
    return 0;
}

static struct load *create_load(struct measure *measure) {
    const struct load_settings settings = {
        .base = measure->base,
        .nodes = measure->settings->nodes,
        .node_count = measure->settings->node_count,
        .slot_count = measure->settings->in_flight,
        .measure = measure,
    };

    return measure->kind->create(&settings);
}

int measure_run(struct event_base *base, const struct load_kind *kind,
                const struct measure_settings *settings, struct measure_result *result) {
    struct measure *measure = calloc(1, sizeof(*measure));
    int outcome = -1;

    if (measure == NULL) {
        fputs("redlock-bench: out of memory\n", stderr);
        return -1;
    }
    measure->base = base;
    measure->kind = kind;
    measure->settings = settings;
    histogram_init(&measure->acquire);
    histogram_init(&measure->release);
    measure->slots = calloc(settings->in_flight, sizeof(*measure->slots));
    measure->phase_timer = evtimer_new(base, on_phase_timer, measure);
    measure->rest_timer = evtimer_new(base, on_rested, measure);
    if (measure->slots == NULL || measure->phase_timer == NULL || measure->rest_timer == NULL) {
        fputs("redlock-bench: out of memory\n", stderr);
        goto finish;
    }
    measure->load = create_load(measure);
    if (measure->load != NULL) {
        outcome = run(measure, result);
    }

finish:
    if (measure->rest_timer != NULL) {
        event_free(measure->rest_timer);
    }
    if (measure->phase_timer != NULL) {
        event_free(measure->phase_timer);
    }
    free(measure->slots);
    free(measure);
    return outcome;
}
