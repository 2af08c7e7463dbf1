/*
 * The load answers from the loop, so that a cycle never nests inside the previous one.
 *
 * A slot whose acquisition or release failed pauses for a moment, so that a broken node shows as
 * errors in the result and not as a busy loop.
 *
 * All locks are held for the same time: they are in a queue, and one timer waits for the first.
 */
#include "cycles.h"

#include "clock.h"
#include "load.h"
#include "memory.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define REST_S 0.01

enum step { IDLE, RESTING, ACQUIRING, HOLDING, RELEASING };

struct slot {
    enum step step;
    uint64_t began_ns; /* start of the step; for an acquisition: the instant at which it was due */
};

struct cycles {
    struct cycles_settings settings;
    struct load *load;
    bool runs;
    bool records;
    struct slot *list;
    size_t busy; /* number of slots with a cycle in progress */
    struct event *rest_timer;

    size_t *idle; /* open loop: slots without a cycle */
    size_t idle_count;
    struct event *due_timer;
    uint64_t from_ns; /* instant at which the first cycle was due */
    uint64_t begun;   /* number of cycles begun */

    size_t *held; /* ring of slots, in the order of their acquisitions */
    size_t held_first;
    size_t held_count;
    struct event *hold_timer;

    struct cycles_counts counts;
};

static bool is_open(const struct cycles *cycles) {
    return cycles->settings.rate > 0;
}

static void enter(struct cycles *cycles, size_t slot, enum step step, uint64_t now) {
    cycles->list[slot].step = step;
    cycles->list[slot].began_ns = now;
}

/* Arms a timer that fires at an instant of CLOCK_MONOTONIC, not before. */
static void arm_at(struct event *timer, uint64_t at_ns, uint64_t now) {
    clock_arm(timer, at_ns > now ? (double)(at_ns - now) / 1e9 + 1e-6 : 0);
}

/* Ends the stretch at its number of cycles. Failed cycles count, so it ends even if all fail. */
static void check_limit(const struct cycles *cycles) {
    if (cycles->records && cycles->counts.done + cycles->counts.errors == cycles->settings.limit) {
        cycles->settings.on_limit(cycles->settings.arg);
    }
}

void cycles_count_error(struct cycles_counts *counts, const char *error) {
    counts->errors++;
    if (counts->first_error[0] == '\0') {
        snprintf(counts->first_error, sizeof(counts->first_error), "%s", error);
    }
}

static void failed(struct cycles *cycles, size_t slot, const char *error) {
    cycles_count_error(&cycles->counts, error);
    cycles->busy--;
    cycles->list[slot].step = RESTING;
    if (!event_pending(cycles->rest_timer, EV_TIMEOUT, NULL)) {
        clock_arm(cycles->rest_timer, REST_S);
    }
    check_limit(cycles);
}

/* ---------------------------------------------------------------------------------- the
 * beginning */

static void begin_cycle(struct cycles *cycles, size_t slot, uint64_t due_ns) {
    const char *refusal;

    cycles->busy++;
    enter(cycles, slot, ACQUIRING, due_ns);
    refusal = cycles->settings.kind->acquire(cycles->load, slot);
    if (refusal != NULL) {
        cycles->counts.failures.counts[0]++;
        failed(cycles, slot, refusal);
    }
}

/* Returns when the next cycle is due. */
static uint64_t next_due_ns(const struct cycles *cycles) {
    return cycles->from_ns + (uint64_t)((double)cycles->begun * 1e9 / cycles->settings.rate);
}

/* Begins the cycles that are due while slots are free. */
static void begin_due(struct cycles *cycles) {
    uint64_t now = clock_now_ns();
    uint64_t due_ns = next_due_ns(cycles);

    while (cycles->idle_count > 0 && due_ns <= now) {
        cycles->begun++;
        begin_cycle(cycles, cycles->idle[--cycles->idle_count], due_ns);
        due_ns = next_due_ns(cycles);
    }
    if (cycles->idle_count > 0) {
        arm_at(cycles->due_timer, due_ns, now);
    }
}

static void on_due(evutil_socket_t fd, short what, void *arg) {
    struct cycles *cycles = arg;

    (void)fd;
    (void)what;
    if (cycles->runs) {
        begin_due(cycles);
    }
}

/* Begins the next cycle of a slot; in an open loop, any cycle that is due. */
static void follow(struct cycles *cycles, size_t slot) {
    cycles->list[slot].step = IDLE;
    if (!cycles->runs) {
        return;
    }
    if (is_open(cycles)) {
        cycles->idle[cycles->idle_count++] = slot;
        begin_due(cycles);
    } else {
        begin_cycle(cycles, slot, clock_now_ns());
    }
}

static void on_rested(evutil_socket_t fd, short what, void *arg) {
    struct cycles *cycles = arg;

    (void)fd;
    (void)what;
    for (size_t slot = 0; slot < cycles->settings.count; slot++) {
        if (cycles->list[slot].step == RESTING) {
            follow(cycles, slot);
        }
    }
}

/* ------------------------------------------------------------------------------------- the
 * cycle */

static void release(struct cycles *cycles, size_t slot, uint64_t now) {
    const char *refusal;

    enter(cycles, slot, RELEASING, now);
    refusal = cycles->settings.kind->release(cycles->load, slot);
    if (refusal != NULL) {
        failed(cycles, slot, refusal);
    }
}

static void hold(struct cycles *cycles, size_t slot, uint64_t now) {
    size_t position = (cycles->held_first + cycles->held_count++) % cycles->settings.count;

    enter(cycles, slot, HOLDING, now);
    cycles->held[position] = slot;
    if (cycles->held_count == 1) {
        arm_at(cycles->hold_timer, now + cycles->settings.hold_ns, now);
    }
}

static void on_hold_end(evutil_socket_t fd, short what, void *arg) {
    struct cycles *cycles = arg;
    uint64_t now = clock_now_ns();

    (void)fd;
    (void)what;
    while (cycles->held_count > 0) {
        size_t slot = cycles->held[cycles->held_first];
        uint64_t end_ns = cycles->list[slot].began_ns + cycles->settings.hold_ns;

        if (end_ns > now) {
            arm_at(cycles->hold_timer, end_ns, now);
            return;
        }
        cycles->held_first = (cycles->held_first + 1) % cycles->settings.count;
        cycles->held_count--;
        release(cycles, slot, now);
    }
}

void cycles_acquired(struct cycles *cycles, size_t slot, redlock_status status, const char *error) {
    uint64_t now = clock_now_ns();

    if (cycles->records) {
        histogram_record(&cycles->counts.acquire, now - cycles->list[slot].began_ns);
    }
    if (error != NULL) {
        cycles->counts.failures.counts[-status]++;
        failed(cycles, slot, error);
        return;
    }
    if (cycles->settings.hold_ns > 0) {
        hold(cycles, slot, now);
    } else {
        release(cycles, slot, now);
    }
}

void cycles_released(struct cycles *cycles, size_t slot, const char *error) {
    struct cycles_counts *counts = &cycles->counts;

    if (error != NULL) {
        failed(cycles, slot, error);
        return;
    }
    cycles->busy--;
    if (cycles->records) {
        histogram_record(&counts->release, clock_now_ns() - cycles->list[slot].began_ns);
        counts->done++;
        atomic_store_explicit(cycles->settings.done, counts->done, memory_order_relaxed);
        check_limit(cycles);
    }
    follow(cycles, slot);
}

void cycles_closed(struct cycles *cycles) {
    cycles->settings.on_closed(cycles->settings.arg);
}

/* ----------------------------------------------------------------------------------- the
 * stretch */

void cycles_begin(struct cycles *cycles, struct load *load) {
    uint64_t now = clock_now_ns();

    cycles->load = load;
    cycles->runs = true;
    cycles->from_ns = now;
    for (size_t slot = 0; slot < cycles->settings.count; slot++) {
        if (is_open(cycles)) {
            cycles->idle[cycles->idle_count++] = cycles->settings.count - 1 - slot;
        } else {
            begin_cycle(cycles, slot, clock_now_ns());
        }
    }
    if (is_open(cycles)) {
        begin_due(cycles);
    }
}

void cycles_record(struct cycles *cycles) {
    cycles->records = true;
}

/* Records the waits that the end of the stretch cuts off, up to that end. */
static void record_waits(struct cycles *cycles) {
    uint64_t now = clock_now_ns();
    struct cycles_counts *counts = &cycles->counts;

    for (size_t slot = 0; slot < cycles->settings.count; slot++) {
        if (cycles->list[slot].step == ACQUIRING) {
            histogram_record(&counts->acquire, now - cycles->list[slot].began_ns);
        }
    }
    for (; next_due_ns(cycles) <= now; cycles->begun++) {
        histogram_record(&counts->acquire, now - next_due_ns(cycles));
        counts->backlog++;
    }
}

void cycles_stop(struct cycles *cycles) {
    if (cycles->records && is_open(cycles)) {
        record_waits(cycles);
    }
    cycles->runs = false;
    cycles->records = false;
}

size_t cycles_busy(const struct cycles *cycles) {
    return cycles->busy;
}

const struct cycles_counts *cycles_counts(const struct cycles *cycles) {
    return &cycles->counts;
}

struct cycles *cycles_create(const struct cycles_settings *settings) {
    struct cycles *cycles = memory_take(1, sizeof(*cycles));
    size_t count = settings->count;

    cycles->settings = *settings;
    cycles->list = memory_take(count, sizeof(*cycles->list));
    cycles->idle = memory_take(count, sizeof(*cycles->idle));
    cycles->held = memory_take(count, sizeof(*cycles->held));
    cycles->rest_timer = clock_timer(settings->base, on_rested, cycles);
    cycles->due_timer = clock_timer(settings->base, on_due, cycles);
    cycles->hold_timer = clock_timer(settings->base, on_hold_end, cycles);
    return cycles;
}

void cycles_destroy(struct cycles *cycles) {
    event_free(cycles->rest_timer);
    event_free(cycles->due_timer);
    event_free(cycles->hold_timer);
    free(cycles->held);
    free(cycles->idle);
    free(cycles->list);
    free(cycles);
}
