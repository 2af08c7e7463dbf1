/*
 * The masters remember for a while that somebody has waited, so each round begins with masters
 * whose data were deleted, and with new clients.
 */
#include "mixed.h"

#include "crew.h"
#include "crowd.h"
#include "load.h"
#include "masters.h"

#include <stdlib.h>

#define ROUNDS 5

struct mixed {
    struct event_base *base;
    const struct mixed_settings *settings;
    struct mixed_result *result;
    double cycles_per_s[MIXED_STRETCHES][ROUNDS];
    double ratio[MIXED_STRETCHES][ROUNDS];
    double masters_cpu_us[MIXED_STRETCHES][ROUNDS];
};

static int compare(const void *a, const void *b) {
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double numbers[ROUNDS]) {
    qsort(numbers, ROUNDS, sizeof(numbers[0]), compare);
    return numbers[ROUNDS / 2];
}

static bool measure(struct mixed *mixed, size_t round, enum mixed_stretch stretch) {
    struct measure_settings settings = mixed->settings->cycles;
    struct measure_result result;

    settings.duration_s /= ROUNDS;
    if (crew_run(mixed->base, &redlock_load, &settings, 1, &result) != 0) {
        return false;
    }
    mixed->cycles_per_s[stretch][round] = result.cycles_per_s;
    mixed->ratio[stretch][round] = result.cycles_per_s / mixed->cycles_per_s[MIXED_BEFORE][round];
    mixed->masters_cpu_us[stretch][round] = result.masters_cpu_us / (double)result.cycles;
    mixed->result->errors += result.errors;
    return true;
}

static bool run_round(struct mixed *mixed, size_t round, struct crowd *crowd) {
    return measure(mixed, round, MIXED_BEFORE) && crowd_enter(crowd, CROWD_GUARDED) &&
           crowd_enter(crowd, CROWD_WAITING) && measure(mixed, round, MIXED_WAITING) &&
           crowd_enter(crowd, CROWD_IDLE) && measure(mixed, round, MIXED_AFTER);
}

static bool begin_round(struct mixed *mixed, size_t round) {
    const struct mixed_settings *settings = mixed->settings;
    const struct crowd_settings others = {
        .masters = settings->masters,
        .nodes = settings->cycles.nodes,
        .clients = settings->waiters,
        .same_key = true,
        .node_timeout_ms = settings->cycles.node_timeout_ms,
    };
    struct crowd *crowd;
    bool is_well;

    for (size_t i = 0; i < masters_count(settings->masters); i++) {
        free(masters_query(settings->masters, i, "FLUSHALL"));
    }
    crowd = crowd_start(mixed->base, &others);
    if (crowd == NULL) {
        return false;
    }
    is_well = run_round(mixed, round, crowd);
    return crowd_finish(crowd) && is_well;
}

int mixed_run(struct event_base *base, const struct mixed_settings *settings,
              struct mixed_result *result) {
    struct mixed mixed = {.base = base, .settings = settings, .result = result};

    *result = (struct mixed_result){0};
    for (size_t round = 0; round < ROUNDS; round++) {
        if (!begin_round(&mixed, round)) {
            return -1;
        }
    }
    for (size_t stretch = 0; stretch < MIXED_STRETCHES; stretch++) {
        result->cycles_per_s[stretch] = median(mixed.cycles_per_s[stretch]);
        result->ratio[stretch] = median(mixed.ratio[stretch]);
        result->masters_cpu_us[stretch] = median(mixed.masters_cpu_us[stretch]);
    }
    return 0;
}
