#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

void world_init(struct world *world, uint64_t seed, FILE *trace) {
    *world = (struct world){.seed = seed, .now = WORLD_BEGINNING, .trace = trace};
    rng_seed(&world->rng, seed);
}

void world_finish(struct world *world) {
    free(world->heap);
}

/* ---- the next task: a binary heap ---- */

static bool is_before(const struct task *a, const struct task *b) {
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void put(struct world *world, struct task *task, size_t position) {
    world->heap[position] = task;
    task->position = position;
}

static void sift_up(struct world *world, struct task *task, size_t position) {
    while (position > 1 && is_before(task, world->heap[position / 2])) {
        put(world, world->heap[position / 2], position);
        position /= 2;
    }
    put(world, task, position);
}

static void sift_down(struct world *world, struct task *task, size_t position) {
    for (;;) {
        size_t child = 2 * position;
        if (child < world->tasks && is_before(world->heap[child + 1], world->heap[child])) {
            child++;
        }
        if (child > world->tasks || !is_before(world->heap[child], task)) {
            break;
        }
        put(world, world->heap[child], position);
        position = child;
    }
    put(world, task, position);
}

static void make_room(struct world *world) {
    if (world->tasks + 2 > world->capacity) {
        world->capacity = world->capacity * 2 + 64;
        world->heap = realloc(world->heap, world->capacity * sizeof(struct task *));
        if (world->heap == NULL) {
            abort();
        }
    }
}

void task_cancel(struct world *world, struct task *task) {
    size_t position = task->position;
    if (position == 0) {
        return;
    }
    struct task *last = world->heap[world->tasks--];
    task->position = 0;
    if (last != task) {
        sift_up(world, last, position);
        sift_down(world, last, last->position);
    }
}

void task_schedule(struct world *world, struct task *task, uint64_t at) {
    task_cancel(world, task);
    make_room(world);
    task->at = at < world->now ? world->now : at;
    task->order = world->order++;
    sift_up(world, task, ++world->tasks);
}

void world_run_until(struct world *world, uint64_t at) {
    while (world->tasks > 0 && world->heap[1]->at <= at && !world->violated) {
        struct task *task = world->heap[1];
        world->now = task->at;
        task_cancel(world, task);
        world->events++;
        task->run(task->owner);
    }
    if (world->now < at) {
        world->now = at;
    }
}

/* ---- words ---- */

void world_trace(struct world *world, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(world->trace, "%" PRIu64 ".%06" PRIu64 " ", world->now / MS, world->now % MS);
    vfprintf(world->trace, format, arguments);
    fputc('\n', world->trace);
    va_end(arguments);
}

void violate(struct world *world, enum invariant invariant, const char *format, ...) {
    if (world->found) {
        return;
    }
    world->found = invariant;
    /* The actions of a world are judged by their own checker, which needs what follows. */
    world->violated = world->actions == NULL ? invariant : INVARIANT_NONE;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->violation, sizeof(world->violation), format, arguments);
    va_end(arguments);
    TRACE(world, "VIOLATION of %d (%s): %s", (int)invariant, invariant_name(invariant),
          world->violation);
}

const char *invariant_name(enum invariant invariant) {
    static const char *const names[INVARIANT_COUNT] = {
        "none",     "exclusion", "quorum",  "callbacks", "expiry", "revival",
        "liveness", "bounds",    "tokens",  "loss",      "fence",  "stay",
        "permits",  "looks",     "renewal", "work",      "storm",  "order",
    };
    return names[invariant];
}
