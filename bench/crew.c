#include "crew.h"

#include "clock.h"
#include "memory.h"
#include "progress.h"

#include <event2/event.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

struct member {
    alignas(CACHE_LINE) _Atomic uint64_t done;
    struct crew *crew;
    struct measure_settings settings;
    struct measure_result result;
    pthread_t thread;
    int outcome;
};

struct crew {
    const struct load_kind *kind;
    size_t count;
    size_t started; /* number of threads to join, plus the caller's */
    atomic_size_t ready;
    atomic_bool has_failed;
    struct member *members;

    uint64_t shown_ns; /* progress line: time and number of its last count of cycles */
    uint64_t shown;
};

void crew_muster(struct crew *crew) {
    atomic_fetch_add(&crew->ready, 1);
}

void crew_fail(struct crew *crew) {
    atomic_store(&crew->has_failed, true);
}

bool crew_is_complete(const struct crew *crew) {
    return atomic_load(&crew->ready) == crew->count;
}

bool crew_has_failed(const struct crew *crew) {
    return atomic_load(&crew->has_failed);
}

_Atomic uint64_t *crew_done(struct crew *crew, size_t thread) {
    return &crew->members[thread].done;
}

/* ---------------------------------------------------------------------------------- the threads */

static void *run_member(void *arg) {
    struct member *member = arg;
    struct event_base *base = clock_create_base();

    member->outcome = -1;
    if (base == NULL) {
        crew_fail(member->crew);
        return NULL;
    }
    member->outcome = measure_run(base, member->crew->kind, &member->settings, &member->result);
    event_base_free(base);
    return NULL;
}

/* Starts all threads except the first, which gets all signals. */
static void start_threads(struct crew *crew) {
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (crew->started = 1; crew->started < crew->count; crew->started++) {
        struct member *member = &crew->members[crew->started];
        int error = pthread_create(&member->thread, NULL, run_member, member);

        if (error != 0) {
            fprintf(stderr, "redlock-bench: cannot start a thread: %s\n", strerror(error));
            crew_fail(crew);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void write_progress(void *arg, char *line, size_t size) {
    struct crew *crew = arg;
    uint64_t now = clock_now_ns();
    uint64_t done = 0;

    for (size_t i = 0; i < crew->count; i++) {
        done += atomic_load_explicit(&crew->members[i].done, memory_order_relaxed);
    }
    snprintf(line, size, "%" PRIu64 " cycles, %.0f cycles/s", done,
             (double)(done - crew->shown) * 1e9 / (double)(now - crew->shown_ns));
    crew->shown = done;
    crew->shown_ns = now;
}

/* --------------------------------------------------------------------------------- the results */

static void add_result(struct measure_result *sum, const struct measure_result *result) {
    sum->duration_s = sum->duration_s > result->duration_s ? sum->duration_s : result->duration_s;
    sum->cycles_per_s += result->cycles_per_s;
    sum->cycles += result->cycles;
    sum->errors += result->errors;
    sum->backlog += result->backlog;
    sum->cpu_us += result->cpu_us;
    for (size_t i = 0; i < CYCLES_STATUSES; i++) {
        sum->failures.counts[i] += result->failures.counts[i];
    }
    histogram_add(&sum->acquire, &result->acquire);
    histogram_add(&sum->release, &result->release);
}

static int run(struct crew *crew, struct event_base *base, struct measure_result *result) {
    struct member *first = &crew->members[0];
    struct progress *progress = progress_create(base, write_progress, crew);
    int outcome;

    crew->shown_ns = clock_now_ns();
    start_threads(crew);
    outcome = measure_run(base, crew->kind, &first->settings, &first->result);
    progress_destroy(progress);
    for (size_t i = 1; i < crew->started; i++) {
        pthread_join(crew->members[i].thread, NULL);
        outcome = crew->members[i].outcome != 0 ? -1 : outcome;
    }
    if (outcome == 0) {
        *result = first->result;
        for (size_t i = 1; i < crew->count; i++) {
            add_result(result, &crew->members[i].result);
        }
    }
    return outcome;
}

static void set_up(struct crew *crew, const struct measure_settings *settings) {
    crew->members = aligned_alloc(CACHE_LINE, crew->count * sizeof(*crew->members));
    if (crew->members == NULL) {
        memory_end();
    }
    memset(crew->members, 0, crew->count * sizeof(*crew->members));
    for (size_t i = 0; i < crew->count; i++) {
        struct member *member = &crew->members[i];

        member->crew = crew;
        member->settings = *settings;
        member->settings.rate /= (double)crew->count;
        member->settings.servers = i == 0 ? settings->servers : NULL;
        member->settings.crew = crew;
        member->settings.thread = i;
    }
}

int crew_run(struct event_base *base, const struct load_kind *kind,
             const struct measure_settings *settings, size_t threads,
             struct measure_result *result) {
    struct crew crew = {.kind = kind, .count = threads};
    int outcome;

    set_up(&crew, settings);
    outcome = run(&crew, base, result);
    free(crew.members);
    return outcome;
}
