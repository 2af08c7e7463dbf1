/*
 * The profile "load": thousands of locks in one client; a loop whose code takes time, and which is
 * busy or paused at times; masters that serve at a finite rate, stop, and come back.
 *
 * This file declares such a world and its phases. Its application: crowd.h; its invariants:
 * check_load.h.
 */
#ifndef REDLOCK_SIM_LOAD_H
#define REDLOCK_SIM_LOAD_H

#include "check.h"
#include "crowd.h"
#include "distance.h"
#include "run.h"

#include <redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Maximum number of clients of such a world; each has its own locks. */
#define CROWDS_MAX 3

struct load_plan {
    unsigned nodes, crowds, locks; /* `locks`: number for each crowd */
    uint64_t ttl_ms;
    unsigned fenced; /* per mille of the locks */
    redlock_options options;
    bool is_distant; /* whether paths have the distance, and each request tries once */
    struct distance distance;
    bool is_brief;      /* whether locks are released as soon as they are acquired */
    bool is_early;      /* whether requests come before the nodes are connected */
    bool is_burst;      /* whether all locks are requested at once, from masters without a bound */
    unsigned window;    /* otherwise: number of acquisitions pending at a time */
    uint64_t cost;      /* time of one unit of a process's work; ns */
    unsigned incidents; /* number of incidents */
    bool has_majority_faults;
    unsigned contenders; /* number of simultaneous requests for keys that others hold; 0: none */
    unsigned contested_nodes;        /* number of nodes at which those keys are held */
    uint64_t command_time, key_time; /* times of the masters; ns */
    size_t socket_size;
};

struct load_world {
    struct world world;
    struct network network;
    struct checker checker;
    struct load_plan plan;
    struct crowd crowds[CROWDS_MAX];
    uint64_t up_since[SERVERS_MAX]; /* true time; NEVER: down or stopped */
    uint64_t ticks_until;           /* until then locks may renew at the ticks of a smaller crowd */
    uint64_t down_at, back_at; /* instants at which the latest server went down, and came back */
    uint32_t token_count;
    uint64_t acquired, failed, lost;
};

/*
 * Runs one world, or, in a distant network, a burst of requests of one client. `trace` may be NULL.
 */
void load_run(uint64_t seed, bool is_distant, FILE *trace, struct run_result *result);

#endif
