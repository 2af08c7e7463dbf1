/*
 * The simulated world: true time, the queue of tasks, chance, the trace, and the verdict.
 *
 * One run is one world, which its seed determines completely.
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

/* The first instant: far enough from zero for clocks that are set back. */
#define WORLD_BEGINNING (UINT64_C(1000000) * MS)

/* A future event; embedded in the struct that the event is about. */
struct task {
    void (*run)(void *owner);
    void *owner;
    uint64_t at;
    uint64_t
        /* order of scheduling: among tasks for one instant, the first scheduled runs first */
        order;
    size_t position; /* index in the heap, starting at 1; 0: not scheduled */
};

/* The invariants that the simulator checks; README.md describes them by number. */
enum invariant {
    INVARIANT_NONE,
    INVARIANT_EXCLUSION = 1, /* no two valid holders of a key; a quorum backs each */
    INVARIANT_QUORUM = 2,    /* success only with a quorum of grants, and validity left */
    INVARIANT_CALLBACKS = 3, /* one callback for each request, none inline, none after close */
    INVARIANT_EXPIRY = 4,    /* no key of ours outlives its TTL or its release */
    INVARIANT_REVIVAL = 5,   /* an extension never revives a lost lock */
    INVARIANT_LIVENESS = 6,  /* without faults, each request gets its lock */
    INVARIANT_BOUNDS = 7,    /* queues and memory are bounded, and memory is freed */
    INVARIANT_TOKENS = 8,    /* no token is reused */
    INVARIANT_LOSS = 9,      /* a loss is reported in time */
    INVARIANT_FENCE = 10,    /* fences grow, and none is given twice */
    INVARIANT_STAY = 11,     /* a key with a minimum hold keeps other clients out */
    INVARIANT_PERMITS = 12,  /* a semaphore has no more holders than permits */
    INVARIANT_LOOKS = 13,    /* the answers about a key are true */
    INVARIANT_RENEWAL = 14,  /* no lock is lost that a quorum renewed in time */
    INVARIANT_WORK = 15,     /* turns are short: an application's timers fire in time */
    INVARIANT_STORM = 16,    /* renewals are few, and spread */
    INVARIANT_ORDER = 17,    /* queued waiters are served in order */
    INVARIANT_COUNT
};

struct checker;
struct actions;

struct world {
    uint64_t seed;
    struct checker *checker;
    struct actions *actions; /* NULL: they are not written */
    uint64_t now;
    struct rng rng;
    struct task **heap; /* used from index 1 */
    size_t tasks, capacity;
    uint64_t order;
    uint64_t events;         /* number of tasks run */
    bool is_nested;          /* whether a process is preempted in the middle of its code */
    FILE *trace;             /* NULL: no trace */
    enum invariant found;    /* the first violation */
    enum invariant violated; /* the same, if it ends the run */
    char violation[512];
};

void world_init(struct world *world, uint64_t seed, FILE *trace);
void world_finish(struct world *world);

/* Runs all tasks that are due until `at`. Stops early when an invariant was violated. */
void world_run_until(struct world *world, uint64_t at);

static inline void task_init(struct task *task, void (*run)(void *owner), void *owner) {
    *task = (struct task){.run = run, .owner = owner, .at = NEVER};
}

/* Schedules or moves the task. */
void task_schedule(struct world *world, struct task *task, uint64_t at);

/* Cancels the task, if it is scheduled. */
void task_cancel(struct world *world, struct task *task);

/* Writes one line of the trace. */
#define TRACE(world, ...)                                                                          \
    do {                                                                                           \
        if ((world)->trace != NULL) {                                                              \
            world_trace(world, __VA_ARGS__);                                                       \
        }                                                                                          \
    } while (0)
__attribute__((format(printf, 2, 3))) void world_trace(struct world *world, const char *format,
                                                       ...);

/* Records the first violation, which ends the run. */
__attribute__((format(printf, 3, 4))) void violate(struct world *world, enum invariant invariant,
                                                   const char *format, ...);

const char *invariant_name(enum invariant invariant);

#endif
