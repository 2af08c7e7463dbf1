#include "cycles.h"

#include <stdio.h>

static void begin(struct cycle *cycle);

static void record_failure(struct cycle *cycle, redlock_status status) {
    struct cycles *cycles = cycle->owner;

    if (status != REDLOCK_OK) {
        cycles->failed++;
        cycles->failure = status;
        snprintf(cycles->why, sizeof(cycles->why), "%s", redlock_explain(cycle->lock));
    }
}

static void end(struct cycle *cycle) {
    struct cycles *cycles = cycle->owner;

    cycles->done++;
    if (cycles->step != NULL) {
        cycles->step(cycles);
    }
    if (cycles->started < cycles->wanted) {
        begin(cycle);
    }
}

static void on_released(redlock_lock *lock, redlock_status status, void *arg) {
    struct cycle *cycle = arg;

    assert_true(cycle->releasing);
    assert_ptr_equal(lock, cycle->lock);
    cycle->releasing = false;
    cycle->owner->fixture->ended++;
    record_failure(cycle, status);
    end(cycle);
}

static void on_acquired(redlock_lock *lock, redlock_status status, void *arg) {
    struct cycle *cycle = arg;

    assert_true(cycle->acquiring);
    assert_ptr_equal(lock, cycle->lock);
    cycle->acquiring = false;
    cycle->owner->fixture->ended++;
    record_failure(cycle, status);
    if (status != REDLOCK_OK) {
        end(cycle);
        return;
    }
    cycle->releasing = true;
    assert_int_equal(redlock_release(lock, on_released, cycle), REDLOCK_OK);
    cycle->owner->fixture->accepted++;
}

static void begin(struct cycle *cycle) {
    struct cycles *cycles = cycle->owner;
    redlock_request request = REDLOCK_REQUEST_INIT;
    char key[64];

    snprintf(key, sizeof(key), "%s:%zu", cycles->prefix, cycle->index);
    request.key = key;
    request.ttl_ms = cycles->ttl_ms;
    cycle->acquiring = true;
    cycles->started++;
    assert_int_equal(redlock_acquire(cycles->client, &request, on_acquired, cycle, &cycle->lock),
                     REDLOCK_OK);
    cycles->fixture->accepted++;
}

void cycles_start(struct cycles *cycles, struct fixture *f, redlock_client *client,
                  size_t in_flight, size_t wanted) {
    assert_int_in_range(in_flight, 1, CYCLES_MOST_IN_FLIGHT);
    cycles->fixture = f;
    cycles->client = client;
    cycles->prefix = cycles->prefix == NULL ? "cycle" : cycles->prefix;
    cycles->ttl_ms = cycles->ttl_ms == 0 ? LONG_TTL_MS : cycles->ttl_ms;
    cycles->wanted = wanted;
    cycles->in_flight = in_flight;
    cycles->started = 0;
    cycles->done = 0;
    for (size_t i = 0; i < in_flight && i < wanted; i++) {
        cycles->slots[i] = (struct cycle){.owner = cycles, .index = i};
        begin(&cycles->slots[i]);
    }
}

/* The progress that run_until watches, so that a slow machine may take its time. */
struct progress {
    const struct cycles *cycles;
    size_t target;
};

static bool has_progressed(void *arg) {
    const struct progress *progress = arg;

    return progress->cycles->done >= progress->target;
}

void cycles_wait(struct cycles *cycles) {
    struct progress progress = {cycles, 0};

    while (cycles->done < cycles->wanted) {
        progress.target =
            cycles->done + 1000 < cycles->wanted ? cycles->done + 1000 : cycles->wanted;
        run_until(cycles->fixture, has_progressed, &progress, "the next 1000 cycles are done");
    }
}

void cycles_run(struct cycles *cycles, struct fixture *f, redlock_client *client, size_t in_flight,
                size_t wanted) {
    cycles_start(cycles, f, client, in_flight, wanted);
    cycles_wait(cycles);
    if (cycles->failed > 0) {
        log_capture_show(&f->capture);
        fail_msg("%zu cycles failed, the last with %s: %s", cycles->failed,
                 redlock_status_name(cycles->failure), cycles->why);
    }
}
