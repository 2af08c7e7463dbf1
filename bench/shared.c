#include "shared.h"

#include "client.h"
#include "clock.h"
#include "crew.h"
#include "memory.h"
#include "servers.h"

#include <event2/event.h>
#include <redlock/mt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define REST_S 0.01

struct slot {
    struct shared *shared;
    bool is_resting; /* after a failure, for a moment: see cycles.c */
    uint64_t began_ns;
    char key[LOAD_KEY_SIZE];
};

/* With callbacks, only the library's thread touches the counts and slots until all have ended. */
struct shared {
    struct event_base *base;
    const struct measure_settings *settings;
    atomic_bool runs;
    atomic_bool records;
    atomic_size_t busy; /* slots whose callback is still to come */
    uint64_t served_ns; /* instant at which the benchmark's events were served last */
    uint64_t began_ns;  /* start of the stretch */
    double cpu_us;      /* readings then */
    double masters_cpu_us;
    struct cycles_counts counts;
    struct slot slots[];
};

static redlock_request request_of(const struct slot *slot) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.key = slot->key;
    request.ttl_ms = slot->shared->settings->ttl_ms;
    request.fenced = slot->shared->settings->fenced;
    request.mode = slot->shared->settings->mode;
    return request;
}

/* ---- what is counted ---- */

static void acquisition_failed(struct shared *shared, redlock_status status, const char *why) {
    shared->counts.failures.counts[-status]++;
    cycles_count_error(&shared->counts, why);
}

static void record_acquired(struct slot *slot) {
    uint64_t now = clock_now_ns();
    if (slot->shared->records) {
        histogram_record(&slot->shared->counts.acquire, now - slot->began_ns);
    }
    slot->began_ns = now; /* of the release */
}

static void record_released(struct slot *slot) {
    struct shared *shared = slot->shared;
    if (shared->records) {
        histogram_record(&shared->counts.release, clock_now_ns() - slot->began_ns);
        shared->counts.done++;
        atomic_store_explicit(crew_done(shared->settings->crew, shared->settings->thread),
                              shared->counts.done, memory_order_relaxed);
    }
}

/* ---- the stretch ---- */

static void read_library_cpu(redlock_client *client, void *arg) {
    (void)client;
    *(double *)arg = clock_thread_cpu_us();
}

/* Returns the CPU time of this thread, and in the first thread also that of the library's. */
static double cpu_us(const struct shared *shared) {
    double library_us = 0;
    if (shared->settings->thread == 0) {
        redlock_mt_run(shared->settings->mt, read_library_cpu, &library_us, NULL);
    }
    return clock_thread_cpu_us() + library_us;
}

static void begin_stretch(struct shared *shared) {
    shared->cpu_us = cpu_us(shared);
    shared->masters_cpu_us = servers_cpu_us(shared->settings->servers);
    shared->began_ns = clock_now_ns();
    shared->records = true;
}

static void end_stretch(struct shared *shared, struct measure_result *result) {
    shared->records = false;
    result->duration_s = (double)(clock_now_ns() - shared->began_ns) / 1e9;
    result->cpu_us = cpu_us(shared) - shared->cpu_us;
    result->masters_cpu_us = servers_cpu_us(shared->settings->servers) - shared->masters_cpu_us;
}

/* ---- threads that block ---- */

static void run_blocking_cycle(struct slot *slot) {
    struct shared *shared = slot->shared;
    redlock_request request = request_of(slot);
    redlock_mt_lock *lock;
    redlock_error error;
    redlock_status status;

    slot->began_ns = clock_now_ns();
    status = redlock_mt_acquire(shared->settings->mt, &request, &lock, &error);
    record_acquired(slot);
    if (status != REDLOCK_OK) {
        acquisition_failed(shared, status, error.message);
    } else if (redlock_mt_release(lock, &error) != REDLOCK_OK) {
        cycles_count_error(&shared->counts, error.message);
    } else {
        record_released(slot);
        return;
    }
    clock_pass(shared->base, REST_S);
}

static void run_blocking(struct shared *shared, double seconds) {
    uint64_t end = clock_after_ns(seconds);
    do {
        run_blocking_cycle(&shared->slots[0]);
    } while (clock_serve(shared->base, &shared->served_ns) < end);
}

static void measure_blocking(struct shared *shared, struct measure_result *result) {
    run_blocking(shared, WARM_UP_S);
    begin_stretch(shared);
    run_blocking(shared, shared->settings->duration_s);
    end_stretch(shared, result);
}

/* ---- callbacks on the library's thread ---- */

static void begin_cycle(struct slot *slot);

static void rest(struct slot *slot) {
    slot->is_resting = true;
    slot->shared->busy--;
}

static void on_released(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct slot *slot = arg;
    (void)lock;
    if (status != REDLOCK_OK) {
        cycles_count_error(&slot->shared->counts, why);
        rest(slot);
        return;
    }
    record_released(slot);
    slot->shared->busy--;
    begin_cycle(slot);
}

static void on_acquired(redlock_mt_lock *lock, redlock_status status, const char *why, void *arg) {
    struct slot *slot = arg;
    record_acquired(slot);
    if (status != REDLOCK_OK) {
        acquisition_failed(slot->shared, status, why);
        redlock_mt_begin_release(lock, NULL, NULL);
        rest(slot);
        return;
    }
    redlock_mt_begin_release(lock, on_released, slot);
}

static void begin_cycle(struct slot *slot) {
    struct shared *shared = slot->shared;
    redlock_request request = request_of(slot);
    redlock_error error;
    if (!shared->runs) {
        return;
    }
    shared->busy++;
    slot->is_resting = false;
    slot->began_ns = clock_now_ns();
    redlock_status status =
        redlock_mt_begin_acquire(shared->settings->mt, &request, on_acquired, slot, NULL, &error);
    if (status != REDLOCK_OK) {
        acquisition_failed(shared, status, error.message);
        rest(slot);
    }
}

static void begin_resting(redlock_client *client, void *arg) {
    struct shared *shared = arg;
    (void)client;
    for (size_t i = 0; i < shared->settings->in_flight; i++) {
        if (shared->slots[i].is_resting) {
            begin_cycle(&shared->slots[i]);
        }
    }
}

static void pass_with_callbacks(struct shared *shared, double seconds) {
    uint64_t end = clock_after_ns(seconds);
    while (clock_now_ns() < end) {
        clock_pass(shared->base, REST_S);
        redlock_mt_run(shared->settings->mt, begin_resting, shared, NULL);
    }
}

static void stop(redlock_client *client, void *arg) {
    struct shared *shared = arg;
    (void)client;
    shared->runs = false;
}

/* Ends all requests, the last by a close, after which they count as errors. */
static void drain(struct shared *shared) {
    uint64_t end = clock_after_ns(DRAIN_LIMIT_S);
    redlock_mt_run(shared->settings->mt, stop, shared, NULL); /* between two callbacks */
    while (shared->busy > 0 && clock_now_ns() < end) {
        clock_pass(shared->base, READY_POLL_S);
    }
    redlock_mt_close(shared->settings->mt, NULL);
}

static void measure_callbacks(struct shared *shared, struct measure_result *result) {
    shared->runs = true;
    for (size_t i = 0; i < shared->settings->in_flight; i++) {
        shared->slots[i].is_resting = true;
    }
    redlock_mt_run(shared->settings->mt, begin_resting, shared, NULL);
    pass_with_callbacks(shared, WARM_UP_S);
    begin_stretch(shared);
    pass_with_callbacks(shared, shared->settings->duration_s);
    end_stretch(shared, result);
    drain(shared);
}

/* ---- the run ---- */

struct look {
    bool is_ready;
    FILE *complaints;
};

static void look(redlock_client *client, void *arg) {
    struct look *look = arg;
    look->is_ready = client_is_ready(client, look->complaints);
}

static bool wait_for_nodes(struct shared *shared) {
    uint64_t end = clock_after_ns(READY_LIMIT_S);
    struct look at = {0};
    for (;;) {
        redlock_mt_run(shared->settings->mt, look, &at, NULL);
        if (at.is_ready || at.complaints != NULL) {
            return at.is_ready;
        }
        if (clock_now_ns() >= end) {
            at.complaints = stderr; /* of the last look */
        }
        clock_pass(shared->base, READY_POLL_S);
    }
}

/* Waits until the client is connected, which the first thread finds out, and all have started. */
static bool muster(struct shared *shared) {
    struct crew *crew = shared->settings->crew;
    if (shared->settings->thread == 0 && !wait_for_nodes(shared)) {
        return false;
    }
    crew_muster(crew);
    while (!crew_is_complete(crew)) {
        if (crew_has_failed(crew)) {
            return false;
        }
        clock_pass(shared->base, READY_POLL_S);
    }
    return true;
}

static struct shared *create(struct event_base *base, const struct measure_settings *settings) {
    struct shared *shared =
        memory_take(1, sizeof(*shared) + settings->in_flight * sizeof(struct slot));
    shared->base = base;
    shared->settings = settings;
    for (size_t i = 0; i < settings->in_flight; i++) {
        shared->slots[i].shared = shared;
        load_format_key(shared->slots[i].key, settings->thread * settings->in_flight + i);
    }
    return shared;
}

int shared_measure(struct event_base *base, const struct measure_settings *settings,
                   struct measure_result *result) {
    struct shared *shared = create(base, settings);
    bool is_mustered = muster(shared);
    if (!is_mustered) {
        crew_fail(settings->crew);
    } else if (settings->blocks) {
        measure_blocking(shared, result);
    } else {
        measure_callbacks(shared, result);
    }
    measure_conclude(result, &shared->counts);
    free(shared);
    return is_mustered ? 0 : -1;
}
