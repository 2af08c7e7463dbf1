/*
 * Occurrences are queued. A wake, slightly late, runs all queued ones, and those that are queued
 * meanwhile, as a loop's iteration does. A paused process queues occurrences and does not wake.
 */
#include "process.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Minimum lateness of a wake: each turn of a loop takes time. */
#define LEAST_LATENESS (MS / 50)

struct event_base *running;

/* ---- memory ---- */

struct block {
    TAILQ_ENTRY(block) link;
    size_t size;
    _Alignas(max_align_t) char bytes[];
};

bool process_is_refused(struct event_base *process) {
    bool is_refused = rng_chance(&process->world->rng, process->failures);
    process->failed += is_refused;
    return is_refused;
}

static void *allocate(size_t size, void *context) {
    struct event_base *process = context;
    struct block *block = process_is_refused(process) ? NULL : malloc(sizeof(*block) + size);
    if (block == NULL) {
        return NULL;
    }
    block->size = size;
    TAILQ_INSERT_TAIL(&process->blocks, block, link);
    process->block_count++;
    process->bytes += size;
    memset(block->bytes, 0xa5, size);
    return block->bytes;
}

static struct block *block_of(void *memory) {
    return (struct block *)((char *)memory - offsetof(struct block, bytes));
}

static void release(void *memory, void *context) {
    struct event_base *process = context;
    if (memory != NULL) {
        struct block *block = block_of(memory);
        TAILQ_REMOVE(&process->blocks, block, link);
        process->block_count--;
        process->bytes -= block->size;
        free(block);
    }
}

static void *reallocate(void *memory, size_t size, void *context) {
    void *larger = allocate(size, context);
    if (larger != NULL && memory != NULL) {
        size_t old = block_of(memory)->size;
        memcpy(larger, memory, old < size ? old : size);
        release(memory, context);
    }
    return larger;
}

/* ---- the loop ---- */

static void wake_soon(struct event_base *process) {
    struct world *world = process->world;
    if (!process->is_paused && !process->is_running && process->wake.position == 0) {
        uint64_t late = process->lateness > 0 ? rng_below(&world->rng, process->lateness) : 0;
        task_schedule(world, &process->wake, world->now + LEAST_LATENESS + late);
    }
}

/*
 * Occurrences that the code itself activates belong to the current iteration; sockets and timers do
 * not.
 */
void process_notify(struct event_base *process, struct occurrence *occurrence) {
    if (!occurrence->is_queued) {
        occurrence->is_queued = true;
        occurrence->is_later = process->cost > 0 && process->is_running && running != process;
        TAILQ_INSERT_TAIL(occurrence->is_later ? &process->later : &process->ready, occurrence,
                          link);
        wake_soon(process);
    }
}

void process_forget(struct event_base *process, struct occurrence *occurrence) {
    if (occurrence->is_queued) {
        occurrence->is_queued = false;
        TAILQ_REMOVE(occurrence->is_later ? &process->later : &process->ready, occurrence, link);
    }
}

/* Sorts sockets before timers, as loops do. */
static void sort(struct event_base *process) {
    struct occurrence_list later;
    struct occurrence *occurrence, *next;
    TAILQ_INIT(&later);
    for (occurrence = TAILQ_FIRST(&process->ready); occurrence != NULL; occurrence = next) {
        next = TAILQ_NEXT(occurrence, link);
        if (!occurrence->is_io) {
            TAILQ_REMOVE(&process->ready, occurrence, link);
            TAILQ_INSERT_TAIL(&later, occurrence, link);
        }
    }
    TAILQ_CONCAT(&process->ready, &later, link);
}

/* ---- a loop whose code takes time ---- */

/*
 * Runs one occurrence, which takes some time. Occurrences that become due meanwhile wait for the
 * next iteration.
 */
static void run_one(struct event_base *process, struct occurrence *occurrence) {
    struct world *world = process->world;
    process_forget(process, occurrence);
    process->work = WORK_OF_OCCURRENCE;
    process->began_at = world->now;
    running = process;
    occurrence->run(occurrence->owner);
    process->on_check(process, false);
    running = NULL;
    task_schedule(world, &process->wake, world->now + process->work * process->cost);
}

static void end_iteration(struct event_base *process) {
    struct occurrence *occurrence;
    process->is_running = false;
    TAILQ_FOREACH(occurrence, &process->later, link) {
        occurrence->is_later = false;
    }
    TAILQ_CONCAT(&process->ready, &process->later, link);
    if (!TAILQ_EMPTY(&process->ready)) {
        wake_soon(process);
    }
}

static void go_on(struct event_base *process) {
    if (!process->is_running) {
        TRACE(process->world, "process %u runs", process->index);
        process->is_running = true;
        sort(process);
    }
    if (!TAILQ_EMPTY(&process->ready)) {
        run_one(process, TAILQ_FIRST(&process->ready));
    } else {
        end_iteration(process);
    }
}

void process_block(struct event_base *process, uint64_t ns) {
    struct world *world = process->world;
    TRACE(world, "process %u is busy for %" PRIu64 " ms", process->index, ns / MS);
    if (world->is_nested) { /* no second preemption: the time passes after the running code */
        process->work += ns / process->cost;
        process->away_until = world->now + ns;
        return;
    }
    world->is_nested = true;
    running = NULL;
    world_run_until(world, world->now + ns);
    running = process;
    world->is_nested = false;
    process->away_until = world->now;
}

void process_excuse(struct event_base *process) {
    process->away_until = process->world->now + process->work * process->cost;
}

/* ---- a loop whose code takes no time ---- */

static void on_wake(void *owner) {
    struct event_base *process = owner;
    struct event_base *outer = running;
    if (process->cost > 0) {
        go_on(process);
        return;
    }
    TRACE(process->world, "process %u runs", process->index);
    running = process;
    process->is_running = true;
    process->preempted = 0;
    process->on_check(process, false);
    if (rng_chance(&process->world->rng, 500)) {
        sort(process);
    }
    while (!TAILQ_EMPTY(&process->ready) && !process->world->violated) {
        struct occurrence *occurrence = TAILQ_FIRST(&process->ready);
        process_forget(process, occurrence);
        occurrence->run(occurrence->owner);
    }
    process->on_check(process, false);
    process->is_running = false;
    running = outer;
}

static void on_resume(void *owner) {
    struct event_base *process = owner;
    TRACE(process->world, "process %u goes on", process->index);
    process->is_paused = false;
    process->on_check(process, true);
    process->away_until = process->world->now;
    if (process->is_running) { /* in the middle of an iteration */
        task_schedule(process->world, &process->wake, process->world->now);
    } else if (!TAILQ_EMPTY(&process->ready)) {
        wake_soon(process);
    }
}

void process_pause(struct event_base *process, uint64_t until) {
    process->is_paused = true;
    process->on_check(process, true);
    task_cancel(process->world, &process->wake);
    task_schedule(process->world, &process->resume, until);
}

/* More than any iteration needs: what becomes due in a preemption belongs to it, without end. */
#define PREEMPTIONS_MAX 8

void process_may_be_preempted(struct event_base *process) {
    struct world *world = process->world;
    if (process->is_running && !world->is_nested && process->preempted < PREEMPTIONS_MAX &&
        rng_chance(&world->rng, process->preemptions)) {
        uint64_t until = world->now + rng_below(&world->rng, process->preempted_for);
        process->preempted++;
        TRACE(world, "process %u is preempted", process->index);
        process->on_check(process, true);
        world->is_nested = true;
        running = NULL;
        world_run_until(world, until);
        running = process;
        process->on_check(process, true);
        world->is_nested = false;
        TRACE(world, "process %u goes on", process->index);
    }
}

/* ---- alarms ---- */

static void on_due(void *owner) {
    struct alarm *alarm = owner;
    LIST_REMOVE(alarm, link);
    process_notify(alarm->process, &alarm->occurrence);
}

void alarm_init(struct alarm *alarm, struct event_base *process, void (*run)(void *owner),
                void *owner) {
    alarm->process = process;
    task_init(&alarm->due, on_due, alarm);
    occurrence_init(&alarm->occurrence, run, owner, false);
}

void alarm_set(struct alarm *alarm, uint64_t at) {
    if (alarm->due.position == 0) {
        LIST_INSERT_HEAD(&alarm->process->alarms, alarm, link);
    }
    task_schedule(alarm->process->world, &alarm->due, at);
}

void alarm_clear(struct alarm *alarm) {
    if (alarm->due.position != 0) {
        LIST_REMOVE(alarm, link);
        task_cancel(alarm->process->world, &alarm->due);
    }
    process_forget(alarm->process, &alarm->occurrence);
}

/* ---- lifetime ---- */

void process_init(struct event_base *process, struct world *world, unsigned index) {
    *process = (struct event_base){.world = world, .index = index};
    process->clock = (struct tempo){.true_base = world->now, .own_base = world->now};
    process->allocator = (redlock_allocator){allocate, reallocate, release, process};
    TAILQ_INIT(&process->ready);
    TAILQ_INIT(&process->later);
    TAILQ_INIT(&process->blocks);
    LIST_INIT(&process->alarms);
    TAILQ_INIT(&process->loops);
    task_init(&process->wake, on_wake, process);
    task_init(&process->resume, on_resume, process);
}

void process_finish(struct event_base *process) {
    task_cancel(process->world, &process->wake);
    task_cancel(process->world, &process->resume);
    loops_free(process);
    while (!LIST_EMPTY(&process->alarms)) {
        alarm_clear(LIST_FIRST(&process->alarms));
    }
    TAILQ_CONCAT(&process->ready, &process->later, link);
    while (!TAILQ_EMPTY(&process->ready)) {
        TAILQ_FIRST(&process->ready)->is_later = false;
        process_forget(process, TAILQ_FIRST(&process->ready));
    }
    while (!TAILQ_EMPTY(&process->blocks)) {
        release(TAILQ_FIRST(&process->blocks)->bytes, process);
    }
}
