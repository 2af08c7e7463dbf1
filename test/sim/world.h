/*
 * The simulated world: true time, what happens next, chance, the trace, and the verdict.
 *
 * One run is one world; everything in it follows from its seed.
 */
#ifndef REDLOCK_SIM_WORLD_H
#define REDLOCK_SIM_WORLD_H

#include "rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MS UINT64_C(1000000)
#define NEVER UINT64_MAX

/* Something that is to happen; embedded in what it happens to. */
struct task {
    void (*run)(void *owner);
    void *owner;
    uint64_t at;
    uint64_t order; /* of tasks for the same instant, the first scheduled is the first run */
    size_t place;   /* in the heap, counted from 1; 0: not scheduled */
};

/* What the simulator asserts; their numbers are named in README.md. */
enum invariant {
    INVARIANT_NONE,
    INVARIANT_EXCLUSION = 1, /* never two valid holders of a key; a quorum backs each */
    INVARIANT_QUORUM = 2,    /* yes only with a quorum of grants, and validity left */
    INVARIANT_CALLBACKS = 3, /* one callback a request, none inline, none after close */
    INVARIANT_EXPIRY = 4,    /* no key of ours outlives its TTL or its release */
    INVARIANT_REVIVAL = 5,   /* an extension never revives a lost lock */
    INVARIANT_LIVENESS = 6,  /* without faults, who asks gets the lock */
    INVARIANT_BOUNDS = 7,    /* queues and memory are bounded, and given back */
    INVARIANT_TOKENS = 8,    /* tokens are never used again */
    INVARIANT_LOSS = 9,      /* a loss is told in time */
    INVARIANT_FENCE = 10,    /* fences grow, and none is given twice */
    INVARIANT_STAY = 11,     /* who asked for it keeps others out for a while */
    INVARIANT_PERMITS = 12,  /* never more holders of a semaphore than it has permits */
    INVARIANT_LOOKS = 13,    /* what is said of a key is true */
    INVARIANT_RENEWAL = 14,  /* no lock is lost that a quorum renewed in time */
    INVARIANT_WORK = 15,     /* a turn is short: an application's timers are in time */
    INVARIANT_STORM = 16,    /* renewals are few, and spread */
    INVARIANT_COUNT
};

struct checker;

struct world {
    uint64_t seed;
    struct checker *checker;
    uint64_t now;
    struct rng rng;
    struct task **heap; /* from 1 on */
    size_t tasks, capacity;
    uint64_t order;
    uint64_t events; /* tasks that were run */
    bool is_nested;  /* a process is preempted in the middle of its code */
    FILE *trace;     /* NULL: none */
    enum invariant violated;
    char violation[512];
};

void world_init(struct world *world, uint64_t seed, FILE *trace);
void world_finish(struct world *world);

/* Runs all that is due until then. Ends early when an invariant was violated. */
void world_run_until(struct world *world, uint64_t at);

static inline void task_init(struct task *task, void (*run)(void *owner), void *owner) {
    *task = (struct task){.run = run, .owner = owner, .at = NEVER};
}

/* Schedules it, or moves it. */
void task_schedule(struct world *world, struct task *task, uint64_t at);

/* Takes one that is not scheduled. */
void task_cancel(struct world *world, struct task *task);

/* One line of the trace. */
#define TRACE(world, ...)                                                                          \
    do {                                                                                           \
        if ((world)->trace != NULL) {                                                              \
            world_trace(world, __VA_ARGS__);                                                       \
        }                                                                                          \
    } while (0)
__attribute__((format(printf, 2, 3))) void world_trace(struct world *world, const char *format,
                                                       ...);

/* Notes the first violation; the run ends. */
__attribute__((format(printf, 3, 4))) void violate(struct world *world, enum invariant invariant,
                                                   const char *format, ...);

const char *invariant_name(enum invariant invariant);

#endif
