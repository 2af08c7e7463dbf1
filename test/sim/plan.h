/* What a run is made of, drawn from its seed: the nodes, the clients, the work, the faults. */
#ifndef REDLOCK_SIM_PLAN_H
#define REDLOCK_SIM_PLAN_H

#include "check.h"
#include "rng.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>

/* Which of the assumptions of promise 1 a run breaks on purpose. */
enum cause {
    CAUSE_NONE,     /* the profile "kept" */
    CAUSE_AMNESIA,  /* nodes forget: they restart empty and take part at once, or are flushed */
    CAUSE_NODES,    /* nodes' clocks jump */
    CAUSE_RATES,    /* clocks run at rates beyond drift */
    CAUSE_CLIENTS,  /* clients' clocks jump */
    CAUSE_PAUSES,   /* an application acts without looking at its validity, after a pause */
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
    PROFILE_COUNT
};

/* NULL for none of them. */
const char *profile_name(enum profile profile);

/* What worlds are asked for. */
struct demand {
    enum profile profile;
    bool has_guards; /* the clients' guards are on; they always are where nodes restart empty */
};

/* The most replicas that a master has. */
#define REPLICAS_MAX 2

struct plan {
    enum cause cause;
    unsigned nodes, processes, workers, keys;
    bool has_changes; /* servers are replaced: some of the nodes are in force at a time */
    bool has_losses;  /* nodes lose keys while they run */
    bool has_jumps;   /* nodes' clocks jump, and guards notice that */
    bool has_long_ttls;
    bool has_hurry;   /* every other process is in a hurry: it holds no lock for long */
    uint32_t durable; /* mask of the nodes that keep what they are told over restarts */
    bool has_twin;    /* the first of the nodes is in the clients' lists twice, by another name */
    bool has_long_keys, has_names;
    bool has_password;
    bool is_fenced; /* all locks are */
    bool has_sets;  /* locks are of several keys, some of them */
    bool has_owners;
    unsigned permits; /* of the one semaphore that all want; 0: they want locks */
    bool has_readers; /* most requests are of readers and writers */
    unsigned db;

    redlock_options options; /* but for the nodes and the hooks */
    uint64_t ttl_least_ms, ttl_most_ms;
    bool has_min_holds; /* locks stay for a while, some of them */
    uint64_t lock_delay_ms;
    uint32_t wait_replicas;
    uint64_t think_ms, hold_ms; /* the most */
    uint64_t wait_ms;           /* of a request, the most */
    bool is_reticent;           /* scripts may not ask servers who they are */
    uint64_t look_ms;           /* between two questions of a worker, the most; 0: none */
    uint64_t duration;          /* of the part with faults */

    uint64_t latency, jitter; /* the most, of a path; ns */
    uint64_t mended_latency;  /* the most of either, in the end */
    unsigned slow_paths;      /* per mille of the paths */
    uint64_t slow_latency;
    unsigned
        questions; /* questions of a process that are more than a node takes; 0: there are none */
    uint64_t questions_every; /* the most between two crowds; ns */
    uint64_t lateness;
    unsigned preemptions, failures; /* per mille */
    uint64_t preempted_for;

    uint64_t fault_every; /* mean; ns */
    int64_t most_ppm;     /* of clock rates */
    bool in_step;         /* in the end all ask at the same instant, over paths without jitter */
};

void plan_draw(struct plan *plan, struct rng *rng, const struct demand *demand);

#endif
