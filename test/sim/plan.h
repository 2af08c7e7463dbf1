/* The plan of a run, drawn from its seed: the nodes, the clients, the work, the faults. */
#ifndef REDLOCK_SIM_PLAN_H
#define REDLOCK_SIM_PLAN_H

#include "check.h"
#include "distance.h"
#include "rng.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The assumption of promise 1 that a run deliberately breaks. */
enum cause {
    CAUSE_NONE,     /* the profile "kept" */
    CAUSE_KEYS,     /* nodes lose keys, not counters, and top-ups of the keys are late */
    CAUSE_AMNESIA,  /* nodes forget: they restart empty and serve at once, or are flushed */
    CAUSE_NODES,    /* nodes' clocks jump */
    CAUSE_RATES,    /* clocks run at rates beyond drift */
    CAUSE_CLIENTS,  /* clients' clocks jump */
    CAUSE_PAUSES,   /* an application acts after a pause without checking its validity */
    CAUSE_RESTARTS, /* nodes restart empty, and guards keep the promise */
    CAUSE_COUNT
};

const char *cause_name(enum cause cause);

enum profile {
    PROFILE_KEPT,
    PROFILE_BROKEN,
    PROFILE_GUARDED,
    PROFILE_MOVING,
    PROFILE_LOAD,
    PROFILE_DISTANCE,
    PROFILE_COUNT
};

/* Returns the profile's name; NULL when there is no such profile. */
const char *profile_name(enum profile profile);

/* The kind of worlds requested. */
struct demand {
    enum profile profile;
    bool has_guards; /* whether the clients' guards are on; always where nodes restart empty */
    FILE *actions;   /* where the actions of the world are written; NULL: nowhere */
};

#define WORKERS_MAX 4

/* Maximum number of replicas of a master. */
#define REPLICAS_MAX 2

struct plan {
    enum cause cause;
    unsigned nodes, processes, workers, keys;
    /* whether servers are replaced: only some of the nodes are in use at a time */
    bool has_changes;
    bool has_losses; /* whether nodes lose keys while they run */
    bool has_jumps;  /* whether nodes' clocks jump, and guards detect it */
    bool has_long_ttls;
    bool has_open; /* whether acquisitions stay open while nodes restart and other locks expire */
    bool has_replicas; /* whether masters become replicas that accept writes */
    bool has_hurry;    /* whether every other process is in a hurry, and holds no lock for long */
    uint32_t durable;  /* mask of the nodes that keep their data across restarts */
    /* whether the first node is in the clients' lists twice, under another name */
    bool has_duplicate;
    bool has_long_keys, has_names;
    bool has_password;
    bool is_fenced;     /* whether all locks are fenced */
    bool has_sets;      /* whether some locks are of several keys */
    bool has_one_queue; /* whether most requests wait for one key, on the same terms */
    bool has_owners;
    /* number of permits of the only semaphore, which all workers want; 0: they want locks */
    unsigned permits;
    bool has_turns; /* whether nodes fail one after the other, while locks are held for long */
    bool has_hung;  /* whether a process hangs for long while it waits for readers */
    bool has_brief_readers; /* whether readers end their wait before they ask a second time */
    bool has_readers;       /* whether most requests are of readers and writers */
    bool has_own_keys;      /* whether each worker wants a key that no other wants */
    bool extends_soon;      /* whether most locks are extended within a round trip */
    unsigned db;

    redlock_options options; /* all fields but the nodes and the hooks */
    uint64_t ttl_least_ms, ttl_most_ms;
    bool has_min_holds; /* whether some locks stay for a while */
    uint64_t lock_delay_ms;
    uint32_t wait_replicas;
    uint64_t think_ms, hold_ms; /* maxima */
    uint64_t wait_ms;           /* maximum wait_ms of a request */
    bool has_rest;              /* whether all clients are idle for REST_MS in between */
    bool is_reticent;           /* whether scripts may not call INFO on servers */
    unsigned
        /* number of each server's connections that subscribe to all channels */
        pattern_subscribers;
    uint64_t look_ms;  /* maximum time between two questions of a worker; 0: no questions */
    uint64_t duration; /* duration of the part with faults */

    uint64_t latency, jitter; /* maxima for a path; ns */
    uint64_t mended_latency;  /* maximum of both in the end */
    unsigned slow_paths;      /* per mille of the paths */
    uint64_t slow_latency;
    bool is_distant; /* whether the paths are those of `distance`, and timeouts follow them */
    struct distance distance;
    unsigned
        /* number by which a process's questions exceed a node's queue; 0: no questions */
        questions;
    uint64_t questions_every; /* maximum time between two crowds; ns */
    uint64_t lateness;
    unsigned preemptions, failures; /* per mille */
    uint64_t preempted_for;

    uint64_t fault_every; /* mean time between faults; ns */
    int64_t most_ppm;     /* maximum of clock rates */
    bool in_step; /* whether in the end all request at one instant, over paths without jitter */
};

/* Returns how many locks each worker requests in the last phase, one after the other. */
static inline unsigned plan_last_turns(const struct plan *plan) {
    return plan->has_one_queue ? 3 : 1;
}

/* Returns whether there are no faults: then no acquisition without a contender may fail. */
static inline bool plan_is_calm(const struct plan *plan) {
    return plan->fault_every == 0 && plan->cause == CAUSE_NONE;
}

/* Return the longest timeouts, in ms, of a node's answer and of a silent node. */
uint64_t plan_timeout_ms(const struct plan *plan);
uint64_t plan_stall_ms(const struct plan *plan);

/* Returns the longest round trip of a distant world, in ns. */
uint64_t plan_round_trip(const struct plan *plan);

void plan_draw(struct plan *plan, struct rng *rng, const struct demand *demand);

#endif
