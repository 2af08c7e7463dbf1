/* Breaks things: every now and then one fault, of the kinds that the plan allows. */
#ifndef REDLOCK_SIM_NEMESIS_H
#define REDLOCK_SIM_NEMESIS_H

#include "app.h"
#include "network.h"
#include "plan.h"

struct nemesis {
    struct world *world;
    struct network *network;
    struct app *apps;
    const struct plan *plan;
    struct task task;
    uint64_t out_until; /* when the last server that was kept out is back */
    uint64_t set_back;  /* by how much clocks were, all in all */
    unsigned jumps_back;
    uint64_t clock_rests_until[SERVERS_MAX]; /* a server's clock does not jump again before */
};

/* Sets latencies and clock rates, and begins. */
void nemesis_init(struct nemesis *nemesis, struct network *network, struct app *apps,
                  const struct plan *plan);

/* Stops, and mends all but half-open connections and servers that are to stay out. */
void nemesis_heal(struct nemesis *nemesis);

/* For the last phase: no path has jitter, each process has a nearest server. */
void nemesis_fall_in_step(struct nemesis *nemesis);

#endif
